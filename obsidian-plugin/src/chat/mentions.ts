/** `[[`, `@` and a `/` at the beginning of the box: what is being named at the caret, what could be meant, and what choosing it inserts. */

import type { Chip } from "./context";
import { fold, words } from "./fold";

/** What is being typed at the caret; choosing something replaces the text between `from` and `to`. */
export interface Mention {
	readonly trigger: "[[" | "@" | "/";
	readonly from: number;
	readonly to: number;
	readonly query: string;
}

/** Something that can be named. `link` is what stands in `[[…]]`; `recent` counts from 0, the last opened first. */
export type Candidate =
	| {
			readonly kind: "note";
			readonly path: string;
			readonly name: string;
			readonly link: string;
			readonly aliases?: readonly string[];
			readonly recent?: number;
	  }
	| { readonly kind: "folder"; readonly path: string }
	| { readonly kind: "tag"; readonly tag: string }
	/** What the daemon answers without a model, or a prompt; `takes` says what follows the name, and what it is for. */
	| { readonly kind: "command"; readonly name: string; readonly takes: string };

/** A candidate made ready for many queries. */
export interface Prepared {
	readonly candidate: Candidate;
	/** What is read: a note's name, a folder's path, a tag with its `#`. */
	readonly label: string;
	readonly name: string;
	readonly place: string;
	readonly aliases: readonly string[];
	readonly recent: number;
}

/** What the box holds after a choice; a folder, a tag, or a note that no link can name, becomes a chip. */
export interface Insertion {
	readonly text: string;
	readonly caret: number;
	readonly chip: Chip | null;
}

