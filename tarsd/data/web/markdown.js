/** Markdown of notes and replies as elements. Nothing of it becomes HTML but through the sanitiser. */

import "./vendor/markdown-it.umd.min.js";
import "./vendor/purify.min.js";
import { h } from "./dom.js";

const { markdownit, DOMPurify } = window;

/** What a link may lead to. An `obsidian:` link can write notes, so only those are made that we make ourselves. */
const OUTSIDE = /^(?:https?|mailto):/i;
/** A path of a note, and nothing that a browser takes for another place. */
const NOTE = /^(?![a-z][a-z\d+.-]*:|[/\\?#])/i;
const WIKILINK = /!?\[\[([^[\]\n|]+)(?:\|([^[\]\n]*))?\]\]/y;

/** HTML in the text stays text; the sanitiser is a second line of defence behind that. */
const md = markdownit({ html: false, linkify: true, breaks: true });
const { escapeHtml } = md.utils;
const { rules } = md.renderer;
// "Tea.md" is a note and no web address
md.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
md.validateLink = (url) => OUTSIDE.test(url) || NOTE.test(url);

const SAFE = {
	RETURN_DOM_FRAGMENT: true,
	ALLOWED_TAGS: "a blockquote br code em h1 h2 h3 h4 h5 h6 hr li ol p pre s strong table tbody td th thead tr ul #text".split(" "),
	ALLOWED_ATTR: ["align", "data-note", "href", "start", "title"],
	ALLOW_DATA_ATTR: false,
	ALLOWED_URI_REGEXP: OUTSIDE,
	ADD_URI_SAFE_ATTR: ["align", "data-note", "start"],
};

md.inline.ruler.before("link", "wikilink", (state, silent) => {
	WIKILINK.lastIndex = state.pos;
	const found = WIKILINK.exec(state.src);
	if (!found) return false;
	const [whole, target, words] = found;
	if (!silent) Object.assign(state.push("wikilink", "", 0), { content: words?.trim() || target.trim(), meta: target.trim() });
	state.pos += whole.length;
	return true;
});
const anchor = (place, words) => `<a ${place}>${escapeHtml(words)}</a>`;
const placeOf = (url) => (OUTSIDE.test(url) ? `href="${escapeHtml(url)}"` : `data-note="${escapeHtml(decoded(url))}"`);
rules.wikilink = ([...tokens], index) => anchor(`data-note="${escapeHtml(tokens[index].meta)}"`, tokens[index].content);
rules.link_open = (tokens, index) => `<a ${placeOf(tokens[index].attrGet("href"))}>`;
// a picture would tell whoever has it that it was looked at
rules.image = (tokens, index) => {
	const url = tokens[index].attrGet("src");
	return anchor(placeOf(url), tokens[index].content || url);
};
for (const name of ["th_open", "td_open"]) {
	rules[name] = (tokens, index, options, env, self) => {
		const side = /\w+$/.exec(tokens[index].attrGet("style") ?? "")?.[0];
		tokens[index].attrs = side ? [["align", side]] : null;
		return self.renderToken(tokens, index, options);
	};
}

function decoded(url) {
	try {
		return decodeURIComponent(url);
	} catch {
		return url;
	}
}

let vault = "";
/** The vault that links to notes are for. */
export const linkInto = (name) => (vault = name);

/** The link that opens a note in Obsidian; `target` is a path or a name, with `#Heading` or without. */
export function obsidianLink(target) {
	return `obsidian://open?vault=${encodeURIComponent(vault)}&file=${encodeURIComponent(target.replace(/\.md(?=#|$)/i, ""))}`;
}

/**
 * A text that may grow: only the blocks that changed are drawn again. `cite` makes an element of the number in `[1]`,
 * or gives null to leave it; without it no marker is looked for.
 */
export class MarkdownView {
	#keys = [];

	constructor(el, cite = null) {
		Object.assign(this, { el, cite });
	}

	/** `sources` stands for what `cite` knows: where it differs, markers are drawn again. */
	draw(text, sources = "") {
		const blocks = blocksOf(text);
		const keys = blocks.map(({ text }) => (text.includes("[") ? `${text}\0${sources}` : text));
		const same = keys.findIndex((key, n) => key !== this.#keys[n]);
		if (same >= 0) {
			const drawn = blocks.slice(same).map(({ text, line }) => h("div", { "data-line": line }, ...this.#block(text)));
			while (this.el.children.length > same) this.el.lastChild.remove();
			this.el.append(...drawn);
		}
		while (this.el.children.length > blocks.length) this.el.lastChild.remove();
		this.#keys = keys;
		level(this.el);
	}

	#block(text) {
		const found = DOMPurify.sanitize(md.render(text), SAFE);
		for (const link of found.querySelectorAll("a")) {
			if (link.dataset.note) link.href = obsidianLink(link.dataset.note);
			else if (!link.getAttribute("href")) link.replaceWith(...link.childNodes);
			else link.target = "_blank";
			link.rel = "noopener noreferrer";
		}
		for (const table of found.querySelectorAll("table")) {
			// it may be wider than the screen, so a keyboard has to reach it
			const wide = h("div", { class: "wide", tabindex: 0, role: "group", "aria-label": "Table" });
			table.replaceWith(wide);
			wide.append(table);
		}
		for (const block of found.children) block.dir = block.tagName === "PRE" ? "ltr" : "auto";
		const walker = document.createTreeWalker(found, NodeFilter.SHOW_TEXT);
		const texts = [];
		while (walker.nextNode()) texts.push(walker.currentNode);
		for (const node of texts) {
			if (node.parentElement?.closest("code, pre")) continue;
			if (node.parentElement?.closest("li") && !node.previousSibling) node.data = node.data.replace(/^\[([ x])\](?= )/i, task);
			if (this.cite && !node.parentElement?.closest("a, blockquote")) node.replaceWith(...cited(node.data, this.cite));
		}
		return found.childNodes;
	}
}

const task = (_, mark) => (mark === " " ? "☐" : "☑");

/** The blocks of a text with the line at which each begins, from 1 on; definitions are for a text as a whole. */
export function blocksOf(text) {
	const [tokens, env] = [[], {}];
	const source = text.replace(/\r\n?/g, "\n").replace(/\0/g, "\ufffd");
	md.block.parse(source, md, env, tokens);
	if (env.references) return [{ text: source, line: 1 }];
	const starts = tokens.filter(({ level, nesting, map }) => level === 0 && nesting >= 0 && map).map(({ map }) => map[0]);
	const lines = source.split("\n");
	return starts.map((start, n) => ({ text: lines.slice(start, starts[n + 1]).join("\n"), line: start + 1 }));
}

/** Headings stand below ours and leave out no level, whatever the author did. */
function level(el) {
	let last = 2;
	for (const heading of el.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
		last = Math.min(Number(heading.tagName[1]) + 2, last + 1);
		heading.setAttribute("aria-level", last);
	}
}

const MARKER = /\[(\d{1,3}\??(?:\s*[,;–-]\s*\d{1,3}\??)*)\]/g;

/** A stretch of text with its markers made elements; `list[1]` and `[words][1]` have none. */
function cited(text, cite) {
	const pieces = [];
	let [at, chain] = [0, -1];
	for (const { 0: whole, 1: inside, index } of text.matchAll(MARKER)) {
		const end = index + whole.length;
		if (index !== chain && /[\p{L}\p{N}_\]\\]$/u.test(text.slice(0, index))) continue;
		const made = inside.split(/([^\d?]+)/).map((part) => (/^\d/.test(part) ? cite(parseInt(part), part.endsWith("?")) : part));
		if (made.includes(null)) continue;
		pieces.push(text.slice(at, index), ...made);
		at = chain = end;
	}
	return [...pieces, text.slice(at)].filter(Boolean);
}
