/** The markers `[1]` in an answer: which of them lead to a passage, and where that is. */

import type { Source } from "../protocol/events";

/**
 * What a marker stands for: `here` can be opened, `elsewhere` is a note of another collection, and `unresolved` is a
 * number without a passage: it is marked, and never a link.
 */
export type Citation =
	| { readonly kind: "here" | "elsewhere"; readonly n: number; readonly source: Source; readonly target: string }
	| { readonly kind: "unresolved"; readonly n: number };

/** A stretch of an answer: text as it is, or a marker with the text that it had. */
export type Piece =
	| { readonly kind: "text"; readonly text: string }
	| { readonly kind: "citation"; readonly text: string; readonly citation: Citation };

/**
 * Where in a rendered answer no marker is looked for. Quotes are somebody else's words, with numbers of their own; the
 * daemon leaves them alone too.
 */
export const NO_CITATIONS_IN = "code, pre, a, blockquote, .callout, .math, mjx-container, svg, .frontmatter";

const MARKER = /\[(\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*)(\?)?\]/g;
const WORD = /[\p{L}\p{N}_]/u;

/** The link text for `openLinkText`: `[[Folder/Note#Heading|Alias]]` without brackets and alias; encoded where it came so. */
export function targetOf(source: Source): string {
	const link = source.link.trim();
	const encoded = /^\[[^[\]]*\]\(([^()\s:]*)\)$/.exec(link)?.[1];
	const inside = encoded ?? /^!?\[\[([^\]|]*)(?:\|[^\]]*)?\]\]$/.exec(link)?.[1]?.trim();
	return inside || source.path.replace(/\.md$/i, "");
}

/** What `[n]` means among these sources. */
export function citationOf(n: number, sources: readonly Source[]): Citation {
	const source = sources.find((one) => one.n === n);
	if (!source) return { kind: "unresolved", n };
	return { kind: source.collection === "" ? "here" : "elsewhere", n, source, target: targetOf(source) };
}

/**
 * The text of a text node, cut at its markers; joined again the pieces are the text. `[1][2]` and `[1, 2]` are two
 * markers; a list with a number that is no source is somebody's own list, and stays text. `after` is what
 * follows the text without being looked at.
 */
export function pieces(text: string, sources: readonly Source[], after = ""): Piece[] {
	const found: Piece[] = [];
	let at = 0;
	// where the marker before ended, so that `[1][2]` is told from `[words][2]`
	let chain = -1;
	for (const match of text.matchAll(MARKER)) {
		const end = match.index + match[0].length;
		const preceding = text.slice(0, match.index);
		const following = end < text.length ? text.slice(end) : after;
		if (!(chain === match.index || opensHere(preceding)) || !closesHere(preceding, following)) continue;
		const marks = citations(match[0], match[1] ?? "", match[2] === "?", sources);
		if (!marks) continue;
		if (match.index > at) found.push({ kind: "text", text: text.slice(at, match.index) });
		found.push(...marks);
		at = chain = end;
	}
	if (at < text.length) found.push({ kind: "text", text: text.slice(at) });
	return found;
}

/**
 * The Markdown of an answer with every marker replaced by what `how` gives for it, null to leave it. Code, quotes, math
 * and links are left alone. In a row of a table every `|` of the replacement is escaped.
 */
export function replaceMarkers(
	markdown: string,
	sources: readonly Source[],
	how: (citation: Citation) => string | null,
): string {
	return stretches(markdown)
		.map(({ text, plain, row, after }) => {
			if (!plain) return text;
			return pieces(text, sources, after)
				.map((piece) => {
					if (piece.kind === "text") return piece.text;
					const made = how(piece.citation);
					if (made === null) return piece.text;
					return row ? made.replace(/\\?\|/g, "\\|") : made;
				})
				.join("");
		})
		.join("");
}

/** `\\[1]` in Markdown, which is somebody else's number; drawn it would look like ours. */
const ESCAPED = /\\\[(?=\d{1,3}\??(?:\s*[,;–-]\s*\d{1,3}\??)*\])/g;
/** A bracket that is no marker's: what stands behind it is not seen. */
const INERT = "[\u2060";

/** The Markdown of an answer to be drawn, with escaped numbers kept from being markers; `freed` takes that back. */
export function held(markdown: string): string {
	if (!markdown.includes("\\[")) return markdown;
	return stretches(markdown)
		.map(({ text, plain }) => (plain ? text.replace(ESCAPED, INERT) : text))
		.join("");
}

/** A drawn text without what `held` put in. */
export function freed(text: string): string {
	return text.replaceAll(INERT, "[");
}

/** The sources that a text really refers to, each once, in the order in which it does. */
export function citedIn(markdown: string, sources: readonly Source[]): Source[] {
	const cited = new Map<number, Source>();
	replaceMarkers(markdown, sources, (citation) => {
		if (citation.kind !== "unresolved") cited.set(citation.n, citation.source);
		return null;
	});
	return [...cited.values()];
}

