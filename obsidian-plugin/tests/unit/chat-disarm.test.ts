import { describe, expect, it } from "vitest";
import { replaceMarkers } from "../../src/chat/citations";
import { blocksOf } from "../../src/ui/blocks";
import { disarm, onlyShown } from "../../src/ui/disarm";

const EVIL = '<img src="https://evil.example/p.png">';

describe("prose", () => {
	it("leaves what only says how words look", () => {
		const text = "a<br>b **c** H<sub>2</sub>O <https://a.example> <mailto:a@b.example> 1 < 2, x<5 and $a<b$ [l](u) [[N]]";
		expect(disarm(text)).toBe(text.replace("$a<b$", "$a< b$"));
	});

	it.each([
		["embeds", "![[Note]]", "[[Note]]"],
		["pictures", "![a](https://evil.example/a.png)", "[a](https://evil.example/a.png)"],
		["pictures by reference", "![a][b]", "[a][b]"],
		["what may become a picture", "Great![1] ![a [b] c](x)", "Great!\u2060[1] !\u2060[a [b] c](x)"],
		["doubled marks", "!![[Note]]", "[[Note]]"],
		["frames", "<iframe src=x></iframe>", "&lt;iframe src=x>&lt;/iframe>"],
		["harmless tags with attributes", '<b style="background:url(x)">', '&lt;b style="background:url(x)">'],
		["comments and templates", "<!-- a --> <% b %>", "&lt;!-- a --> &lt;% b %>"],
		["inline queries", "`= this.x` and `$= dv`", "`\u2060= this.x` and `\u2060$= dv`"],
		["inline fields and buttons", "`VIEW[x]` ` INPUT[y]` `BUTTON[z]`", "`\u2060VIEW[x]` `\u2060 INPUT[y]` `\u2060BUTTON[z]`"],
		["properties", "---\na: 1\n---", "\n---\na: 1\n---"],
	])("disarms %s", (_, text, safe) => {
		expect(disarm(text)).toBe(safe);
	});

	it.each(["![[pic.png]]", "![[a/b c.JPG|200]]", "![a](pics/%C3%BC.webp)", "![](x.svg)", "![[Füße 1.gif|alt]] and ![[b.png]]", "| ![[a.png\\|9]] |"])(
		"keeps a picture of the vault: %s",
		(text) => expect(disarm(text.replace("\\|", "|"))).toBe(text.replace("\\|", "|")),
	);

	it.each([
		"![a](https://evil.example/a.png)", "![[https://evil.example/a.png]]", "![a](//evil.example/a.png)", "![[//evil.example/a.png]]",
		"![a](&#104;ttps://evil.example/a.png)", "![a](\\\\evil.example\\a.png)", "![a](data:image/svg+xml,a.svg)", "![a](app://x/a.png)",
		"![a](file:///a.png)", "![a][b.png]\n\n[b.png]: https://evil.example/b.png", "![[a.png]](https://evil.example/a.png)",
		"![a\nb](https://evil.example/a.png)", "![[Note]]", "![[film.mp4]]", "![[a.pdf]]", "![[page.html]]",
	])("keeps no other embed: %s", (text) => {
		expect(disarm(text)).not.toMatch(/!\[/);
	});

	it("keeps tags in code that is certain to be code", () => {
		for (const text of ["`<img>`", `\`${EVIL}\``, "``a ` <b c=d>``"]) expect(disarm(text)).toBe(text);
	});
});

describe("code", () => {
	it("leaves the languages that are only shown, and calls the others text", () => {
		expect(disarm("```js\n<a b=c>\n```")).toBe("```js\n<a b=c>\n```");
		expect(disarm("~~~dataviewjs\ndv\n~~~")).toBe("~~~text\ndv\n~~~");
		expect(disarm("> - ```query\n> x\n> ```")).toBe("> - ```text\n> x\n> ```");
		expect(disarm("```{dataviewjs}\n```")).toBe("```text\n```");
		expect(onlyShown("Python")).toBe(true);
		expect(onlyShown("postgresql")).toBe(true);
		for (const name of ["tasks", "query", "math", "dot", "mermaid"]) expect(onlyShown(name)).toBe(false);
	});

	/** Each of these is taken for code by a careless reader, and is none for Obsidian. */
	it.each([
		["a fence that its list ends", `- \`\`\`\n${EVIL}`],
		["a fence that its quote ends", `> \`\`\`\n${EVIL}`],
		["a fence that is indented too far", `text\n    \`\`\`\n${EVIL}\n`],
		["a fence closed, and what follows", `\`\`\`\na\n\`\`\`\n${EVIL}`],
		["a close that is indented too far, before a real one", `\`\`\`\n    \`\`\`\n\`\`\`\n${EVIL}\n\`\`\`\n`],
		["a close with words after it", `\`\`\`\na\n\`\`\` b\n\`\`\`\n${EVIL}`],
		["a span over two lines", `\`a\n\`${EVIL}\``],
		["a span over two paragraphs", `\`\n\n${EVIL}\n\n\``],
		["a tick that is escaped", `\\\`${EVIL}\``],
		["cells of a table", `| \` | ${EVIL} | \` |`],
		["dollars that are no math", `$5 ${EVIL} and $6`],
		["a tag over two lines", '<img\nsrc="x">'],
		["an upper case tag", EVIL.toUpperCase()],
	])("sees through %s", (_, text) => {
		expect(disarm(text)).not.toMatch(/<img[\s>]/i);
	});
});

describe("math", () => {
	it.each([
		"style", "bbox", "mmlToken", "href", "class", "cssId", "data", "require", "unicode", "fcolorbox", "let", "def", "gdef",
		"newcommand", "renewcommand", "newenvironment", "DeclareMathOperator", "csname",
	])("knows no \\%s", (name) => {
		expect(disarm(`$\\${name}{background:url(//evil.example)}{x}$`)).toBe(`$\\\u2060${name}{background:url(//evil.example)}{x}$`);
	});

	it.each([
		["in the body of another command", "$$\\newcommand{\\x}{\\style{a:b}{c}}\\x$$"],
		["over lines and paragraphs", "$$\nx\n\n\\style{a:b}{c}\n$$"],
		["in what looks like code", "$x ` \\style{a:b}{c} ` y$"],
		["in what looks like a block of code", "$$\n```js\n\\style{a:b}{c}\n```\n$$"],
		["between two such blocks", "$$\n```js\na\n```\n\\style{a:b}{c}\n```js\nb\n```\n$$"],
	])("nor %s", (_, text) => {
		expect(disarm(text)).toContain("\\\u2060style");
		expect(disarm(text)).not.toContain("\\style");
	});

	it("is left alone otherwise, and so is TeX that is shown as code", () => {
		const texts = ["$\\frac{a}{b} \\newline \\textstyle x$", "$$\\begin{matrix}1 & 2 \\\\3 & 4\\end{matrix}$$", "`\\href{a}{b}`", "```latex\n\\newcommand{\\x}{$y$}\n```"];
		for (const text of texts) expect(disarm(text)).toBe(text);
	});
});

describe("diagrams", () => {
	it.each([
		"graph TD\n  A[Start<br>here] --> B{End}\n  B ---|no| C & D\n  style A fill:#f9f,stroke:#333",
		"sequenceDiagram\n  Ada->>Otto: How warm, 60 degrees?\n  Otto-->>Ada: Yes",
		"classDiagram\n  class Tea\n  <<interface>> Tea\n  Drink <|-- Tea",
	])("are drawn: %s", (code) => {
		expect(disarm(`\`\`\`mermaid\n${code}\n\`\`\`\n`)).toBe(`\`\`\`mermaid\n${code}\n\`\`\`\n`);
	});

	it.each([
		["a picture in a label", "graph TD\n A[\"<img src='//evil.example'>\"]"],
		["a picture after a word between brackets", "classDiagram\n A : <<<a>>img src=x>"],
		["a picture as a shape", "flowchart TD\n A@{ img: \"x\" }"],
		["settings", "%%{init: {\"themeCSS\": \".node{background:red}\"}}%%\ngraph TD\nA-->B"],
		["settings in front", "---\nconfig:\n  theme: dark\n---\ngraph TD\nA-->B"],
		["a style with an address", "graph TD\nA-->B\nclassDef x fill:url(x)"],
		["a style with a picture", "graph TD\nA-->B\nstyle A background:image-set('x')"],
		["an address", "graph TD\nA[//evil.example/x]"],
		["escapes", "graph TD\nstyle A background:u\\72l(x)"],
		["entities", "graph TD\nA[#lt;img src=x#gt;]"],
		["a link", "graph TD\nA-->B\n  click A call f()"],
		["a link after another statement", "graph TD; A-->B; click A call f()"],
		["a link of a sequence", "sequenceDiagram\nlinks Ada: {}"],
		["more than a shorter fence ends", "graph TD\n```\nA@{ img: x }"],
	])("with %s are shown as text", (_, code) => {
		for (const language of ["mermaid", "Mermaid", " {.mermaid}"]) expect(disarm(`\`\`\`\`${language}\n${code}\n\`\`\`\``)).toBe(`\`\`\`\`text\n${code}\n\`\`\`\``);
	});

	it("are shown as text where they may begin or end elsewhere than it seems", () => {
		const evil = "```mermaid\nA@{ img: x }\n```\n";
		const texts = [`- ${evil}`, `> ${evil}`, `%%\n\`\`\`js\n%%\n${evil}`, `<details>\n\`\`\`js\n\n${evil}`, `$$\n\`\`\`js\n$$\n${evil}`];
		for (const text of texts) expect(disarm(text)).not.toContain("mermaid");
	});
});

/** A pattern that tries every end for every beginning would take the processor for longer than this. */
const MOST_SECONDS = 4;

describe("long text that means harm", () => {
	const pieces = ["[^", "[", "[[", "![[", "![", "!", "]", "](", "[1]:", "| ", "```mermaid\n", "```\n", "> ```mermaid\n", "$", "\\", "<a ", "`a", "_a ", "@{", "- - "];
	/** Runs of one sign, each longer than the last, so that none closes another. */
	const runs = (sign: string, most: number): string => Array.from({ length: most }, (_, n) => `${sign.repeat(n + 1)} a `).join("");
	const texts = [...pieces.map((piece) => [piece, piece.repeat(100_000)]), ...["`", "$", "~", "[", "%"].map((sign) => [`runs of ${sign}`, runs(sign, 1_000)])];
	it.each(texts)("is read once: %j", (_, text = "") => {
		const before = process.cpuUsage();
		blocksOf(text);
		disarm(text);
		replaceMarkers(text, [], () => null);
		expect(process.cpuUsage(before).user / 1e6).toBeLessThan(MOST_SECONDS);
	});
});

describe("blocks", () => {
	const texts = [
		"One.\n\nTwo.\n\n```js\na\n\nb\n```\n\nThree",
		"- a\n\n- b\n\n  c\n\nend",
		"$$\na\n\nb\n$$\n\n| a |\n| - |\n\n> q\n\n> r",
		"1. a\n\n   ```\n   x\n\n   y\n   ```\n\nz",
		"",
	];

	it("are the text again when they are joined, whatever it is", () => {
		for (const text of texts) {
			for (let at = 0; at <= text.length; at++) expect(blocksOf(text.slice(0, at)).join("")).toBe(text.slice(0, at));
		}
	});

	it("stay as they are while the text grows, all but the last", () => {
		for (const text of texts) {
			for (let at = 1; at < text.length; at++) {
				const before = blocksOf(text.slice(0, at)).slice(0, -1);
				expect(blocksOf(text.slice(0, at + 1)).slice(0, before.length)).toEqual(before);
			}
		}
	});

	it("keep together what belongs together", () => {
		expect(blocksOf(texts[0] ?? "")).toHaveLength(4);
		expect(blocksOf(texts[1] ?? "")).toEqual(["- a\n\n- b\n\n  c\n\n", "end"]);
		expect(blocksOf("a\n\nb[^1]\n\n[^1]: note")).toHaveLength(1);
	});
});
