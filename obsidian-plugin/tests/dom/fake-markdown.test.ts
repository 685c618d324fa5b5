import { Component, MarkdownRenderer, Plugin, type PluginManifest } from "obsidian";
import { expect, it } from "vitest";
import { loadPlugin, makeApp } from "../../mocks/obsidian/testing";

async function render(markdown: string, files: Record<string, string> = {}): Promise<HTMLElement> {
	const el = createDiv();
	const component = new Component();
	await MarkdownRenderer.render(makeApp({ files }), markdown, el, "", component);
	return el;
}

it("makes internal links as the app does", async () => {
	const el = await render("See [[Note#Head]], [[No|this]] and [t](My%20note.md).", { "Note.md": "", "My note.md": "" });
	const links = Array.from(el.querySelectorAll("a.internal-link"));
	expect(links.map((link) => [link.getAttribute("data-href"), link.textContent, link.hasClass("is-unresolved")])).toEqual([
		["Note#Head", "Note > Head", false],
		["No", "this", true],
		["My%20note.md", "t", false],
	]);
	expect(links[0]?.getAttribute("href")).toBe("Note#Head");
});

it("keeps links and citations inside code as text", async () => {
	const el = await render("`[[Note]]` and\n\n```md\n[[Note]] [1]\n```");
	expect(el.querySelector("a")).toBeNull();
	expect(el.querySelector("pre code.language-md")?.textContent).toBe("[[Note]] [1]\n");
	expect(el.querySelector("pre .copy-code-button")).not.toBeNull();
});

it("leaves a marker with no target as text", async () => {
	expect((await render("So it is [1][2].")).textContent).toBe("So it is [1][2].");
});

it("draws callouts, tables, lists and tasks", async () => {
	const el = await render("> [!warning]- Take **care**\n> Text\n\n| a | b |\n| - | - |\n| `x|y` | [[N|n]] |\n\n1. one\n   - inner\n2. two\n\n- [x] done");
	expect(el.querySelector(".callout.is-collapsed[data-callout=warning] .callout-title-inner strong")?.textContent).toBe("care");
	expect(el.querySelector(".callout-content p")?.textContent).toBe("Text");
	expect(Array.from(el.querySelectorAll("td")).map((cell) => cell.textContent)).toEqual(["x|y", "n"]);
	expect(el.querySelectorAll("ol > li")).toHaveLength(2);
	expect(el.querySelector("ol > li > ul > li")?.textContent).toBe("inner");
	expect(el.querySelector<HTMLInputElement>("li.task-list-item[data-task=x] input")?.checked).toBe(true);
});

it("draws headings, emphasis, math, tags, rules and outside links", async () => {
	const el = await render("## A *b*\n\n***\n\n**x** _y_ ~~z~~ ==m== $a^2$ #tag/one snake_case_word 2*3*4 https://a.example/b_c\n\n$$\nx\n$$\n\n```mermaid\ngraph\n```");
	expect(el.querySelector("h2[data-heading='A *b*'] em")?.textContent).toBe("b");
	expect(["strong", "em", "del", "mark", "hr", ".math-inline", ".math-block", "a.tag", ".mermaid"].filter((one) => !el.querySelector(one))).toEqual([]);
	expect(el.querySelector("a.external-link")?.getAttribute("href")).toBe("https://a.example/b_c");
	expect(el.querySelector("p")?.textContent).toContain("snake_case_word");
});

it("lets frames and embeds stand and other plugins run, but no scripts: a reply has to be made harmless before", async () => {
	class Runs extends Plugin {
		override onload(): void {
			this.registerMarkdownCodeBlockProcessor("dataviewjs", (source, el) => el.setText(`ran ${source}`));
		}
	}
	const manifest: PluginManifest = { id: "runs", name: "Runs", version: "1.0.0", minAppVersion: "1.13.0", description: "", author: "" };
	const plugin = await loadPlugin(makeApp(), Runs, manifest);
	const el = await render("<iframe src='x'></iframe>\n\n<script>1</script>\n\na <b onclick='x'>b</b>\n\n![[A]]\n\n```dataviewjs\nboom\n```", { "A.md": "" });
	expect(el.querySelector("iframe")).not.toBeNull();
	expect(el.querySelector("script")).toBeNull();
	expect(el.querySelector("b")?.attributes).toHaveLength(0);
	expect(el.querySelector(".internal-embed.is-loaded")).not.toBeNull();
	expect(el.querySelector(".block-language-dataviewjs")?.textContent).toBe("ran boom");
	plugin.unload();
});

it("draws an open fence, as a reply has while it grows", async () => {
	expect((await render("Text\n```ts\nlet a")).querySelector("code.language-ts")?.textContent).toBe("let a\n");
});
