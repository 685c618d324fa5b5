import { Keymap, MarkdownRenderer, type App, type Component } from "obsidian";
import { freed, held, NO_CITATIONS_IN, pieces, type Citation, type Piece } from "../chat/citations";
import { oneLine } from "../chat/fold";
import { en } from "../en";
import type { Source } from "../protocol/events";
import { hoverLink, openLink, openPlace, resolveLink, type Place } from "../vault/links";
import { CHAT_VIEW } from "./chat-types";
import { disarm, isPicture } from "./disarm";
import { within } from "./dom";
import type { MessageContext } from "./message-context";

/** What an answer is drawn with; `source` is the note that its links are seen from, "" for none. */
export interface Drawing {
	readonly app: App;
	readonly sources: readonly Source[];
	readonly source: string;
	/** What check boxes of tasks do; without it, nothing. */
	readonly tasks?: Pick<MessageContext, "complete" | "busy">;
}

/** What could load or run something, and must not be in a model's answer whatever way it got there. */
const UNWANTED = "iframe, object, embed, video, audio, form, link, .internal-embed, .external-embed, img";

/**
 * Draw a model's Markdown as the app draws a note, except that nothing in it is carried out, that its `[n]` are links
 * to what they stand for, and that a link without a note is none. The component owns what the app makes for it.
 */
export async function drawAnswer(markdown: string, el: HTMLElement, drawing: Drawing, component: Component): Promise<void> {
	const { app, sources, source } = drawing;
	try {
		await MarkdownRenderer.render(app, held(disarm(markdown)), el, source, component);
	} catch (error) {
		// what another plugin makes of a note may fail: the words are shown all the same
		console.error(error);
		el.setText(markdown);
	}
	// a second look, at what is really there
	for (const one of el.findAll(UNWANTED)) one.replaceWith(pictureOf(one, drawing) ?? one.getAttribute("alt") ?? one.getAttribute("src") ?? "");
	for (const link of el.findAll(LINK)) {
		const target = linktext(app, link, source);
		if (!target.startsWith("#") && !resolveLink(app, target, source)) link.replaceWith(mark("tarsd-dead-link", link.textContent, en.chat.noSuchNote));
	}
	for (const link of el.findAll(`a:not(${LINK})`)) {
		if (!SAFE.test(link.getAttribute("href") ?? "")) link.replaceWith(...Array.from(link.childNodes));
	}
	markCitations(el, sources);
	for (const box of el.findAll("input")) box.replaceWith(taskBox(box as HTMLInputElement, drawing));
	turn(el);
}

/** Boxes that ask for their task to be made done; while an answer is given, they are disabled. */
export const TASK = "input[data-tarsd-task]";

/**
 * A check box in place of one that the app or another plugin made, which might change the conversation's own note. A
 * click on it ticks nothing: it asks for a proposal, where the entry cites the line of an open task of this vault.
 */
function taskBox(box: HTMLInputElement, { sources, tasks }: Drawing): HTMLInputElement {
	const own = box.cloneNode() as HTMLInputElement;
	const item = box.closest("li");
	const task = item && !box.checked && item.dataset["task"]?.trim() === "" ? taskOf(item, sources) : undefined;
	own.checked = box.checked;
	own.disabled = !task || !tasks || tasks.busy();
	own.setAttribute("aria-label", task && tasks ? en.chat.complete(entryOf(item as HTMLElement)) : en.chat.task);
	if (!task || !tasks) return own;
	own.dataset["tarsdTask"] = String(task.n);
	own.onclick = (event) => {
		event.preventDefault();
		if (!tasks.busy()) tasks.complete(task);
	};
	return own;
}

/** The line that an entry of a list cites last, itself and not in an entry below it. */
function taskOf(item: HTMLElement, sources: readonly Source[]): Source | undefined {
	const cited = item.findAll("[data-tarsd-source]").filter((link) => link.closest("li") === item);
	const n = Number(cited[cited.length - 1]?.dataset["tarsdSource"] ?? "");
	return sources.find((one) => one.n === n && one.collection === "" && one.start_line > 0 && one.start_line === one.end_line);
}

/** What an entry says, without its citations and what is below it. */
function entryOf(item: HTMLElement): string {
	const copy = item.cloneNode(true) as HTMLElement;
	for (const one of copy.findAll("ul, ol, .tarsd-citation")) one.remove();
	return oneLine(copy.textContent ?? "");
}

