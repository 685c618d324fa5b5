/** What a model wrote must be shown, not run: embeds, queries, scripts, frames and pictures from elsewhere. Pure. */

import fences from "../../../tarsd/data/executable_fences.json";
import { codeEnds } from "../chat/citations";

/**
 * The languages that are only shown. Any other name may belong to a plugin that runs the code, so such a block is shown
 * as plain text; Mermaid is drawn, if it loads nothing.
 */
const SHOWN = new Set(fences.plain);
/** How inline code begins that a plugin carries out. */
const RUNS = new RegExp(`^\\s*(?:${fences.inline.map((begin) => begin.replace(/[$[]/g, "\\$&")).join("|")})`);
/** What of a diagram may load something or lead elsewhere: tags, pictures, styles, settings, addresses, links. */
const LOADS = new RegExp(fences.guards.mermaid, "im");

const FENCE = /^((?:[ \t]*(?:>|[-*+]|\d{1,9}[.)])(?=[ \t]|$|`|~|>))*[ \t]*)(`{3,}|~{3,})([^\n]*)/;
const MATH = /\$\$[\s\S]+?\$\$|\$(?!\s)[^$\n]*[^\s$]\$(?!\d)/g;
/** Tags that only say how words look, without anything that they could load or run. */
const HARMLESS = /^<\/?(?:b|br|del|details|em|hr|i|ins|kbd|mark|s|small|strong|sub|summary|sup|u)\s*\/?>/i;
const ADDRESS = /^<(?:https?:\/\/|mailto:)[^\s<>]*>/i;
/** The beginning of a tag with attributes, or one that goes on in the next line. */
const WITH_ATTRIBUTES = /<(?=\/?[a-z][\w:-]*(?:[\s/][^<>]*=|[ \t]*$))/gim;
/** The endings of pictures; what else is embedded may bring more with it than is seen here. */
const ENDING = String.raw`\.(?:png|jpe?g|gif|webp|avif|bmp|svg)`;
/** What says where a picture of the vault is: no address, and nothing that might be read as one. */
const INSIDE = String.raw`(?!\s*\/\/)[\p{L}\p{M}\p{N}_ .\/@+~,'=%-]+${ENDING}`;
/** A picture of the vault behind its exclamation mark, as a wikilink or a Markdown link. */
const PICTURE = String.raw`\[\[${INSIDE}(?:\|[^[\]<>\n]*)?\]\](?!\()|\[[^[\]<>\n]*\]\((?![^()\n]* )${INSIDE}\)`;
/** Every run of exclamation marks, with what makes it an embed, or else the bracket that may make it one. */
const SIGNS = new RegExp(`(!+)(?:(${PICTURE})|(\\[\\[|\\[[^[\\]]*\\][(\\[])|(\\[))?`, "giu");
/** Whether a file of this name is a picture that may be shown. */
export const isPicture = (path: string): boolean => new RegExp(`${ENDING}$`, "i").test(path);
/**
 * The commands of TeX that bring styles, and pictures with them, or links and names of any kind; and those that give
 * commands other meanings, which would last for the notes as well.
 */
const TEX = /\\(?=(?:style|bbox|mmltoken|href|class|cssid|data|require|unicode|fcolorbox|setoptions|let|[gex]?def[a-z]*|(?:re)?new(?!line)[a-z]*|provide[a-z]*|declare[a-z]*|csname)(?![a-z]))/gi;
/** What a fence may stand in without being one: comments, math, HTML. */
const AROUND = /%%|\$\$|<[a-z]/i;
/** Where a tag, a comment or a template may begin. */
const TAG = /<(?=[a-z/!?%])/gi;

/**
 * The same Markdown without what would be carried out when it is drawn. Code is left as it is where it is certain to
 * be code; where that hangs on the finer points of lists and quotes, tags with attributes are made plain in it too.
 */
export function disarm(markdown: string): string {
	const whole = markdown.replace(/\r\n?/g, "\n");
	// what is math hangs on finer points too, so wherever there may be any the commands are blunt
	const blunt = (text: string): string => (whole.includes("$") ? text.replace(TEX, "\\\u2060") : text);
	const around = whole.search(AROUND);
	const done: string[] = [];
	let at = 0;
	let prose = "";
	let fence = "";
	let certain = true;
	const flush = (): void => {
		if (prose !== "") done.push(disarmProse(blunt(prose)));
		prose = "";
	};
	for (const line of whole.match(/[^\n]*\n|[^\n]+$/g) ?? []) {
		const [, prefix = "", mark = "", rest = ""] = FENCE.exec(line) ?? [];
		if (fence !== "") {
			const ends = mark.startsWith(fence) && rest.trim() === "" && (!certain || /^ {0,3}$/.test(prefix));
			done.push(certain || ends ? line : blunt(doubted(line)));
			if (ends) fence = "";
		} else if (mark !== "" && !(mark.startsWith("`") && rest.includes("`"))) {
			flush();
			fence = mark;
			certain = prefix === "" && (around < 0 || at < around);
			done.push(opener(line, certain && isPlainDiagram(whole.slice(at + line.length), mark)));
		} else {
			prose += line;
		}
		at += line.length;
	}
	flush();
	// a text that begins like properties would be taken for them, and be hidden
	const text = done.join("");
	return text.startsWith("---") ? `\n${text}` : text;
}

/** Whether code of this language is only shown. */
export function onlyShown(language: string): boolean {
	return SHOWN.has(language.toLowerCase());
}

/** Whether code that begins here and ends with the mark is nothing that Mermaid would load something for. */
function isPlainDiagram(text: string, mark: string): boolean {
	const [code = ""] = text.split(new RegExp(`^ {0,3}${mark}+[ \\t]*$`, "m"), 1);
	// a class may say what it is between double brackets
	return !LOADS.test(code.replace(/<<\w+>>/g, ""));
}

/** The first line of a block of code, with a language that nobody runs; `diagram` allows Mermaid, too. */
function opener(line: string, diagram: boolean): string {
	const [, prefix = "", mark = "", rest = ""] = FENCE.exec(line) ?? [];
	const language = /^\s*\{?\.?([^\s{},]*)/.exec(rest)?.[1] ?? "";
	const shown = language === "" || (language.toLowerCase() === "mermaid" ? diagram : onlyShown(language));
	const info = shown ? rest.replace(/[{}<]/g, "") : "text";
	return mark === "" ? line : prefix + mark + info + (line.endsWith("\n") ? "\n" : "");
}

/** What may be code, or may be none. */
function doubted(text: string): string {
	return unembedded(opener(text, false).replace(WITH_ATTRIBUTES, "&lt;"));
}

function disarmProse(prose: string): string {
	return prose.split(/(\n[ \t]*\n)/).map(disarmParagraph).join("");
}

function disarmParagraph(text: string): string {
	const code = codeSpans(text);
	const loose = between(text, code, (outside) => outside, () => "").includes("`");
	return between(text, code, disarmWords, (whole, at) => {
		if (text[at - 1] === "\\") return null;
		const ticks = /^`+/.exec(whole)?.[0] ?? "";
		const inside = whole.slice(ticks.length, -ticks.length);
		// with an invisible sign before it, such code is shown and not carried out
		const span = RUNS.test(inside) ? `${ticks}\u2060${inside}${ticks}` : whole;
		return loose || inside.includes("|") ? doubted(span) : span;
	});
}

/** The inline code of a text that ends on its line, none inside another. */
function codeSpans(text: string): Span[] {
	const found: Span[] = [];
	let at = 0;
	for (const [start, end] of Array.from(codeEnds(text, true)).reverse()) {
		if (start < at) continue;
		found.push({ index: start, whole: text.slice(start, end) });
		at = end;
	}
	return found;
}

function disarmWords(text: string): string {
	const formulas = Array.from(text.matchAll(MATH), ({ 0: whole, index }) => ({ index, whole }));
	return between(text, formulas, disarmPlain, (math) => math.replace(TAG, "< "));
}

function disarmPlain(text: string): string {
	const plain = unembedded(text);
	return plain.replace(TAG, (sign, at: number) => {
		const rest = plain.slice(at, at + 2_000);
		return HARMLESS.test(rest) || ADDRESS.test(rest) ? sign : "&lt;";
	});
}

/**
 * An embed becomes a link, but for a picture of the vault; an exclamation before a number stays one, with an invisible
 * sign behind it.
 */
function unembedded(text: string): string {
	return text.replace(SIGNS, (_, signs: string, picture?: string, embed?: string, bracket?: string) =>
		picture ? `!${picture}` : (embed ?? (bracket ? `${signs}\u2060[` : signs)),
	);
}

/** A stretch of a text, and where it begins. */
interface Span {
	readonly index: number;
	readonly whole: string;
}

/** The text with every stretch replaced by what `inside` makes of it, unless that is null, and all else by `outside`. */
function between(
	text: string,
	spans: readonly Span[],
	outside: (text: string) => string,
	inside: (whole: string, at: number) => string | null,
): string {
	const done: string[] = [];
	let at = 0;
	for (const { index, whole } of spans) {
		const made = inside(whole, index);
		if (made === null) continue;
		done.push(outside(text.slice(at, index)), made);
		at = index + whole.length;
	}
	return done.join("") + outside(text.slice(at));
}
