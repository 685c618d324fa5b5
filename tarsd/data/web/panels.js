/** What lies over the conversation: the list of all of them, search, and a note to read. */

import { opener, placeOf, relevance } from "./answer.js";
import { conversationPath } from "./chat.js";
import { $, behindWords, copyOf, h, notice, plural, wordsOf } from "./dom.js";
import { MarkdownView } from "./markdown.js";

const TYPING_MS = 250;
const open = [];

export const touch = matchMedia("(hover: none) and (pointer: coarse)");

/** Show a dialog. The browser's own way back closes it, too. */
export function show(name) {
	const dialog = $(name);
	if (dialog.open) return;
	dialog.showModal();
	// with a touch screen it would bring up the keyboard
	if (!touch.matches) dialog.querySelector("input")?.focus();
	open.push(dialog);
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
	dialog.addEventListener("keydown", (event) => {
		if (event.key !== "Escape" || event.isComposing) return;
		// a box for searching keeps the first one for itself
		event.preventDefault();
		event.stopPropagation();
		dialog.close();
	});
	dialog.addEventListener("close", () => {
		if (open.at(-1) !== dialog) return;
		open.pop();
		history.back();
	});
}
addEventListener("popstate", ({ state }) => {
	while (open.length > (state?.depth ?? 0)) open.pop().close();
});

// ---- conversations ----

export class History {
	#all = [];

	constructor(daemon, chat) {
		Object.assign(this, { daemon, chat });
		$("history-find").oninput = () => this.#draw();
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
		const nothing = this.#all.length ? "No title has all these words." : "No conversations yet.";
		$("history-list").replaceChildren(...(found.length ? found.map((one) => this.#row(one)) : [h("li", { class: "faint" }, nothing)]));
	}

	#row(one) {
		const { id, title, updated, turns } = one;
		const row = copyOf("t-conversation");
		row.title.textContent = title || "Untitled";
		row.about.textContent = `${moment(updated)} · ${plural(turns, "question").replace(" ", "\u00a0")}`;
		row.pick.ariaCurrent = id === this.chat.id;
		row.pick.onclick = () => {
			closeAll();
			void this.chat.open(id);
		};
		row.rename.ariaLabel = row.rename.title = `Rename “${title}”`;
		row.rename.onclick = () => this.#rename(one, prompt("New title", title)?.trim());
		row.remove.ariaLabel = row.remove.title = `Delete “${title}”`;
		row.remove.onclick = () => confirm(`Delete “${title}”? Its note in the vault stays.`) && this.#remove(one);
		return row.el;
	}

	async #rename(one, title) {
		if (!title) return;
		await this.#act(async () => {
			await this.daemon.json("PATCH", conversationPath(one.id), { title });
			one.title = title;
			if (one.id === this.chat.id) this.chat.rename(title);
		});
	}

	#remove(one) {
		return this.#act(async () => {
			await this.daemon.json("DELETE", conversationPath(one.id));
			this.#all = this.#all.filter((other) => other !== one);
			if (one.id === this.chat.id) this.chat.begin();
		});
	}
}

const fold = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

const moment = (seconds) => new Date(seconds * 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

// ---- search and notes ----

export class Search {
	#asked = new AbortController();
	#timer = 0;

	constructor(daemon, notes) {
		Object.assign(this, { daemon, notes });
		$("search-form").oninput = () => this.#soon(TYPING_MS);
		$("search-form").onsubmit = (event) => {
			event.preventDefault();
			this.#soon(0);
		};
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
			const { hits: found, behind, degraded } = await this.daemon.json("POST", "v1/search", asked, signal);
			const good = found.some((one) => one.relevance >= 0.5);
			const hits = good ? found.filter((one) => one.relevance >= 0.25) : found;
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
		// the headings are said already
		row.text.textContent = hit.text.replace(/^#+ .*$/gm, "").replace(/\s*\n\s*/g, "\n").trim();
		row.links.append(opener(hit));
		row.read.hidden = hit.collection !== "";
		row.read.onclick = () => this.notes.open(hit);
		return row.el;
	}
}

/** Notes as they are now, to read. */
export class Notes {
	#view = new MarkdownView($("note-text"));

	constructor(daemon) {
		this.daemon = daemon;
	}

	async #text(path) {
		return (await this.daemon.json("GET", `v1/notes/${path.split("/").map(encodeURIComponent).join("/")}`)).text;
	}

	async passage({ path, start_line: from, end_line: to }) {
		const lines = (await this.#text(path)).split(/\r\n|\r|\n/);
		return lines.slice(from - 1, to).join("\n");
	}

	async open(passage) {
		const { path, title, start_line: from, end_line: to } = passage;
		$("note-title").textContent = title || path;
		$("note-path").replaceChildren(path, " · ", opener(passage));
		this.#view.draw("");
		show("note");
		// properties are shown as they are written
		const text = await this.#text(path).catch(wordsOf);
		this.#view.draw(text.replace(/^---\r?\n([^]*?)\r?\n---(?=\r?\n|$)/, "```yaml\n$1\n```"));
		const blocks = [...$("note-text").children];
		const inside = blocks.filter(({ dataset }, n) => dataset.line <= to && (blocks[n + 1]?.dataset.line ?? Infinity) > from);
		for (const block of inside) block.classList.add("marked");
		inside[0]?.scrollIntoView({ block: "center" });
		$("note-text").focus({ preventScroll: true });
	}
}