/** The picture of the vault that an embed shows, drawn by ourselves; null for whatever else it is. */
function pictureOf(embed: HTMLElement, { app, source }: Drawing): HTMLElement | null {
	const found = embed.matches(".internal-embed") ? resolveLink(app, decoded(embed.getAttribute("src") ?? ""), source) : null;
	if (!found || !isPicture(found.file.path)) return null;
	const alt = embed.getAttribute("alt") ?? found.file.name;
	const width = embed.getAttribute("width") ?? /^\d{1,4}$/.exec(alt)?.[0];
	return createEl("img", { cls: "tarsd-picture", attr: { src: app.vault.getResourcePath(found.file), alt, ...(width ? { width } : {}) } });
}

/** Where links may lead that are no notes: to the web, to somebody, or to a place in the same text. */
const SAFE = /^(?:https?:|mailto:|#)/i;

const LETTER = /\p{L}/u;
/** The blocks that Unicode keeps for what is written from right to left, as Hebrew and Arabic. */
const FROM_RIGHT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{1e800}-\u{1efff}]/u;

/**
 * Tables and lists begin on the side that their first letter says. The app has `dir="auto"` on every line and cell, and
 * what is around them does not look into such elements.
 */
function turn(el: HTMLElement): void {
	for (const one of [el, ...el.findAll("ul, ol, table, blockquote")]) {
		const letter = LETTER.exec(one.textContent ?? "")?.[0];
		if (letter) one.dir = FROM_RIGHT.test(letter) ? "rtl" : "ltr";
	}
	// an item that has its own direction has its marker on its own side, where the list has no room for it
	for (const item of el.findAll("li[dir=auto]")) item.removeAttribute("dir");
}

function markCitations(el: HTMLElement, sources: readonly Source[]): void {
	const texts: Text[] = [];
	const walker = el.doc.createTreeWalker(el, NodeFilter.SHOW_TEXT);
	while (walker.nextNode()) texts.push(walker.currentNode as Text);
	for (const node of texts) {
		if (!node.data.includes("[")) continue;
		const found: readonly Piece[] = node.parentElement?.closest(NO_CITATIONS_IN)
			? [{ kind: "text", text: node.data }]
			: pieces(node.data, sources, node.nextSibling?.textContent ?? "");
		node.replaceWith(...found.map((piece) => (piece.kind === "text" ? freed(piece.text) : citationEl(piece.citation))));
	}
}

/** A citation as it stands in the text. */
function citationEl(citation: Citation): HTMLElement {
	const { n } = citation;
	if (citation.kind === "unresolved") return mark("tarsd-citation is-unresolved", `${n}?`, en.chat.unresolved(n));
	const { source, target } = citation;
	const title = source.heading ? `${source.title} › ${source.heading}` : source.title;
	if (citation.kind === "elsewhere") return mark("tarsd-citation", String(n), en.chat.elsewhere(title, source.collection));
	return createEl("a", {
		cls: "internal-link tarsd-citation",
		text: String(n),
		attr: { href: target, "data-href": target, "data-tarsd-source": n, "aria-label": en.chat.citation(n, title) },
	});
}

/** Text that could be a link and is none, with the reason. */
function mark(cls: string, text: string, title: string): HTMLElement {
	return createSpan({ cls, text, title });
}

const LINK = "a.internal-link";

/**
 * Make all internal links under `el` work, present and to come; the app does that in notes only. `sourceOf` gives the
 * source that a marked link stands for, and `missing` is called when a link led nowhere after all.
 */
export function wireLinks(
	el: HTMLElement,
	{ services: { app }, hoverParent, source }: Pick<MessageContext, "services" | "hoverParent" | "source">,
	sourceOf: (link: HTMLElement) => Place | undefined,
	missing: () => void,
	view = CHAT_VIEW,
): void {
	el.onclick = el.onauxclick = async (event: MouseEvent) => {
		const link = within(event, LINK);
		// the right button is for a menu
		if (!link || event.button > 1 || event.defaultPrevented) return;
		event.preventDefault();
		const from = { source: source(), where: event.button === 1 ? ("tab" as const) : Keymap.isModEvent(event) };
		const place = sourceOf(link);
		if (!(await (place ? openPlace(app, place, from) : openLink(app, linktext(app, link, from.source), from)))) missing();
	};
	el.onmouseover = (event) => {
		const targetEl = within(event, LINK);
		if (targetEl) hoverLink(app, { event, source: view, hoverParent, targetEl, linktext: linktext(app, targetEl, source()), sourcePath: source() });
	};
}

/** What a link says: as it stands where a note has that very name, such as `50%25 off`, else decoded. */
function linktext(app: App, link: HTMLElement, source: string): string {
	const href = link.getAttribute("data-href") ?? link.getAttribute("href") ?? "";
	return resolveLink(app, href, source) ? href : decoded(href);
}

function decoded(href: string): string {
	try {
		return decodeURIComponent(href);
	} catch {
		return href;
	}
}
