/** An answer, or a whole conversation, as Markdown to copy or to keep in a note. */

import type { Source } from "../protocol/events";
import { citedIn, replaceMarkers, type Citation } from "./citations";
import { oneLine } from "./fold";
import type { Message } from "./state";

/** The words that stand in what is exported. */
export interface ExportWords {
	readonly sources: string;
	readonly question: string;
	/** Said after an answer that was stopped or broke off. */
	readonly incomplete: string;
}

/** How an exported answer looks. */
export interface ExportStyle {
	readonly words: ExportWords;
	/** The link to a source in the person's own link style, with this text; null where none is possible. */
	readonly link: (source: Source, text: string) => string | null;
	/** Whether the sources are listed at the end. */
	readonly list: boolean;
}

const NAME_CHARS = 80;
/** File systems take 255; a number and the ending come after it. */
const NAME_BYTES = 230;
const RESERVED = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;

/** The answer: its markers are links, those that lead nowhere are plain text, and the sources follow. */
export function answerMarkdown(message: Message, style: ExportStyle): string {
	const { words, link, list } = style;
	const { text, sources, citations, state } = message;
	const known = sources.length ? sources : citations;
	const how = (citation: Citation): string | null =>
		citation.kind === "here" ? link(citation.source, String(citation.n)) : null;
	const rows = list ? citedIn(text, known).map((source) => `${source.n}. ${named(source, link)}`) : [];
	return [
		replaceMarkers(text, known, how).trim(),
		/stopped|interrupted|failed/.test(state) && `*${words.incomplete}*`,
		rows.length && `**${words.sources}**\n\n${rows.join("\n")}`,
	]
		.filter(Boolean)
		.join("\n\n");
}

/** A question as a quote with its answer below it. */
export function turnMarkdown(message: Message, style: ExportStyle): string {
	const asked = `[!question] ${style.words.question}\n${message.question.trim()}`;
	const quote = asked.split(/\r\n?|\n/).map((line) => `> ${line}`.trimEnd());
	return `${quote.join("\n")}\n\n${answerMarkdown(message, style)}`.trimEnd();
}

/** The text to append to a note that ends with `tail`: apart from it by one empty line, and with its line ends. */
export function appended(tail: string, text: string): string {
	const apart = !tail.trim() || /\n[^\S\n]*\n$/.test(tail) ? "" : tail.endsWith("\n") ? "\n" : "\n\n";
	const more = `${apart}${text.trim()}\n`;
	return tail.includes("\r\n") ? more.replace(/\r?\n/g, "\r\n") : more;
}

/**
 * A file name, without its ending, from a title: nothing in it that a file system, a link or Obsidian would take for
 * something else; `fallback` when nothing is left.
 */
export function fileName(title: string, fallback: string): string {
	const clean = oneLine(title)
		.replace(/[\p{Cc}\u200E\u200F\u202A-\u202E\u2066-\u2069\uFEFF]/gu, "")
		.replace(/[\\/:]/g, "-")
		.replace(/[*?"<>|#^[\]]/g, "")
		.replace(/\s+/g, " ");
	const short = cut(clean.replace(/^[.\s-]+/, ""), NAME_CHARS).replace(/[.\s-]+$/, "");
	if (!short) return fallback;
	return RESERVED.test(short) ? `_${short}` : short;
}

function named(source: Source, link: ExportStyle["link"]): string {
	const text = oneLine(source.heading ? `${source.title} › ${source.heading}` : source.title) || source.path;
	return (source.collection === "" ? link(source, text.replace(/[[\]|]/g, " ")) : null) ?? text;
}

/** At most so many characters and `NAME_BYTES`, cut at a word where there is one in the second half. */
function cut(text: string, most: number): string {
	const characters = Array.from(text).slice(0, most);
	while (new TextEncoder().encode(characters.join("")).length > NAME_BYTES) characters.pop();
	const short = characters.join("");
	if (short === text) return text;
	const space = short.lastIndexOf(" ");
	return space > most / 2 ? short.slice(0, space) : short;
}
