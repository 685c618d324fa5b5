/** Markdown of notes and replies as elements. Nothing of it becomes HTML but through the sanitiser. */

import "./vendor/markdown-it.umd.min.js";
import "./vendor/purify.min.js";
import { h } from "./dom.js";

const { markdownit, DOMPurify } = window;

/** What a link may lead to. An `obsidian:` link can write notes, so there are only those that we make. */
const OUTSIDE = /^(?:https?|mailto):/i;
/** A path of a note, and nothing that a browser takes for another place. */
const NOTE = /^(?![a-z][a-z\d+.-]*:|[/\\?#])/i;
const WIKILINK = /!?\[\[([^[\]\n|]+)(?:\|([^[\]\n]*))?\]\]/y;
const UNSEEN = "\u2060";
const INERT = /\\\[(?=\d{1,3}\??(?:\s*[,;–-]\s*\d{1,3}\??)*\])/y;
const MARKER = /\[(\d{1,3}\??(?:\s*[,;–-]\s*\d{1,3}\??)*)\]/g;

/** HTML in a text stays text already here; the sanitiser is the second line. */
const md = markdownit({ html: false, linkify: true, breaks: true });
const { rules } = md.renderer;
const attribute = (name, value) => `${name}="${md.utils.escapeHtml(value)}"`;
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
	const target = found[1].trim();
	if (!silent) Object.assign(state.push("wikilink", "", 0), { content: found[2]?.trim() || target, meta: target });
	state.pos += found[0].length;
	return true;
});
// "\\[1]" is somebody else's number: a sign that is not seen keeps it from being taken for a citation
md.inline.ruler.before("escape", "inert", (state, silent) => {
	INERT.lastIndex = state.pos;
	if (!INERT.test(state.src)) return false;
	if (!silent) state.push("text_special", "", 0).content = `[${UNSEEN}`;
	state.pos += 2;
	return true;
});
const place = (url) => (OUTSIDE.test(url) ? attribute("href", url) : attribute("data-note", md.utils.lib.mdurl.decode(url, "")));
const anchor = (where, words) => `<a ${where}>${md.utils.escapeHtml(words)}</a>`;
rules.wikilink = (tokens, n) => anchor(attribute("data-note", tokens[n].meta), tokens[n].content);
rules.link_open = (tokens, n) => `<a ${place(tokens[n].attrGet("href"))}>`;
// a picture would tell whoever has it that it was looked at
rules.image = (tokens, n) => anchor(place(tokens[n].attrGet("src")), tokens[n].content || tokens[n].attrGet("src"));
rules.th_open = rules.td_open = (tokens, n, options, env, self) => {
	const side = /\w+$/.exec(tokens[n].attrGet("style") ?? "")?.[0];
	tokens[n].attrs = side ? [["align", side]] : null;
	return self.renderToken(tokens, n, options);
};

let vault = "";
export const linkInto = (name) => (vault = name);

/** Opens a note in Obsidian; `target` is a path or a name, with `#Heading` or without. */
export const obsidianLink = (target) =>
	`obsidian://open?vault=${encodeURIComponent(vault)}&file=${encodeURIComponent(target.replace(/\.md(?=#|$)/i, ""))}`;

/** A text that may grow: only blocks that changed are drawn again. `cite` makes an element of the `1` or `1?` in `[1]`, or null. */
export class MarkdownView {
	#keys = [];

	constructor(el, cite = null) {
		Object.assign(this, { el, cite });
	}

	/** `sources` stands for what `cite` knows. */
	draw(text, sources = "") {
		const { el } = this;
		const blocks = blocksOf(text);
		const keys = blocks.map((block) => block.text + (block.text.includes("[") ? `\0${sources}` : ""));
		let same = 0;
		while (same < keys.length && keys[same] === this.#keys[same]) same++;
		while (el.children.length > same) el.lastChild.remove();
		el.append(...blocks.slice(same).map((block) => h("div", { "data-line": block.line }, ...this.#block(block.text))));
		this.#keys = keys;
		// headings stand below ours and leave out no level
		let last = 2;
		for (const heading of el.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
			last = Math.min(Number(heading.tagName[1]) + 2, last + 1);
			heading.setAttribute("aria-level", last);
		}
	}

	#block(text) {
		const found = DOMPurify.sanitize(md.render(text), SAFE);
		for (const link of found.querySelectorAll("a")) {
			if (link.dataset.note) link.href = obsidianLink(link.dataset.note);
			else if (link.getAttribute("href")) link.target = "_blank";
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
			const within = (where) => node.parentElement?.closest(where);
			if (within("code, pre")) continue;
			const box = within("li") && !node.previousSibling && /^\[([ x])\] /i.exec(node.data);
			if (box) {
				node.data = node.data.slice(4);
				node.before(h("input", { type: "checkbox", checked: box[1] !== " ", disabled: true, "aria-label": "Task" }));
			}
			if (this.cite && !within("a, blockquote")) node.replaceWith(...cited(node.data, this.cite));
			else node.data = freed(node.data);
		}
		return found.childNodes;
	}
}

/** The blocks of a text and their first lines; definitions are for a text as a whole. */
function blocksOf(text) {
	const [tokens, env] = [[], {}];
	const source = text.replace(/\r\n?/g, "\n");
	md.block.parse(source, md, env, tokens);
	if (env.references) return [{ text: source, line: 1 }];
	const starts = tokens.filter(({ level, nesting, map }) => level === 0 && nesting >= 0 && map).map(({ map }) => map[0]);
	const lines = source.split("\n");
	return starts.map((start, n) => ({ text: lines.slice(start, starts[n + 1]).join("\n"), line: start + 1 }));
}

const freed = (text) => text.replaceAll(`[${UNSEEN}`, "[");

/** Text with its markers made elements; `list[1]` and `[words][1]` have none. */
function cited(text, cite) {
	const pieces = [];
	let [at, chain] = [0, -1];
	for (const { 0: whole, 1: inside, index } of text.matchAll(MARKER)) {
		if (index !== chain && /[\p{L}\p{N}_\]\\]$/u.test(text.slice(0, index).slice(-2))) continue;
		const made = inside.split(/([^\d?]+)/).map((part) => (/^\d/.test(part) ? cite(part) : part));
		if (made.includes(null)) continue;
		pieces.push(text.slice(at, index), ...made);
		at = chain = index + whole.length;
	}
	return [...pieces, text.slice(at)].filter(Boolean).map((piece) => (piece.nodeType ? piece : freed(piece)));
}
