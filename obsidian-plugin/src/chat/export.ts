/** An answer, or a whole conversation, as Markdown to copy or to keep in a note. */

import type { Source } from "../protocol/events";
import { citedIn, replaceMarkers, type Citation } from "./citations";
import type { ChatState, Message } from "./state";

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
	const known = message.sources.length ? message.sources : message.citations;
	const how = (citation: Citation): string | null =>
		citation.kind === "here" ? link(citation.source, String(citation.n)) : null;
	const parts = [replaceMarkers(message.text, known, how).trim()];
	if (message.state === "stopped" || message.state === "interrupted" || message.state === "failed") {
		parts.push(`*${words.incomplete}*`);
	}
	const cited = citedIn(message.text, known);
	if (list && cited.length) {
		const rows = cited.map((source) => `${source.n}. ${named(source, link)}`);
		parts.push(`**${words.sources}**\n\n${rows.join("\n")}`);
	}
	return parts.filter(Boolean).join("\n\n");
}

/** A question as a quote with its answer below it. */
export function turnMarkdown(message: Message, style: ExportStyle): string {
	const question = message.question.trim().replace(/\r\n?/g, "\n");
	const quote = question.split("\n").map((line) => (line ? `> ${line}` : ">"));
	const asked = [`> [!question] ${style.words.question}`, ...quote].join("\n");
	return [asked, answerMarkdown(message, style)].filter(Boolean).join("\n\n");
}

/** The whole conversation under its title, turn by turn. */
export function conversationMarkdown(state: ChatState, style: ExportStyle): string {
	const turns = state.messages.map((message) => turnMarkdown(message, style));
	return [`# ${oneLine(state.title)}`, ...turns].join("\n\n") + "\n";
}

/** The text to append to a note that ends with `tail`: apart from what is there by one empty line. */
export function appended(tail: string, text: string): string {
	const body = text.trim() + "\n";
	if (!tail.trim()) return body;
	if (/\n[^\S\n]*\n$/.test(tail)) return body;
	return (tail.endsWith("\n") ? "\n" : "\n\n") + body;
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

/** `base`, or `base 2`, `base 3`, … : the first name that is not taken. */
export function freeName(base: string, taken: (name: string) => boolean): string {
	let name = base;
	for (let number = 2; taken(name); number++) name = `${base} ${number}`;
	return name;
}

function named(source: Source, link: ExportStyle["link"]): string {
	const text = oneLine(source.heading ? `${source.title} › ${source.heading}` : source.title) || source.path;
	return (source.collection === "" ? link(source, text.replace(/[[\]|]/g, " ")) : null) ?? text;
}

function oneLine(text: string): string {
	return text.split(/\s+/).filter(Boolean).join(" ");
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
