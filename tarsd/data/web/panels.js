/** What lies over the conversation: the list of conversations, search, and a note to read. */

import { opener, placeOf, relevance } from "./answer.js";
import { conversationPath } from "./chat.js";
import { $, behindWords, copyOf, h, notice, onEscape, plural, wordsOf } from "./dom.js";
import { MarkdownView } from "./markdown.js";

const TYPING_MS = 250;
const open = [];

/** Whether there is no keyboard but the one on the screen. */
export const touch = matchMedia("(hover: none) and (pointer: coarse)");

/** Show a dialog. The browser's own way back closes it, too. */
export function show(name) {
	if ($(name).open) return;
	$(name).showModal();
	// with a touch screen that would bring up the keyboard
	if (!touch.matches) $(name).querySelector("input")?.focus();
	open.push($(name));
	history.pushState({ depth: open.length }, "");
}

export function closeAll() {
	const depth = open.length;
	for (const dialog of open.splice(0).reverse()) dialog.close();
	if (depth) history.go(-depth);
}

for (const dialog of document.querySelectorAll("dialog")) {
	// its button, or a press beside it
	dialog.addEventListener("click", ({ target }) => (target === dialog || target.closest(".close")) && dialog.close());
	onEscape(dialog, () => dialog.close()); // a box for searching would take the first one for itself
	dialog.addEventListener("close", () => {
		if (open.at(-1) !== dialog) return;
		open.pop();
		history.back();
	});
}
addEventListener("popstate", ({ state }) => {
	while (open.length > (state?.depth ?? 0)) open.pop().close();
});

// -------------------------------------------------------------------------------------------- conversations

export class History {
	#all = [];

	constructor(daemon, chat) {
		Object.assign(this, { daemon, chat });
		$("history-find").addEventListener("input", () => this.#draw());
	}

	open() {
		$("history-find").value = "";
		show("history");
		return this.#act(async () => {
			this.#all = (await this.daemon.json("GET", "v1/conversations")).conversations;
		});
	}

	async #act(act) {
		await act().catch((error) => notice(wordsOf(error)));
		this.#draw();
	}

	#draw() {
		const words = fold($("history-find").value).split(/\s+/);
		const found = this.#all.filter(({ title }) => words.every((word) => fold(title).includes(word)));
		const nothing = this.#all.length ? "No title has all these words." : "No conversation yet.";
		$("history-list").replaceChildren(...(found.length ? found.map((one) => this.#row(one)) : [h("li", { class: "faint" }, nothing)]));
	}

	#row(one) {
		const row = copyOf("t-conversation");
		row.title.textContent = one.title || "Untitled";
		row.about.textContent = `${moment(one.updated)} · ${plural(one.turns, "question")}`;
		row.pick.ariaCurrent = one.id === this.chat.id;
		row.pick.onclick = () => {
			closeAll();
			void this.chat.open(one.id);
		};
		for (const [part, word, act] of [["rename", "Rename", () => this.#rename(one, row.el)], ["remove", "Delete", () => this.#remove(one, row.el)]]) {
			row[part].ariaLabel = row[part].title = `${word} “${one.title}”`;
			row[part].onclick = act;
		}
		return row.el;
	}

	#rename(one, row) {
		const form = copyOf("t-rename");
		form.words.value = one.title;
		form.el.onsubmit = async (event) => {
			event.preventDefault();
			const title = form.words.value.trim();
			if (!title) return;
			await this.#act(async () => {
				await this.daemon.json("PATCH", conversationPath(one.id), { title });
				one.title = title;
				if (one.id === this.chat.id) this.chat.rename(title);
			});
		};
		this.#instead(row, form);
		form.words.select();
	}

	#remove(one, row) {
		const form = copyOf("t-remove");
		form.question.textContent = `Delete “${one.title}”? Its note in the vault stays.`;
		form.yes.onclick = () =>
			this.#act(async () => {
				await this.daemon.json("DELETE", conversationPath(one.id));
				this.#all = this.#all.filter((other) => other !== one);
				if (one.id === this.chat.id) this.chat.begin();
			});
		this.#instead(row, form);
		form.yes.focus();
	}

	/** Something in the place of a row, until it is done or given up. */
	#instead(row, { el, cancel }) {
		const back = () => {
			this.#draw();
			$("history-find").focus();
		};
		cancel.onclick = back;
		onEscape(el, back);
		row.replaceChildren(el);
	}
}

