import { Keymap, MarkdownRenderer, type App, type Component, type HoverParent } from "obsidian";
import { NO_CITATIONS_IN, pieces, type Citation } from "../chat/citations";
import { en } from "../en";
import type { Source } from "../protocol/events";
import { hoverLink, openLink, openPlace, resolveLink } from "../vault/links";
import { disarm } from "./disarm";

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
	await MarkdownRenderer.render(drawing.app, disarm(markdown), el, drawing.source, component);
	sweep(el);
	markDeadLinks(el, drawing);
	markCitations(el, drawing.sources);
	turn(el);
}

const LETTER = /\p{L}/u;
const FROM_RIGHT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u;

/**
 * Tables and lists begin on the side that their first letter says. The app has `dir="auto"` on every line and cell, and
 * what is around them does not look into such elements.
 */
function turn(el: HTMLElement): void {
	for (const one of [el, ...Array.from(el.querySelectorAll<HTMLElement>("ul, ol, table, blockquote"))]) {
		const letter = LETTER.exec(one.textContent ?? "")?.[0];
		if (letter !== undefined) one.dir = FROM_RIGHT.test(letter) ? "rtl" : "ltr";
	}
	// an item that has its own direction has its marker on its own side, where the list has no room for it
	for (const item of Array.from(el.querySelectorAll("li[dir=auto]"))) item.removeAttribute("dir");
}

/** A second look, at what is really there. */
function sweep(el: HTMLElement): void {
	for (const one of Array.from(el.querySelectorAll(UNWANTED))) {
		const words = one.getAttribute("alt") ?? one.getAttribute("src") ?? "";
		one.replaceWith(el.doc.createTextNode(words));
	}
}

function markDeadLinks(el: HTMLElement, { app, source }: Drawing): void {
	for (const link of Array.from(el.querySelectorAll<HTMLElement>("a.internal-link"))) {
		const target = linktext(link);
		if (target.startsWith("#") || resolveLink(app, target, source)) continue;
		const span = createSpan({ cls: "tarsd-dead-link", text: link.textContent ?? "", attr: { title: en.chat.noSuchNote } });
		link.replaceWith(span);
	}
}

function markCitations(el: HTMLElement, sources: readonly Source[]): void {
	const texts: Text[] = [];
	const walker = el.doc.createTreeWalker(el, NodeFilter.SHOW_TEXT);
	while (walker.nextNode()) {
		const node = walker.currentNode;
		if (node.nodeValue?.includes("[") && !node.parentElement?.closest(NO_CITATIONS_IN)) texts.push(node as Text);
	}
	for (const node of texts) {
		const found = pieces(node.data, sources, followingText(node));
		if (!found.some((piece) => piece.kind === "citation")) continue;
		node.replaceWith(...found.map((piece) => (piece.kind === "text" ? piece.text : citationEl(piece.citation))));
	}
}

function followingText(node: Text): string {
	return node.nextSibling?.textContent ?? "";
}

/** A citation as it stands in the text. */
export function citationEl(citation: Citation): HTMLElement {
	const { n } = citation;
	if (citation.kind === "unresolved") {
		return createSpan({ cls: "tarsd-citation is-unresolved", text: `${n}?`, attr: { title: en.chat.unresolved(n) } });
	}
	const { source, target } = citation;
	const title = source.heading ? `${source.title} › ${source.heading}` : source.title;
	if (citation.kind === "elsewhere") {
		const label = en.chat.elsewhere(title, source.collection);
		return createSpan({ cls: "tarsd-citation is-elsewhere", text: String(n), attr: { title: label } });
	}
	return createEl("a", {
		cls: "internal-link tarsd-citation",
		text: String(n),
		href: target,
		attr: { "data-href": target, "data-tarsd-source": String(n), "aria-label": en.chat.citation(n, title) },
	});
}

/** What the links in a list of messages need: whose sources a number belongs to, and from where a link is seen. */
export interface Links {
	readonly app: App;
	readonly view: string;
	readonly hoverParent: HoverParent;
	/** The source that a marked link stands for, if it is one. */
	sourceOf(link: HTMLElement): Source | undefined;
	source(): string;
	/** A link led nowhere after all: its note was removed meanwhile. */
	missing(): void;
}

/** Make all internal links under `el` work, present and to come; the app does that in notes only. */
export function wireLinks(el: HTMLElement, links: Links, component: Component): void {
	const follow = (event: MouseEvent): void => {
		const link = linkAt(event);
		if (!link || event.defaultPrevented) return;
		event.preventDefault();
		const where = event.button === 1 ? "tab" : Keymap.isModEvent(event);
		const place = links.sourceOf(link);
		const from = { source: links.source(), where };
		const opening = place ? openPlace(links.app, place, from) : openLink(links.app, linktext(link), from);
		void opening.then((opened) => {
			if (!opened) links.missing();
		});
	};
	component.registerDomEvent(el, "click", follow);
	component.registerDomEvent(el, "auxclick", (event) => {
		if (event.button === 1) follow(event);
	});
	component.registerDomEvent(el, "mouseover", (event) => {
		const targetEl = linkAt(event);
		if (!targetEl) return;
		const { app, view, hoverParent } = links;
		hoverLink(app, { event, view, hoverParent, targetEl, linktext: linktext(targetEl), source: links.source() });
	});
}

function linkAt(event: Event): HTMLElement | null {
	const { target } = event;
	if (target === null || !("closest" in target)) return null;
	return (target as Element).closest<HTMLElement>("a.internal-link");
}

function linktext(link: HTMLElement): string {
	const href = link.dataset["href"] ?? link.getAttribute("href") ?? "";
	try {
		return decodeURIComponent(href);
	} catch {
		return href;
	}
}
