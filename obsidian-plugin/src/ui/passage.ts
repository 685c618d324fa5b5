/** The part of a passage that is shown in a list, and where in it the words of a query are. */

import { fold, oneLine, words } from "../chat/fold";

const BEFORE = 50;
const LENGTH = 220;

const FENCE = /^\s*(?:```|~~~)/;
const TABLE_RULE = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-*:?\s*)*$/;
const HEADING = /^\s*#{1,6}\s+(.*?)\s*#*\s*$/;

/** The heading of a passage, unless it only says the title of the note again. */
export function headingOf({ title, heading }: { readonly title: string; readonly heading: string }): string {
	return fold(heading) === fold(title) ? "" : heading;
}

/** A passage as a person reads it: without the signs of Markdown, and without the title that stands above it already. */
export function readable(hit: { readonly text: string; readonly title: string; readonly heading: string }): string {
	const said = new Set([hit.title, hit.heading, ...hit.heading.split(/\s+[>›]\s+/)].map(fold));
	const lines: string[] = [];
	let code = false;
	for (const line of hit.text.replace(/%%[^]*?%%|<!--[^]*?-->/g, " ").split("\n")) {
		if (FENCE.test(line)) {
			code = !code;
			continue;
		}
		if (code) {
			lines.push(line);
			continue;
		}
		if (TABLE_RULE.test(line.trim())) continue;
		const heading = HEADING.exec(line)?.[1];
		if (heading !== undefined && said.has(fold(unmarked(heading)))) continue;
		lines.push(unmarked(heading ?? line));
	}
	return lines.join("\n").trim();
}

function unmarked(line: string): string {
	let text = line
		.replace(/^\s*(?:>\s?)+/, "")
		.replace(/^\[![\w-]+\][+-]?\s*/, "")
		.replace(/^\s*[-*+]\s+(?:\[.\]\s+)?/, "")
		.replace(/\s\^[\w-]+\s*$/, "")
		.replace(/!?\[\[([^[\]]+)\]\]/g, (_, target: string) => named(target))
		.replace(/!?\[([^[\]]*)\]\((?:[^()]|\([^()]*\))*\)/g, "$1")
		.replace(/<\/?[a-z][^<>]*>/gi, " ")
		.replace(/`+|\*\*|~~|==/g, "")
		.replace(/(^|[\s(])__?(\S(?:.{0,300}?\S)?)__?(?=$|[\s).,;:!?])/g, "$1$2")
		.replace(/(^|[\s(])\*(\S(?:.{0,300}?\S)?)\*(?=$|[\s).,;:!?])/g, "$1$2");
	if (/^\s*\|.*\|\s*$/.test(text)) text = text.trim().slice(1, -1).split("|").map((cell) => cell.trim()).filter(Boolean).join(" · ");
	return text;
}

/** What a link between brackets shows. */
function named(target: string): string {
	const [place = "", ...alias] = target.split("|");
	return alias.length > 0 ? alias.join("|") : place.replace(/#\^?/g, " › ").trim();
}

/** A piece of text on one line, around the first word that was looked for. */
export function excerpt(text: string, query: string): string {
	const line = oneLine(text);
	if (line.length <= LENGTH) return line;
	const first = matchesIn(line, query)[0]?.[0] ?? 0;
	const start = first <= BEFORE ? 0 : wordStart(line, first - BEFORE);
	// up to the end of a word, unless that would be much less
	const shown = /^.{110,220}(?!\S)|^.{0,220}/.exec(line.slice(start))?.[0] ?? "";
	return `${start > 0 ? "…" : ""}${shown}${start + shown.length < line.length ? "…" : ""}`;
}

/** Where the words of the query are in a text, as [start, end) in order and without overlaps; case and accents aside. */
export function matchesIn(text: string, query: string): [number, number][] {
	// folding may lengthen a letter or drop one, so each folded unit knows the letter that it comes from
	let folded = "";
	const origin: number[] = [];
	let at = 0;
	for (const letter of text) {
		const plain = fold(letter);
		for (let unit = 0; unit < plain.length; unit++) origin.push(at);
		folded += plain;
		at += letter.length;
	}
	origin.push(at);
	const marked = new Set<number>();
	for (const word of words(query)) {
		const bare = word.replace(/^\W+|\W+$/gu, "") || word;
		for (let from = folded.indexOf(bare); from >= 0; from = folded.indexOf(bare, from + bare.length)) {
			for (let unit = origin[from] ?? 0; unit < (origin[from + bare.length] ?? 0); unit++) marked.add(unit);
		}
	}
	const found: [number, number][] = [];
	let last: [number, number] | undefined;
	for (let unit = 0; unit < at; unit++) {
		if (!marked.has(unit)) continue;
		if (last?.[1] === unit) last[1]++;
		else found.push((last = [unit, unit + 1]));
	}
	return found;
}

function wordStart(line: string, near: number): number {
	const space = line.indexOf(" ", near);
	return space < 0 || space > near + BEFORE ? near : space + 1;
}