function citations(whole: string, numbers: string, doubted: boolean, sources: readonly Source[]): Piece[] | null {
	const all = numbers.split(/[,;–-]/).map((one) => Number(one.trim()));
	const only = all[0] ?? 0;
	if (all.length === 1) {
		const citation: Citation = doubted ? { kind: "unresolved", n: only } : citationOf(only, sources);
		return [{ kind: "citation", text: whole, citation }];
	}
	if (doubted || !all.every((n) => sources.some((source) => source.n === n))) return null;
	// "[1, 2]" is cut at its separators, and nothing of it is lost
	const parts = whole.match(/[^,;–-]+[,;–-]?/g) ?? [];
	return all.map((n, index) => ({ kind: "citation", text: parts[index] ?? "", citation: citationOf(n, sources) }));
}

function opensHere(preceding: string): boolean {
	// `list[1]`, `[words][1]`, `[[1]]` and `\\[1]` are something else
	const last = Array.from(preceding.slice(-2)).pop() ?? "";
	return last === "" || !(WORD.test(last) || "[]\\".includes(last));
}

function closesHere(preceding: string, following: string): boolean {
	if (following.startsWith("(") || following.startsWith("]")) return false;
	// `[1]: https://…` at the start of a line says where a link leads
	if (following.startsWith(":") && /(?:^|\n) {0,3}$/.test(preceding.slice(-4))) return false;
	return !following.startsWith("[") || /^\[\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*\??\]/.test(following);
}

// ------------------------------------------------------------------------------------------------ Markdown

interface Stretch {
	readonly text: string;
	/** Whether it is prose, in which markers count. */
	readonly plain: boolean;
	readonly row: boolean;
	/** What comes after it in the same paragraph. */
	readonly after: string;
}

const FENCE = /^(?:[ \t]*(?:[-*+]|\d+[.)])[ \t]+)?[ \t]*(`{3,}|~{3,})/;
const QUOTE = /^[ \t]*>/;
const TABLE_RULE = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)+\|?\s*$|^\s*\|\s*:?-+:?\s*\|\s*$/;
const LIST_ITEM = /^[ \t]*(?:[-*+]|\d+[.)])[ \t]/;

/** The Markdown in order, cut into prose and what is none; joined again it is the same. */
function stretches(markdown: string): Stretch[] {
	const blocks: { text: string; plain: boolean; row: boolean }[] = [];
	const lines = markdown.match(/[^\n]*\n|[^\n]+$/g) ?? [];
	let fence = "";
	let math = false;
	let listed = false;
	let blank = true;
	let table = false;
	lines.forEach((line, index) => {
		const bare = line.trim();
		const mark = FENCE.exec(line)?.[1] ?? "";
		let plain = false;
		if (fence) {
			if (mark.startsWith(fence) && /^[ \t]*(?:`+|~+)\s*$/.test(line)) fence = "";
		} else if (math) {
			if (bare.endsWith("$$")) math = false;
		} else if (mark && !(mark.startsWith("`") && line.slice(line.indexOf(mark) + mark.length).includes("`"))) {
			fence = mark;
		} else if (bare.startsWith("$$") && !bare.slice(2).includes("$$")) {
			math = true;
		} else if (!QUOTE.test(line) && !(blank && !listed && /^(?: {4}|\t)/.test(line) && bare)) {
			plain = true;
		}
		if (LIST_ITEM.test(line)) listed = true;
		else if (bare && !/^[ \t]/.test(line)) listed = false;
		table = bare.includes("|") && (table || bare.startsWith("|") || TABLE_RULE.test((lines[index + 1] ?? "").trim()));
		// indented code goes on after its first line, a paragraph's line is never code
		blank = !bare || (blank && !plain && !fence && !math);
		const last = blocks[blocks.length - 1];
		// a blank line ends every span
		if (last && last.plain === plain && last.row === table && bare) last.text += line;
		else blocks.push({ text: line, plain, row: table });
	});
	return blocks.flatMap((block) => (block.plain ? inline(block.text, block.row) : { ...block, after: "" }));
}

/** In this order: ticks, which may begin code, math, wikilinks. */
const SPAN = new RegExp(
	[
		/`+/,
		/\$\$[\s\S]+?\$\$/,
		/\$(?!\s)[^$\n]*[^\s$]\$(?!\d)/,
		/\$[^\s$]\$(?!\d)/,
		/\[\[[^[\]\n]*\]\]/,
	]
		.map((one) => one.source)
		.join("|"),
	"g",
);

/**
 * Where runs of backticks begin that others of their length close, the last first, and where those end. No run is
 * looked at twice, however many there are that close none.
 */
export function codeEnds(text: string, withinLines = false): Map<number, number> {
	const ends = new Map<number, number>();
	const later = new Map<number, number>();
	for (const { 0: run, index } of Array.from(text.matchAll(/`+|\n/g)).reverse()) {
		if (run === "\n") {
			if (withinLines) later.clear();
			continue;
		}
		const close = later.get(run.length);
		if (close !== undefined) ends.set(index, close + run.length);
		later.set(run.length, index);
	}
	return ends;
}

/** Prose, and the code, math and wikilinks within it. */
function inline(text: string, row: boolean): Stretch[] {
	const found: Stretch[] = [];
	const ends = codeEnds(text);
	let at = 0;
	const add = (end: number, plain: boolean): void => {
		if (end > at) found.push({ text: text.slice(at, end), plain, row, after: text.slice(end) });
		at = Math.max(at, end);
	};
	for (const match of text.matchAll(SPAN)) {
		if (match.index < at) continue;
		add(match.index, true);
		add(ends.get(match.index) ?? match.index + match[0].length, false);
	}
	add(text.length, true);
	return found;
}