const fold = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

function moment(seconds) {
	const at = new Date(seconds * 1000);
	const today = at.toDateString() === new Date().toDateString();
	return at.toLocaleString([], today ? { timeStyle: "short" } : { dateStyle: "medium" });
}

// -------------------------------------------------------------------------------------------- search and notes

export class Search {
	#asked = new AbortController();
	#timer = 0;

	constructor(daemon, notes) {
		Object.assign(this, { daemon, notes });
		$("search-words").addEventListener("input", () => this.#soon(TYPING_MS));
		$("search-mode").addEventListener("change", () => this.#soon(0));
		$("search-form").addEventListener("submit", (event) => {
			event.preventDefault();
			this.#soon(0);
		});
	}

	open() {
		show("search");
		$("search-words").select();
	}

	#soon(ms) {
		clearTimeout(this.#timer);
		this.#timer = setTimeout(() => this.#find(), ms);
	}

	async #find() {
		this.#asked.abort();
		const { signal } = (this.#asked = new AbortController());
		const query = $("search-words").value.trim();
		const tell = (text, hits = []) => {
			$("search-state").textContent = text;
			$("search-list").replaceChildren(...hits.map((hit) => this.#row(hit)));
		};
		if (!query) return tell("");
		$("search-state").textContent = "Searching…";
		try {
			const asked = { query, mode: $("search-mode").value, limit: 20 };
			const { hits, behind, degraded } = await this.daemon.json("POST", "v1/search", asked, { signal });
			const count = hits.length ? `${plural(hits.length, "passage")}.` : "Nothing found.";
			tell([count, behindWords(behind), degraded].filter(Boolean).join(" "), hits);
		} catch (error) {
			if (!signal.aborted) tell(wordsOf(error));
		}
	}

	#row(hit) {
		const row = copyOf("t-hit");
		row.place.textContent = placeOf(hit);
		row.about.textContent = [relevance(hit.relevance), ...hit.why].join(" · ");
		row.text.textContent = hit.text;
		row.links.append(opener(hit));
		row.read.hidden = hit.collection !== "";
		row.read.onclick = () => this.notes.open(hit);
		return row.el;
	}
}

/** A note as it is now, to read. */
export class Notes {
	constructor(daemon) {
		this.daemon = daemon;
		this.view = new MarkdownView($("note-text"));
	}

	/** The text of a note. Each part of its path is one part of the URL, whatever is in it. */
	async text(path) {
		return (await this.daemon.json("GET", `v1/notes/${path.split("/").map(encodeURIComponent).join("/")}`)).text;
	}

	/** The lines of a passage, as they are in the note now. */
	async passage({ path, start_line: from, end_line: to }) {
		const lines = (await this.text(path)).split(/\r\n|\r|\n/);
		return lines.slice(from - 1, to).join("\n");
	}

	/** Show the note of a passage, at the passage. */
	async open(passage) {
		const { path, title, start_line: from, end_line: to } = passage;
		$("note-title").textContent = title || path;
		$("note-path").replaceChildren(path, " · ", opener(passage));
		this.view.draw("");
		show("note");
		// properties are shown as they are written
		const text = await this.text(path).catch(wordsOf);
		this.view.draw(text.replace(/^---\r?\n([^]*?)\r?\n---(?=\r?\n|$)/, "```yaml\n$1\n```"));
		const blocks = [...$("note-text").children];
		const inside = blocks.filter(({ dataset }, n) => dataset.line <= to && (blocks[n + 1]?.dataset.line ?? Infinity) > from);
		for (const block of inside) block.classList.add("marked");
		inside[0]?.scrollIntoView({ block: "center" });
		$("note-text").focus({ preventScroll: true });
	}
}
