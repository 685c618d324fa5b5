import { escape, inline } from "./markdown-inline";

/** Turns Markdown into the HTML that the app's reading view has, block by block. */
export function blocks(lines: string[]): string {
	let out = "";
	let at = 0;
	while (at < lines.length) {
		const [html, next] = block(lines, at);
		out += html;
		at = Math.max(next, at + 1);
	}
	return out;
}

const FENCE = /^(\s{0,3})(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^\s{0,3}([-*_])(\s*\1){2,}\s*$/;
const QUOTE = /^\s{0,3}>\s?/;
const ITEM = /^(\s*)([-*+]|\d+[.)])\s+(.*)$/;
const HTML = /^\s{0,3}<(\/?[a-z][a-z0-9-]*|!--)/i;
const DIVIDER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

function block(lines: string[], at: number): [string, number] {
	const line = lines[at] ?? "";
	if (line.trim() === "") return ["", at + 1];
	if (FENCE.test(line)) return fence(lines, at);
	if (line.trim().startsWith("$$")) return math(lines, at);
	const heading = HEADING.exec(line);
	if (heading) {
		const [, marks = "#", text = ""] = heading;
		const tag = `h${marks.length}`;
		return [`<${tag} data-heading="${escape(text)}" dir="auto">${inline(text)}</${tag}>`, at + 1];
	}
	if (RULE.test(line)) return ["<hr>", at + 1];
	if (QUOTE.test(line)) return quote(lines, at);
	if (ITEM.test(line)) return list(lines, at);
	if (line.includes("|") && DIVIDER.test(lines[at + 1] ?? "")) return table(lines, at);
	if (HTML.test(line)) {
		const end = until(lines, at, (next) => next.trim() === "");
		return [lines.slice(at, end).join("\n"), end];
	}
	const end = until(lines, at + 1, (next) => next.trim() === "" || starts(next));
	return [`<p dir="auto">${inline(lines.slice(at, end).map((one) => one.trim()).join("\n"))}</p>`, end];
}

/** Lines that end a paragraph without an empty line between. */
const starts = (line: string): boolean =>
	FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);

function until(lines: string[], from: number, stop: (line: string) => boolean): number {
	let end = from;
	while (end < lines.length && !stop(lines[end] ?? "")) end += 1;
	return end;
}

/** A fence that is never closed holds the rest of the text, which is how a reply looks while it grows. */
function fence(lines: string[], at: number): [string, number] {
	const [, indent = "", marks = "```", info = ""] = FENCE.exec(lines[at] ?? "") ?? [];
	const closing = new RegExp(`^\\s{0,3}${marks[0]}{${marks.length},}\\s*$`);
	const end = until(lines, at + 1, (line) => closing.test(line));
	const code = lines.slice(at + 1, end).map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line));
	const language = info.trim().split(/\s+/)[0] ?? "";
	const cls = language === "" ? "" : ` class="language-${escape(language)}"`;
	return [`<pre${cls} tabindex="0"><code${cls} data-line="${at}">${escape(code.join("\n"))}\n</code></pre>`, end + 1];
}

function math(lines: string[], at: number): [string, number] {
	const first = (lines[at] ?? "").trim();
	if (first.length > 4 && first.endsWith("$$")) return [`<div class="math math-block is-loaded">${escape(first.slice(2, -2))}</div>`, at + 1];
	const end = until(lines, at + 1, (line) => line.trim().endsWith("$$"));
	const tex = [first.slice(2), ...lines.slice(at + 1, end)].join("\n");
	return [`<div class="math math-block is-loaded">${escape(tex.trim())}</div>`, end + 1];
}

