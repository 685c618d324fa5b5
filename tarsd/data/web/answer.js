/** A turn on the screen. Told of every change of it; only the parts that differ are drawn anew. */

import { behindWords, button, copyOf, h, notice, onEscape, plural, say, wordsOf } from "./dom.js";
import { MarkdownView, obsidianLink } from "./markdown.js";
import { ended } from "./turn.js";

export const relevance = (n) => (n >= 0.75 ? "relevant" : n >= 0.5 ? "fairly relevant" : n >= 0.25 ? "maybe relevant" : "not relevant");

export const placeOf = ({ title, path, heading }) => [title || path, heading !== title && heading].filter(Boolean).join(" › ");

/** A link into Obsidian, or the collection that a passage is of: only the notes of the vault itself can be opened. */
export function opener({ collection, link, path }) {
	if (collection) return h("span", { class: "faint" }, `In the collection “${collection}”`);
	const target = link?.replace(/^\[\[|(\|.*)?\]\]$/g, "") || path;
	return h("a", { href: obsidianLink(target), rel: "noopener noreferrer" }, "Open in Obsidian");
}

export class TurnView {
	#rows = new Map();
	#over;

	constructor(turn, number, chat) {
		Object.assign(this, copyOf("t-turn"), { turn, chat });
		this.asked.textContent = `Question ${number}`;
		this.question.textContent = turn.question;
		this.answered.textContent = `Answer to question ${number}`;
		this.answer = new MarkdownView(this.text, (n, doubted) => this.#cite(n, doubted));
		// browsers lend the clipboard only where the page came over HTTPS, or from this machine
		this.copy.hidden = !navigator.clipboard;
		this.copy.onclick = () => navigator.clipboard.writeText(turn.text).then(() => notice("Copied."), () => notice("It could not be copied."));
		this.again.onclick = () => chat.send(turn.question);
		this.good.onclick = () => this.#judge("good", "What was good about it?");
		this.wrong.onclick = () => this.#judge("wrong", "What was wrong, and what is right?");
		this.#over = ended(turn);
		this.update();
	}

	update() {
		const { turn } = this;
		const over = ended(turn);
		this.el.dataset.turn = turn.id;
		this.reply.setAttribute("aria-busy", !over);
		this.answer.draw(turn.text, known(turn).map(({ n, path }) => n + path).join());
		this.#draw(this.steps, turn.tools, (tools) => tools.map(({ name, state }) => h("li", {}, `${nameOf(name)} ${MARKS[state] ?? ""}`)));
		this.#draw(this.state, [stateWords(turn), turn.state, turn.error, turn.text !== ""], () => this.#state());
		this.#draw(this.approvals, turn.approvals, (all) => all.map((one) => this.#approval(one)));
		this.#draw(this.writes, turn.writes, (all) => all.map((one) => this.#write(one)));
		this.#draw(this.notes, notesOf(turn), (lines) => lines.map((line) => h("li", { dir: "auto" }, line)));
		this.#draw(this.sources, listed(turn), (given) => this.#sources(given));
		this.again.hidden = turn.state !== "done";
		this.actions.hidden = !over || turn.state === "unsent" || turn.text === "";
		if (over && !this.#over) this.#announce();
		this.#over = over;
	}

	/** Draw a part where what it shows has changed. The focus stays in this turn when its button goes. */
	#draw(el, about, draw) {
		const key = JSON.stringify(about);
		if (el.drawn === key) return;
		el.drawn = key;
		const focused = el.contains(document.activeElement);
		el.replaceChildren(...draw(about));
		el.hidden = !el.hasChildNodes();
		if (focused && !el.contains(document.activeElement)) this.el.focus({ preventScroll: true });
	}

	#announce() {
		const { state, error } = this.turn;
		const words = this.text.textContent.replace(/\s+/g, " ").trim();
		say(error ? `No answer. ${error.message}` : `${state === "stopped" ? "The answer was stopped: " : "Answer: "}${words}`);
	}

