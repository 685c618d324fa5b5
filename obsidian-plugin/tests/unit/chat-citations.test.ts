import { describe, expect, it } from "vitest";
import { citationOf, citedIn, pieces, replaceMarkers, targetOf } from "../../src/chat/citations";
import { Dice, source } from "./chat-events";

const SOURCES = [source(1), source(2), source(3, { collection: "Books" }), source(12)];

/** Every marker as ⟨kind number⟩, so that a test shows at once what was seen as one. */
function seen(markdown: string): string {
	return replaceMarkers(markdown, SOURCES, (citation) => `⟨${citation.kind[0] ?? ""}${citation.n}⟩`);
}

describe("targetOf", () => {
	it("is what opens the note at its heading", () => {
		expect(targetOf(source(1))).toBe("Folder/Note 1#Part");
		expect(targetOf(source(1, { link: "[[A/B#C > D|alias]]" }))).toBe("A/B#C > D");
		expect(targetOf(source(1, { link: "![[B#^block]]" }))).toBe("B#^block");
		expect(targetOf(source(1, { link: "[C tips](A/C%23%20tips.md#Part)" }))).toBe("A/C%23%20tips.md#Part");
		expect(targetOf(source(1, { link: "", path: "A/B.md" }))).toBe("A/B");
		expect(targetOf(source(1, { link: "https://example.org", path: "A/B.md" }))).toBe("A/B");
	});
});

describe("citationOf", () => {
	it("tells what can be opened from what cannot", () => {
		expect(citationOf(1, SOURCES)).toMatchObject({ kind: "here", target: "Folder/Note 1#Part" });
		expect(citationOf(3, SOURCES).kind).toBe("elsewhere");
		expect(citationOf(9, SOURCES)).toEqual({ kind: "unresolved", n: 9 });
		expect(citationOf(1, [])).toEqual({ kind: "unresolved", n: 1 });
	});
});

describe("markers in prose", () => {
	const table: [string, string][] = [
		["Otto [1].", "Otto ⟨h1⟩."],
		["[1] begins, and ends [2]", "⟨h1⟩ begins, and ends ⟨h2⟩"],
		["Both [1][2], or [1] [12].", "Both ⟨h1⟩⟨h2⟩, or ⟨h1⟩ ⟨h12⟩."],
		["Both [1, 2] and [1;2].", "Both ⟨h1⟩⟨h2⟩ and ⟨h1⟩⟨h2⟩."],
		["From to [1-2] and [1–12].", "From to ⟨h1⟩⟨h2⟩ and ⟨h1⟩⟨h12⟩."],
		["Elsewhere [3].", "Elsewhere ⟨e3⟩."],
		["Unknown [9] and [9?].", "Unknown ⟨u9⟩ and ⟨u9⟩."],
		["Doubted [1?].", "Doubted ⟨u1⟩."],
		["Great![1]", "Great!⟨h1⟩"],
		["*so*[1] **so** [2]", "*so*⟨h1⟩ **so** ⟨h2⟩"],
		["(see [1])", "(see ⟨h1⟩)"],
		["According to [1]: yes", "According to ⟨h1⟩: yes"],
		["日本。[1]", "日本。⟨h1⟩"],
		["- item [1]\n  - inner [2]", "- item ⟨h1⟩\n  - inner ⟨h2⟩"],
		["# Heading [1]", "# Heading ⟨h1⟩"],
		["costs $5 [1] and $10 [2]", "costs $5 ⟨h1⟩ and $10 ⟨h2⟩"],
		["[[Note]][1]", "[[Note]]⟨h1⟩"],
		["`x`[1]", "`x`⟨h1⟩"],
		["one ` tick [1]", "one ` tick ⟨h1⟩"],
		["a ```` b [1] `c [2]`", "a ```` b ⟨h1⟩ `c [2]`"],
		["`open\n\n[1] `closed", "`open\n\n⟨h1⟩ `closed"],
		["text\n    [1] goes on", "text\n    ⟨h1⟩ goes on"],
		["- item\n\n    [1] of the item", "- item\n\n    ⟨h1⟩ of the item"],
	];
	for (const [text, expected] of table) it(JSON.stringify(text), () => expect(seen(text)).toBe(expected));
});

