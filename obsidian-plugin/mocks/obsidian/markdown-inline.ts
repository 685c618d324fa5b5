/** Text that is safe inside HTML. */
export function escape(text: string): string {
	return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}

const attribute = (name: string, value: string): string => ` ${name}="${escape(value)}"`;

/** `Note#Heading` is shown as `Note > Heading`, and `#Heading` alone as `Heading`. */
function linkText(target: string): string {
	return target
		.split("#")
		.filter((part) => part !== "")
		.map((part) => part.replace(/^\^/, "^"))
		.join(" > ");
}

function internalLink(target: string, text: string): string {
	const href = attribute("data-href", target) + attribute("href", target);
	return `<a${href} class="internal-link" target="_blank" rel="noopener nofollow">${text}</a>`;
}

function wikilink(inner: string): string {
	const bar = inner.indexOf("|");
	const target = (bar < 0 ? inner : inner.slice(0, bar)).trim();
	return internalLink(target, escape(bar < 0 ? linkText(target) : inner.slice(bar + 1).trim()));
}

function markdownLink(text: string, target: string): string {
	const href = target.replace(/^<|>$/g, "");
	return SCHEME.test(href) ? externalLink(href, inline(text)) : internalLink(href, inline(text));
}

/** What tells an address from a note. */
const SCHEME = /^[a-z][a-z0-9+.-]*:/i;

function externalLink(href: string, html: string): string {
	const attributes = `${attribute("aria-label", href)} data-tooltip-position="top" rel="noopener nofollow" class="external-link"`;
	return `<a${attributes}${attribute("href", href)} target="_blank">${html}</a>`;
}

function image(alt: string, src: string): string {
	if (SCHEME.test(src)) return `<img${attribute("alt", alt)}${attribute("src", src)} referrerpolicy="no-referrer">`;
	return embed(src);
}

function embed(inner: string): string {
	const target = inner.split("|")[0] ?? inner;
	return `<span${attribute("alt", target)}${attribute("src", target)} class="internal-embed"></span>`;
}

type Rule = [RegExp, (...groups: string[]) => string];

/** In the order in which they win. What is inside code stays as it is. */
const RULES: Rule[] = [
	[/^\\([\\`*_{}[\]()#+\-.!|~=<>$%])/, (char) => escape(char)],
	[/^(`+)(?!`)([^]*?[^`])\1(?!`)/, (_ticks, code) => `<code>${escape(code.replace(/^ (.*) $/, "$1"))}</code>`],
	[/^%%[^]*?%%/, () => ""],
	[/^\$\$([^]+?)\$\$/, (tex) => `<span class="math math-block is-loaded">${escape(tex)}</span>`],
	[/^\$(?!\s)([^$\n]+?[^\s\\]|[^\s$\\])\$(?!\d)/, (tex) => `<span class="math math-inline is-loaded">${escape(tex)}</span>`],
	[/^!\[\[([^\]\n]+)\]\]/, embed],
	[/^\[\[([^\]\n]+)\]\]/, wikilink],
	[/^!\[([^\]]*)\]\(([^()\s]+|<[^>]+>)(?:\s+"[^"]*")?\)/, image],
	[/^\[((?:[^[\]]|\[[^[\]]*\])*)\]\(([^()\s]+|<[^>]+>)(?:\s+"[^"]*")?\)/, markdownLink],
	[/^<(https?:\/\/[^\s>]+)>/, (url) => externalLink(url, escape(url))],
	[/^<\/?[a-z][^<>]*>/i, () => ""],
	[/^\*\*(?=\S)([^]+?\S)\*\*(?!\*)|^\*\*(\S)\*\*/, (text, one) => `<strong>${inline(text || one)}</strong>`],
	[/^__(?=\S)([^]+?\S)__(?!\w)/, (text) => `<strong>${inline(text)}</strong>`],
	[/^\*(?=[^\s*])([^*]*[^\s*])\*(?!\*)/, (text) => `<em>${inline(text)}</em>`],
	[/^_(?=[^\s_])([^_]*[^\s_])_(?!\w)/, (text) => `<em>${inline(text)}</em>`],
	[/^~~(?=\S)([^]+?)~~/, (text) => `<del>${inline(text)}</del>`],
	[/^==(?=\S)([^]+?)==/, (text) => `<mark>${inline(text)}</mark>`],
	[/^https?:\/\/[^\s<>"')\]]+/, () => ""],
];

const HTML = RULES.findIndex(([rule]) => rule.source.startsWith("^<\\/?"));
const BARE = RULES.length - 1;

/** The inside of a paragraph. HTML goes through as it is: it is cleaned once, at the end, as in the app. */
export function inline(text: string): string {
	let out = "";
	let rest = text;
	let before = "";
	while (rest !== "") {
		const { html, length } = step(rest, before);
		out += html;
		before = rest[length - 1] ?? "";
		rest = rest.slice(length);
	}
	return out;
}

function step(rest: string, before: string): { html: string; length: number } {
	for (const [index, [rule, write]] of RULES.entries()) {
		if (index === BARE && /\w/.test(before)) continue;
		if (rest.startsWith("_") && /\w/.test(before)) continue;
		const match = rule.exec(rest);
		if (match === null) continue;
		const whole = match[0];
		if (index === HTML) return { html: whole, length: whole.length };
		if (index === BARE) return { html: externalLink(whole, escape(whole)), length: whole.length };
		return { html: write(...match.slice(1).map((group: string | undefined) => group ?? "")), length: whole.length };
	}
	const tag = /^#([\p{L}\p{N}_/-]*[\p{L}_/-][\p{L}\p{N}_/-]*)/u.exec(rest);
	if (tag && (before === "" || /\s/.test(before))) {
		const html = `<a href="${escape(tag[0])}" class="tag" target="_blank" rel="noopener nofollow">${escape(tag[0])}</a>`;
		return { html, length: tag[0].length };
	}
	const word = /^[\p{L}\p{N}]+/u.exec(rest)?.[0] ?? rest[0] ?? "";
	return { html: word === "\n" ? "<br>\n" : escape(word), length: word.length };
}