	#cite(n, doubted) {
		if (doubted) return h("span", { class: "cite dead", title: `There is no source ${n}` }, `${n}?`);
		const source = known(this.turn).find((one) => one.n === n);
		if (!source) return null;
		const label = `Source ${n}: ${placeOf(source)}`;
		const made = button(String(n), () => this.#reveal(n), "cite");
		made.ariaLabel = made.title = label;
		return made;
	}

	#reveal(n) {
		const row = this.#rows.get(n);
		if (!row?.el.isConnected) return;
		this.sources.open = row.details.open = true;
		this.chat.tail.show(row.el);
		row.summary.focus({ preventScroll: true });
	}

	// ------------------------------------------------------------------------------------------ parts

	#state() {
		const { turn, chat } = this;
		const { state, error, question } = turn;
		const words = stateWords(turn);
		if (!words) return [];
		const buttons = [];
		if (state === "unsent") {
			const again = () => {
				chat.takeBack(turn);
				chat.send(question);
			};
			buttons.push(button("Send again", again), button("Back to the box", () => chat.takeBack(turn, true)));
		} else if (ended(turn)) {
			if (turn.text && !error) buttons.push(button("Go on", () => chat.send("Please go on.")));
			buttons.push(button("Ask again", () => chat.send(question)));
		}
		const told = h("p", { class: error ? "wrong" : !ended(turn) && "busy", dir: "auto" }, words);
		const hint = error?.hint && h("p", { class: "faint", dir: "auto" }, error.hint);
		return [told, hint, buttons.length && h("div", { class: "buttons" }, ...buttons)].filter(Boolean);
	}

	#approval(asked) {
		const { name, title, diff, arguments: given, state } = asked;
		const card = copyOf("t-approval");
		const about = title || nameOf(name);
		const asks = state === "asked";
		card.el.ariaLabel = `Your yes is needed: ${about}`;
		card.title.textContent = about;
		card.end.textContent = ENDS[state] ?? "";
		card.buttons.hidden = !asks;
		card.diff.hidden = !asks || !diff;
		card.diff.append(...diffLines(diff));
		card.given.hidden = !asks || Boolean(diff);
		for (const [key, value] of Object.entries(given ?? {})) {
			card.given.append(h("dt", {}, key), h("dd", { dir: "auto" }, typeof value === "string" ? value : JSON.stringify(value)));
		}
		for (const [part, allow, always] of [["allow", true, false], ["always", true, true], ["deny", false, false]]) {
			card[part].onclick = () => this.chat.approve(this.turn, asked, { allow, always });
		}
		return card.el;
	}

	#write(write) {
		const { path, op, error, undone } = write;
		if (error) return h("li", { class: "wrong" }, `“${path}” was not written. ${error.message}`);
		if (undone) return h("li", {}, `“${path}” is as it was.`);
		const done = { create: "Made", append: "Added to" }[op] ?? "Changed";
		return h("li", {}, `${done} “${path}” `, button("Undo", () => this.chat.undo(this.turn, write), "small"));
	}

	#sources({ list, near }) {
		if (!list.length) return [];
		const count = plural(list.length, "source");
		const rows = list.map((source) => {
			if (!this.#rows.has(source.n)) this.#rows.set(source.n, this.#row(source));
			return this.#rows.get(source.n).el;
		});
		return [h("summary", {}, near ? `Nothing fitted; the closest: ${count}` : count), h("ol", {}, ...rows)];
	}

	#row(source) {
		const { n, start_line: from, end_line: to, collection, attached } = source;
		const row = copyOf("t-source");
		row.number.textContent = n;
		row.place.textContent = placeOf(source);
		row.about.textContent = `${attached ? "attached" : relevance(source.relevance)} · lines ${from}–${Math.max(from, to)}`;
		row.links.prepend(opener(source));
		row.read.hidden = collection !== "";
		row.read.onclick = () => this.chat.notes.open(source);
		const view = new MarkdownView(row.passage);
		row.details.ontoggle = async () => {
			if (row.details.open && !collection) view.draw(await this.chat.notes.passage(source).catch(wordsOf));
		};
		return row;
	}

	/** The person's verdict; their words on it are optional. */
	#judge(verdict, label) {
		const { words, cancel, turn } = this;
		const form = this.verdict;
		const close = () => {
			form.hidden = true;
			this[verdict].focus();
		};
		Object.assign(words, { value: "", placeholder: label, ariaLabel: label });
		form.hidden = false;
		cancel.onclick = close;
		form.onsubmit = async (event) => {
			event.preventDefault();
			if (!(await this.chat.judge(turn, verdict, words.value.trim()))) return;
			for (const one of ["good", "wrong"]) this[one].ariaPressed = one === verdict;
			close();
		};
		onEscape(form, close);
		words.focus();
	}
}