describe("what is no marker", () => {
	const left = [
		"list[1] and x_[1]",
		"größe[1]",
		"日本[1]",
		"[words](url) and [1](url) and [words][1]",
		"[1]: https://example.org",
		"  [1]: https://example.org",
		"[[1]] and [^1] and [ ] and [x]",
		"\\[1]",
		"[1234] and [a] and [1.2] and [-1]",
		"the interval [10, 20]",
		"`a[1] [1]` and ``b ` [1]``",
		"`over\ntwo lines [1]`",
		"```\n[1]\n```",
		"```python title=x\na = [1]\n\n[2]\n```",
		"~~~\n```\n[1]\n~~~",
		"````\n```\n[1]\n```\n[2]\n````",
		"- item\n  ```\n  [1]\n  ```",
		"1. ```js\n   [1]\n   ```",
		"```\n[1] never closed",
		"text\n\n    code [1]\n    more [2]\n\n    code [2]",
		"\tcode [1]",
		"> somebody's own [1]\n> and [2]",
		"  > [!note] with [1]",
		"$$\nx [1]\n$$",
		"$$ x [1] $$",
		"$a [1] b$",
		"[[Note [1]]]",
	];
	for (const text of left) it(JSON.stringify(text), () => expect(seen(text)).toBe(text));
	it("does not hide the markers after it", () => {
		for (const text of left.filter((one) => !one.includes("never closed") && !one.startsWith(">") && !one.startsWith("  >"))) {
			expect(seen(`${text}\n\nAfter [1].`)).toBe(`${text}\n\nAfter ⟨h1⟩.`);
		}
	});
});

describe("a table", () => {
	const link = (n: number): string => `[[Note ${n}|${n}]]`;
	it("keeps its columns", () => {
		const text = "| a | b |\n| --- | --- |\n| x [1] | y |\n\nThen [2].";
		const made = replaceMarkers(text, SOURCES, ({ n }) => link(n));
		expect(made).toBe("| a | b |\n| --- | --- |\n| x [[Note 1\\|1]] | y |\n\nThen [[Note 2|2]].");
	});
	it("need not begin its lines with a bar", () => {
		const text = "a | b\n--- | ---\nx [1] | y";
		expect(replaceMarkers(text, SOURCES, ({ n }) => link(n))).toContain("x [[Note 1\\|1]] | y");
	});
});

describe("pieces", () => {
	it("joined are the text again", () => {
		for (const text of ["a [1] b", "[1][2]", "x [1 , 2; 12] y", "[9?]", "", "no marker", "[1", "a[1][2]b"]) {
			expect(pieces(text, SOURCES).map((piece) => piece.text).join("")).toBe(text);
		}
	});
	it("have the passage that a marker leads to", () => {
		const found = pieces("a [1, 2]", SOURCES).filter((piece) => piece.kind === "citation");
		expect(found.map((piece) => piece.kind === "citation" && piece.citation.n)).toEqual([1, 2]);
	});
});

it("changes nothing of any text when nothing is to be replaced, and finds the same markers again", () => {
	const parts = ["[1]", "[2]", "[9?]", "`", "``", "```", "\n", "\n\n", "    ", "> ", "- ", "| ", "$", "$$", "word ", "[[", "]]", "(", ")", "[1, 2]", "~~~", "\\"];
	for (let seed = 0; seed < 500; seed++) {
		const dice = new Dice(seed);
		const text = Array.from({ length: dice.roll(40) }, () => dice.pick(parts)).join("");
		expect(replaceMarkers(text, SOURCES, () => null)).toBe(text);
		const cited = citedIn(text, SOURCES).map((one) => one.n);
		expect(cited).toEqual([...new Set(cited)]);
	}
});

it("takes a huge answer in a short time", () => {
	const text = "`a ``b [1] $x ".repeat(5_000);
	expect(replaceMarkers(text, SOURCES, () => null)).toBe(text);
});

it("names the cited sources in the order of the text", () => {
	expect(citedIn("[2] `[12]` [1] [2] [9]", SOURCES).map((one) => one.n)).toEqual([2, 1]);
});
