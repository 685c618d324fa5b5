/** A turn on the screen. Only the parts that differ are drawn anew. */

import { behindWords, button, copyOf, h, notice, plural, say, wordsOf } from "./dom.js";
import { MarkdownView, obsidianLink } from "./markdown.js";
import { ended } from "./turn.js";

export const relevance = (n) => (n >= 0.75 ? "relevant" : n >= 0.5 ? "fairly relevant" : n >= 0.25 ? "maybe relevant" : "not relevant");

export const placeOf = ({ title, path, heading }) => [title || path, heading !== title && heading].filter(Boolean).join(" › ");

/** A link into Obsidian, which knows the notes of the vault itself alone. */
export function opener({ collection, link, path }) {
	if (collection) return h("span", { class: "faint" }, `In the collection “${collection}”`);
	const target = link?.replace(/^\[\[|(\|.*)?\]\]$/g, "") || path;
	return h("a", { href: obsidianLink(target), rel: "noopener noreferrer" }, "Open in Obsidian");
}

export class TurnView {
	#rows = new Map();
	#over;
	#asked;

	constructor(turn, number, chat) {
		Object.assign(this, copyOf("t-turn"), { turn, chat });
		this.asked.textContent = `Question ${number}`;
		this.question.textContent = turn.question;
		this.answered.textContent = `Answer to question ${number}`;
		this.answer = new MarkdownView(this.text, (mark) => this.#cite(mark));
		// without HTTPS there is none
		this.copy.hidden = !navigator.clipboard;
		this.copy.onclick = () => navigator.clipboard.writeText(turn.text).then(() => notice("Copied."), () => notice("Not copied."));
		this.again.onclick = () => chat.send(turn.question);
		this.goOn.onclick = () => chat.send("Please continue.");
		for (const verdict of ["good", "wrong"]) this[verdict].onclick = () => this.#judge(verdict);
		this.#over = ended(turn);
		this.update();
	}

	update() {
		const { turn } = this;
		const over = ended(turn);
		this.reply.setAttribute("aria-busy", !over);
		this.answer.draw(turn.text, known(turn).map(({ n, path }) => n + path).join());
		this.offer();
		this.#draw(this.steps, turn.tools, ({ name, state }) => h("li", {}, `${nameOf(name)} ${MARKS[state] ?? ""}`));
		this.words.textContent = over ? endWords(turn) : waitingWords(turn);
		this.words.className = turn.error ? "wrong" : over ? "" : "busy";
		this.hint.textContent = turn.error?.hint ?? "";
		this.#draw(this.approvals, turn.approvals, (asked) => this.#approval(asked));
		this.#draw(this.writes, turn.writes, (write) => this.#write(write));
		this.#draw(this.notes, notesOf(turn), (line) => h("li", { dir: "auto" }, line));
		const { near, list } = listed(turn);
		const count = plural(list.length, "source");
		this.count.textContent = near ? `No good match. Closest: ${count}` : count;
		this.#draw(this.list, list, (source) => this.#source(source));
		this.sources.hidden = !list.length;
		this.actions.hidden = !over;
		this.goOn.hidden = turn.state !== "stopped";
		const asked = turn.approvals.find(({ state }) => state === "asked");
		if (over && !this.#over) say(endWords(turn) || `Answer: ${this.text.textContent}`);
		if (asked && asked !== this.#asked) say(`Needs your approval: ${asked.title || nameOf(asked.name)}`);
		[this.#over, this.#asked] = [over, asked];
	}

	/** Draw a list where it has changed; the focus stays in this turn. */
	#draw(el, list, draw) {
		const key = JSON.stringify(list);
		if (el.drawn === key) return;
		el.drawn = key;
		const focused = el.contains(document.activeElement);
		el.replaceChildren(...list.map(draw));
		if (focused && !el.contains(document.activeElement)) this.el.focus({ preventScroll: true });
	}

	#cite(mark) {
		const n = parseInt(mark);
		if (mark.endsWith("?")) return h("span", { class: "cite dead", title: `There is no source ${n}` }, mark);
		const source = sourceOf(this.turn, n);
		const label = source && `Source ${n}: ${placeOf(source)}`;
		return source ? Object.assign(button(`${n}`, () => this.#reveal(n), "cite"), { ariaLabel: label, title: label }) : null;
	}

	/** A click on the box of an open task ticks nothing: it asks to change the line that its entry cites last. */
	offer() {
		for (const box of this.text.querySelectorAll("input:not([checked])")) {
			const entry = box.closest("li").cloneNode(true);
			for (const below of entry.querySelectorAll("ul, ol")) below.remove();
			const cites = [...entry.querySelectorAll(".cite")];
			const { path, collection, start_line: line, end_line: end } = sourceOf(this.turn, Number(cites.at(-1)?.textContent)) ?? {};
			const asks = line > 0 && line === end && !collection;
			for (const cite of cites) cite.remove();
			box.disabled = !asks || this.chat.current;
			box.ariaLabel = asks ? `Complete “${entry.textContent.trim()}”` : "Task";
			box.onclick = (event) => {
				event.preventDefault();
				this.el.focus({ preventScroll: true });
				this.chat.send(`/tasks done ${path}:${line}`);
			};
		}
	}

	#reveal(n) {
		const source = listed(this.turn).list.find((one) => one.n === n);
		const row = source && this.#rows.get(keyOf(source));
		if (!row) return;
		this.sources.open = row.details.open = true;
		this.chat.tail.show(row.el);
		row.summary.focus({ preventScroll: true });
	}

	#approval(asked) {
		const { name, title, diff, arguments: given, state } = asked;
		const card = copyOf("t-approval");
		const about = title || nameOf(name);
		const asks = state === "asked";
		card.el.ariaLabel = `Needs your approval: ${about}`;
		card.title.textContent = about;
		card.end.textContent = ENDS[state] ?? "";
		card.buttons.hidden = !asks;
		card.diff.hidden = !asks || !diff;
		card.diff.append(...diffLines(diff));
		card.given.hidden = !asks || diff !== "";
		for (const [key, value] of Object.entries(given ?? {})) {
			card.given.append(h("dt", {}, key), h("dd", { dir: "auto" }, typeof value === "string" ? value : JSON.stringify(value)));
		}
		const answer = (allow, always) => () => this.chat.approve(this.turn, asked, { allow, always });
		card.allow.onclick = answer(true, false);
		card.always.onclick = answer(true, true);
		card.deny.onclick = answer(false, false);
		return card.el;
	}

	#write(write) {
		const { path, op, error, undone } = write;
		if (error) return h("li", { class: "wrong" }, `“${path}” was not written. ${error.message}`);
		if (undone) return h("li", {}, `“${path}” was restored.`);
		const done = { create: "Made", append: "Added to" }[op] ?? "Changed";
		return h("li", {}, `${done} “${path}” `, button("Undo", () => this.chat.undo(this.turn, write)));
	}

	/** What was unfolded stays so. */
	#source(source) {
		const { n, start_line: from, end_line: to, collection, attached } = source;
		const key = keyOf(source);
		const drawn = this.#rows.get(key);
		if (drawn) return drawn.el;
		const row = copyOf("t-source");
		this.#rows.set(key, row);
		row.number.textContent = n;
		row.place.textContent = placeOf(source);
		row.about.textContent = `${attached ? "attached" : relevance(source.relevance)} · ${from < to ? `lines ${from}–${to}` : `line ${from}`}`;
		row.links.prepend(opener(source));
		row.read.hidden = collection !== "";
		row.read.onclick = () => this.chat.notes.open(source);
		const view = new MarkdownView(row.passage);
		row.details.ontoggle = async () => {
			if (row.details.open && !collection) view.draw(await this.chat.notes.passage(source).catch(wordsOf));
		};
		return row.el;
	}