function quote(lines: string[], at: number): [string, number] {
	const end = until(lines, at, (line) => line.trim() === "" || (!QUOTE.test(line) && starts(line)));
	const inner = lines.slice(at, end).map((line) => line.replace(QUOTE, ""));
	const callout = /^\[!([^\]|]+)(?:\|([^\]]*))?\]([+-]?)\s*(.*)$/.exec(inner[0] ?? "");
	if (!callout) return [`<blockquote dir="auto">${blocks(inner)}</blockquote>`, end];
	const [, kind = "note", metadata = "", fold = "", title = ""] = callout;
	const name = kind.trim().toLowerCase();
	const shown = title.trim() === "" ? name.charAt(0).toUpperCase() + name.slice(1) : inline(title.trim());
	const head = `<div class="callout-title" dir="auto"><div class="callout-icon"></div><div class="callout-title-inner">${shown}</div></div>`;
	const body = blocks(inner.slice(1));
	const content = body === "" ? "" : `<div class="callout-content">${body}</div>`;
	const data = `data-callout-metadata="${escape(metadata)}" data-callout-fold="${fold}" data-callout="${escape(name)}"`;
	const folding = fold === "" ? "" : ` is-collapsible${fold === "-" ? " is-collapsed" : ""}`;
	return [`<div ${data} class="callout${folding}">${head}${content}</div>`, end];
}

function list(lines: string[], at: number): [string, number] {
	const [, indent = "", mark = "-"] = ITEM.exec(lines[at] ?? "") ?? [];
	const ordered = /\d/.test(mark);
	const items: string[] = [];
	let next = at;
	while (next < lines.length) {
		const item = ITEM.exec(lines[next] ?? "");
		if (!item || (item[1] ?? "").length > indent.length + 1 || /\d/.test(item[2] ?? "") !== ordered || (item[1] ?? "").length < indent.length) break;
		const deeper = (line: string) => /^\s*$/.test(line) || line.length - line.trimStart().length > indent.length;
		let end = until(lines, next + 1, (line) => !deeper(line) && (ITEM.test(line) || starts(line) || line.trim() === ""));
		while (end > next + 1 && (lines[end - 1] ?? "").trim() === "") end -= 1;
		items.push(listItem(item[3] ?? "", lines.slice(next + 1, end)));
		next = end;
		const after = until(lines, next, (line) => line.trim() !== "");
		if (ITEM.test(lines[after] ?? "")) next = after;
	}
	const tag = ordered ? "ol" : "ul";
	const start = ordered && parseInt(mark) !== 1 ? ` start="${parseInt(mark)}"` : "";
	return [`<${tag}${start} class="has-list-bullet">${items.join("")}</${tag}>`, next];
}

function listItem(first: string, more: string[]): string {
	const depth = Math.min(...more.filter((line) => line.trim() !== "").map((line) => line.length - line.trimStart().length), 8);
	const inner = more.length === 0 ? "" : blocks(more.map((line) => line.slice(depth)));
	const task = /^\[(.)\]\s+(.*)$/.exec(first);
	if (!task) return `<li dir="auto">${inline(first)}${inner}</li>`;
	const [, mark = " ", text = ""] = task;
	const checked = mark === " " ? "" : " checked";
	const cls = `class="task-list-item${mark === " " ? "" : " is-checked"}"`;
	return `<li data-task="${escape(mark)}" ${cls} dir="auto"><input class="task-list-item-checkbox" type="checkbox"${checked}>${inline(text)}${inner}</li>`;
}

/** Cells of a row; a bar inside code or after a backslash is text. */
function cells(line: string): string[] {
	const bare = line.trim().replace(/^\|/, "").replace(/\|$/, "");
	return (bare.match(/(?:\\.|`[^`]*`|\[\[[^\]]*\]\]|[^|])*(?:\||$)/g) ?? [])
		.slice(0, -1)
		.map((cell) => cell.replace(/\|$/, "").replace(/\\\|/g, "|").trim());
}

function table(lines: string[], at: number): [string, number] {
	const end = until(lines, at + 2, (line) => line.trim() === "" || !line.includes("|"));
	const row = (line: string, tag: string) => `<tr>${cells(line).map((cell) => `<${tag} dir="auto">${inline(cell)}</${tag}>`).join("")}</tr>`;
	const body = lines.slice(at + 2, end).map((line) => row(line, "td")).join("");
	return [`<table><thead>${row(lines[at] ?? "", "th")}</thead><tbody>${body}</tbody></table>`, end];
}