const LONGEST = 80;
const BEFORE_AT = /[\s([{"'“‘«—–-]/;

/** What is being named at the caret, if anything: not in code, not in a finished link, not within a word. */
export function mentionAt(text: string, caret: number): Mention | null {
	const command = /^\/([^\s/]{0,80})$/.exec(text.slice(0, caret));
	if (command) return { trigger: "/", from: 0, to: caret, query: command[1] ?? "" };
	const start = text.lastIndexOf("\n", caret - 1) + 1;
	const line = text.slice(start, caret);
	const mention = linkAt(text, line, start, caret) ?? nameAt(line, start, caret);
	// last, for it looks through all that is above
	return mention && !inCode(text.slice(0, start), line) ? mention : null;
}

function linkAt(text: string, line: string, start: number, caret: number): Mention | null {
	const open = line.lastIndexOf("[[");
	if (open < 0) return null;
	const query = line.slice(open + 2);
	if (/[[\]|#^]/.test(query) || /^\s/.test(query) || query.length > LONGEST) return null;
	// the brackets may have closed themselves, or the caret is in the middle of a link that is being changed
	const rest = /^[^[\]\n|#^]{0,80}\]\]/.exec(text.slice(caret))?.[0] ?? "";
	return { trigger: "[[", from: start + open, to: caret + rest.length, query };
}

function nameAt(line: string, start: number, caret: number): Mention | null {
	const at = line.lastIndexOf("@");
	if (at < 0) return null;
	const query = line.slice(at + 1);
	const before = line[at - 1] ?? " ";
	if (!BEFORE_AT.test(before) || /^\s|[[\]]|\s{2}/.test(query) || query.length > LONGEST) return null;
	return { trigger: "@", from: start + at, to: caret, query };
}

function inCode(above: string, line: string): boolean {
	const fences = above.split("\n").filter((one) => /^\s*(?:```|~~~)/.test(one)).length;
	return fences % 2 === 1 || (line.match(/`/g)?.length ?? 0) % 2 === 1;
}

/** What is read of it: a note's name, a folder's path with a slash behind, a tag with its `#`. */
function labelOf(candidate: Candidate): string {
	switch (candidate.kind) {
		case "note":
			return candidate.name;
		case "folder":
			return `${candidate.path.replace(/^\/+|\/+$/g, "")}/`;
		case "tag":
			return `#${candidate.tag.replace(/^#/, "")}`;
		case "command":
			return `/${candidate.name}`;
	}
}

/** Ready for `suggest`; to be made again when notes come, go or are renamed, not with every key. */
export function prepare(candidates: readonly Candidate[]): Prepared[] {
	return candidates.map((candidate) => {
		const label = labelOf(candidate);
		if (candidate.kind === "note") {
			const { path, aliases = [], recent = Infinity } = candidate;
			return { candidate, label, name: fold(label), place: fold(path), aliases: aliases.map(fold), recent };
		}
		const name = candidate.kind === "command" ? fold(candidate.name) : fold(label.replace(/^#|^.*\/(?=.)|\/$/g, ""));
		return { candidate, label, name, place: fold(label), aliases: [], recent: Infinity };
	});
}

/**
 * The best candidates, best first. `[[` names notes only; `@#` tags only; without a query the last opened notes come
 * first.
 */
export function suggest(prepared: readonly Prepared[], { trigger, query }: Mention, limit = 12): Prepared[] {
	const tags = trigger === "@" && query.startsWith("#");
	const only = trigger === "/" ? "command" : trigger === "[[" ? "note" : tags ? "tag" : null;
	const wanted = words(tags ? query.slice(1) : query);
	const whole = wanted.join(" ");
	return prepared
		.filter(({ candidate }) => !only || candidate.kind === only)
		// a command that stands there whole is to be sent with the next Enter
		.filter(({ name }) => trigger !== "/" || name !== whole)
		.map((one) => ({ one, score: scoreOf(one, wanted, whole) }))
		.filter(({ score }) => score > 0)
		.sort((a, b) => b.score - a.score || order(a.one, b.one))
		.slice(0, limit)
		.map(({ one }) => one);
}

const KINDS: readonly Candidate["kind"][] = ["note", "folder", "tag", "command"];

/** Among equals: what was opened last, notes before folders before tags, short before long, then by letter. */
function order(a: Prepared, b: Prepared): number {
	if (a.recent !== b.recent) return a.recent < b.recent ? -1 : 1;
	const kinds = KINDS.indexOf(a.candidate.kind) - KINDS.indexOf(b.candidate.kind);
	return kinds || a.name.length - b.name.length || (a.place < b.place ? -1 : Number(a.place > b.place));
}

/** 0 for what does not fit at all. */
function scoreOf({ name, aliases, place }: Prepared, wanted: readonly string[], whole: string): number {
	const all = (fits: (text: string, word: string) => boolean, text: string): boolean => wanted.every((word) => fits(text, word));
	if (!wanted.length) return 1;
	if (name === whole) return 100;
	if (aliases.includes(whole)) return 90;
	if (name.startsWith(whole)) return 80;
	if (aliases.some((alias) => alias.startsWith(whole))) return 70;
	if (all(starts, name)) return 60;
	if (aliases.some((alias) => all(starts, alias))) return 55;
	if (all(includes, name)) return 50;
	if (all(starts, place)) return 40;
	if (all(includes, place)) return 30;
	// of a sentence that goes on after an "@", letters here and there would fit by chance
	return wanted.length === 1 && scattered(name, whole) ? 10 : 0;
}

function includes(text: string, word: string): boolean {
	return text.includes(word);
}

/** Whether a word of the text begins so. */
function starts(text: string, word: string): boolean {
	for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
		if (at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1] ?? "")) return true;
	}
	return false;
}

/** Whether the letters come in this order, the first one first. */
function scattered(text: string, letters: string): boolean {
	if (text[0] !== letters[0]) return false;
	let at = 0;
	for (const letter of letters) {
		at = text.indexOf(letter, at) + 1;
		if (at === 0) return false;
	}
	return true;
}

/** The box after a candidate was chosen. */
export function insert(text: string, mention: Mention, candidate: Candidate): Insertion {
	const { words: said, chip } = wording(candidate);
	const before = text.slice(0, mention.from);
	const after = text.slice(mention.to);
	const gap = /^[\s.,;:!?)\]}]/.test(after) ? "" : " ";
	const behind = gap || /^\s/.test(after) ? 1 : 0;
	return { text: before + said + gap + after, caret: before.length + said.length + behind, chip };
}

function wording(candidate: Candidate): { words: string; chip: Chip | null } {
	const label = labelOf(candidate);
	if (candidate.kind === "note") {
		const { path, name, link } = candidate;
		if (/[[\]|#^\n]/.test(link)) return { words: label, chip: { kind: "note", path, name } };
		return { words: `[[${link}]]`, chip: null };
	}
	if (candidate.kind === "command") return { words: label, chip: null };
	const chip: Chip = candidate.kind === "tag" ? { kind: "tag", tag: label.slice(1) } : { kind: "folder", path: label.slice(0, -1) };
	return { words: label, chip };
}