	/** The person's verdict, with or without words on it. */
	async #judge(verdict) {
		const note = prompt(this[verdict].dataset.asks);
		if (note === null || !(await this.chat.judge(this.turn, verdict, note.trim()))) return;
		for (const one of ["good", "wrong"]) this[one].ariaPressed = one === verdict;
	}
}

const ENDS = { answered: "Sent.", allowed: "Allowed.", refused: "Denied.", lapsed: "The answer has ended." };
const MARKS = { running: "…", done: "✓", failed: "✗", refused: "✗", stopped: "–" };

const nameOf = (tool) => tool.charAt(0).toUpperCase() + tool.slice(1).replaceAll("_", " ");

const keyOf = ({ n, path, start_line: line }) => `${n} ${path} ${line}`;

const known = ({ sources, citations }) => [...sources, ...citations];

const sourceOf = (turn, n) => known(turn).find((one) => one.n === n);

/** What an answer cites; before its end what was found, and where nothing fitted what came closest. */
function listed({ sources, citations, closest, ...turn }) {
	if (citations.length) return { list: citations };
	if (sources.length) return { list: ended(turn) ? [] : sources };
	return { list: closest.map((one, n) => ({ ...one, n: n + 1 })), near: true };
}

const endWords = ({ state, error }) => (error ? `No answer. ${error.message}` : state === "stopped" ? "Stopped." : "");

function waitingWords({ state, waiting, position, text, approvals }) {
	if (state === "sending") return waiting ? `Not sent yet. ${waiting}` : "Sending…";
	if (state === "queued") return position > 1 ? `Waiting for ${position} questions` : "Waiting for the previous question";
	if (approvals.some((one) => one.state === "asked")) return "Waiting for your approval";
	return waiting || (state === "looking" ? "Searching your notes…" : text ? "" : "Answering…");
}

function notesOf({ notices, behind, withheld, model, local, ...turn }) {
	return [
		...notices,
		behindWords(behind),
		withheld.length && `Private, not shown to this model: ${withheld.join(", ")}.`,
		turn.private && "Uses private notes.",
		ended(turn) && model && `Answered by ${model}${local ? "" : ", not on the daemon's machine"}.`,
		turn.usage && `${turn.usage}.`,
	].filter(Boolean);
}

const DIFF = { "+": "added", "-": "removed", " ": "same" };

/** A unified diff of one note, told by signs and words and not by colours alone; nothing of it is left out. */
function diffLines(diff) {
	let inside = false;
	return diff.replace(/\n$/, "").split("\n").map((row) => {
		// before it stands the note's name, and after it a removed "-- x" looks like one
		inside ||= row.startsWith("@@");
		const kind = inside && DIFF[row[0]];
		const spoken = { added: "Added: ", removed: "Removed: " }[kind];
		const sign = kind && h("span", { class: "sign", "aria-hidden": "true" }, row[0]);
		return h("div", { class: kind || "about" }, spoken && h("span", { class: "unseen" }, spoken), sign, h("span", { dir: "auto" }, kind ? row.slice(1) : row));
	});
}