const known = ({ sources, citations }) => [...sources, ...citations];

/** Under an answer stands what it cites; before its end what was found, and where nothing fitted what came closest. */
function listed({ sources, citations, closest, ...turn }) {
	if (citations.length) return { list: citations };
	if (sources.length) return { list: ended(turn) ? [] : sources };
	return { list: closest.map((one, n) => ({ ...one, n: n + 1 })), near: true };
}

const ENDS = { answered: "Sent.", allowed: "Allowed.", refused: "Denied.", lapsed: "No longer asked: the answer has ended." };
const MARKS = { running: "…", done: "✓", failed: "✗", refused: "✗", stopped: "–" };

const nameOf = (tool) => tool.charAt(0).toUpperCase() + tool.slice(1).replaceAll("_", " ");

function stateWords({ state, waiting, position, text, error, approvals }) {
	switch (state) {
		case "sending":
			return waiting ? `Not sent yet. ${waiting}` : "Sending…";
		case "queued":
			return position > 1 ? `Waits for ${position} questions` : "Waits for the question before it";
		case "looking":
			return waiting || "Looking through your notes…";
		case "answering":
			return approvals.some((one) => one.state === "asked") ? "Waits for your yes" : waiting || (text ? "" : "Answering…");
		case "stopped":
			return "Stopped.";
		case "done":
			return "";
		default:
			return `${state === "unsent" ? "Not sent." : "No answer."} ${error.message}`;
	}
}

function notesOf({ notices, behind, withheld, model, local, ...turn }) {
	const lines = [...notices, behindWords(behind)];
	if (withheld.length) lines.push(`Private, and not shown to this model: ${withheld.join(", ")}.`);
	if (turn.private) lines.push("Drew on private notes.");
	if (ended(turn) && model) lines.push(`Answered by ${model}${local ? "" : ", which is not on the daemon's machine"}.`);
	return lines.filter(Boolean);
}

/** A unified diff. What comes and goes is told by signs and words, not by colours alone; nothing of it is left out. */
function diffLines(diff) {
	let [olds, news] = [0, 0];
	return diff.replace(/\n$/, "").split("\n").map((row) => {
		const hunk = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(row);
		// only the counts of its hunk tell a removed "-- x" from the head of a file
		const inside = !hunk && (olds > 0 || news > 0) && row[0] !== "\\";
		const kind = inside ? ({ "+": "added", "-": "removed" }[row[0]] ?? "same") : "about";
		if (hunk) [olds, news] = [Number(hunk[1] ?? 1), Number(hunk[2] ?? 1)];
		else if (inside) [olds, news] = [olds - (kind !== "added"), news - (kind !== "removed")];
		const spoken = { added: "Added: ", removed: "Removed: " }[kind];
		const text = h("span", { dir: "auto" }, inside ? row.slice(1) : row);
		return h("div", { class: kind }, spoken && h("span", { class: "unseen" }, spoken), inside && h("span", { class: "sign", "aria-hidden": "true" }, row[0]), text);
	});
}
