import type * as Real from "obsidian";
import { parseLinktext } from "obsidian-test-mocks/obsidian";
import { blocks } from "./markdown-blocks";

type CodeBlockProcessor = (source: string, el: HTMLElement, context: Real.MarkdownPostProcessorContext) => unknown;

/** Handlers of fences, by language, over all plugins: how another plugin comes to run what a reply contains. */
export const codeBlockProcessors = new Map<string, CodeBlockProcessor>();

const FRONT_MATTER = /^---\n([^]*?)\n---(?:\n|$)/;

/** A small and honest reading view: the elements, classes and attributes of the app's, without its looks. */
export abstract class MarkdownRenderer {
	static async render(app: Real.App, markdown: string, el: HTMLElement, sourcePath: string, component: Real.Component): Promise<void> {
		if (!component) throw new Error("A component is needed");
		await Promise.resolve();
		const text = markdown.replace(/\r\n?/g, "\n");
		const yaml = FRONT_MATTER.exec(text);
		const html = blocks((yaml ? text.slice(yaml[0].length) : text).replace(/\t/g, "    ").split("\n"));
		const page = new DOMParser().parseFromString(html, "text/html");
		clean(page.body);
		const nodes = Array.from(page.body.childNodes).map((node) => el.ownerDocument.adoptNode(node));
		if (yaml) el.createEl("pre", { cls: "frontmatter language-yaml", text: yaml[1] ?? "" }).hide();
		el.append(...nodes);
		markLinks(app, el, sourcePath);
		await finishCode(el, sourcePath);
		loadEmbeds(app, el, sourcePath);
	}
	static async renderMarkdown(): Promise<void> {
		throw new Error("Deprecated: use render");
	}
}

const _render: typeof Real.MarkdownRenderer.render = MarkdownRenderer.render;
void _render;

/** The app drops scripts and handlers from HTML in a note, and lets the rest stand, frames among them. */
function clean(root: HTMLElement): void {
	for (const el of Array.from(root.querySelectorAll("script, object, style, link, meta"))) el.remove();
	for (const el of Array.from(root.querySelectorAll("*"))) {
		for (const { name, value } of Array.from(el.attributes)) {
			if (name.startsWith("on") || /^\s*javascript:/i.test(value)) el.removeAttribute(name);
		}
	}
}

function markLinks(app: Real.App, el: HTMLElement, sourcePath: string): void {
	for (const link of Array.from(el.querySelectorAll<HTMLElement>("a.internal-link"))) {
		const { path } = parseLinktext(decode(link.dataset["href"] ?? ""));
		if (path !== "" && !app.metadataCache.getFirstLinkpathDest(path, sourcePath)) link.addClass("is-unresolved");
	}
}

/** An embed shows the note it names, so its text gets into the page without a click. */
function loadEmbeds(app: Real.App, el: HTMLElement, sourcePath: string): void {
	for (const embed of Array.from(el.querySelectorAll(".internal-embed"))) {
		const { path } = parseLinktext(embed.getAttribute("src") ?? "");
		const file = app.metadataCache.getFirstLinkpathDest(path, sourcePath);
		embed.addClass(file ? "is-loaded" : "mod-empty");
		if (file) embed.setAttribute("data-path", file.path);
	}
}

async function finishCode(el: HTMLElement, sourcePath: string): Promise<void> {
	for (const pre of Array.from(el.querySelectorAll<HTMLElement>("pre"))) {
		const code = pre.querySelector("code");
		if (code === null) continue;
		const language = /language-(\S+)/.exec(pre.className)?.[1] ?? "";
		const source = (code.textContent ?? "").replace(/\n$/, "");
		const run = codeBlockProcessors.get(language);
		if (run) {
			const box = createDiv(`block-language-${language}`);
			pre.replaceWith(box);
			await run(source, box, context(sourcePath));
		} else if (language === "mermaid") {
			pre.replaceWith(createDiv({ cls: "mermaid", text: source }));
		} else {
			code.addClass("is-loaded");
			const button = pre.createEl("button", { cls: "copy-code-button", attr: { "aria-label": "Copy" } });
			button.addEventListener("click", () => void navigator.clipboard.writeText(source));
		}
	}
}

function context(sourcePath: string): Real.MarkdownPostProcessorContext {
	return { docId: "", sourcePath, frontmatter: null, addChild: () => undefined, getSectionInfo: () => null };
}

function decode(href: string): string {
	try {
		return decodeURIComponent(href);
	} catch {
		return href;
	}
}
