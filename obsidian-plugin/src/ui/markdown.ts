import { Keymap, MarkdownRenderer, type App, type Component } from "obsidian";
import { NO_CITATIONS_IN, pieces, type Citation } from "../chat/citations";
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
		await MarkdownRenderer.render(app, disarm(markdown), el, source, component);
	} catch (error) {
		// what another plugin makes of a note may fail: the words are shown all the same
		console.error(error);
		el.setText(markdown);
	}
	// a second look, at what is really there
	for (const one of el.findAll(UNWANTED)) one.replaceWith(pictureOf(one, drawing) ?? one.getAttribute("alt") ?? one.getAttribute("src") ?? "");
	for (const link of el.findAll(LINK)) {
		const target = linktext(link);
		if (!target.startsWith("#") && !resolveLink(app, target, source)) link.replaceWith(mark("tarsd-dead-link", link.textContent, en.chat.noSuchNote));
	}
	for (const link of el.findAll(`a:not(${LINK})`)) {
		if (!SAFE.test(link.getAttribute("href") ?? "")) link.replaceWith(...Array.from(link.childNodes));
	}
	for (const box of el.findAll("input")) {
		box.setAttribute("aria-label", en.chat.task);
		box.setAttribute("disabled", "");
	}
	markCitations(el, sources);
	turn(el);
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
		if (!node.data.includes("[") || node.parentElement?.closest(NO_CITATIONS_IN)) continue;
		const found = pieces(node.data, sources, node.nextSibling?.textContent ?? "");
		node.replaceWith(...found.map((piece) => (piece.kind === "text" ? piece.text : citationEl(piece.citation))));
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
		if (!(await (place ? openPlace(app, place, from) : openLink(app, linktext(link), from)))) missing();
	};
	el.onmouseover = (event) => {
		const targetEl = within(event, LINK);
		if (targetEl) hoverLink(app, { event, source: view, hoverParent, targetEl, linktext: linktext(targetEl), sourcePath: source() });
	};
}

function linktext(link: HTMLElement): string {
	return decoded(link.getAttribute("data-href") ?? link.getAttribute("href") ?? "");
}

function decoded(href: string): string {
	try {
		return decodeURIComponent(href);
	} catch {
		return href;
	}
}
