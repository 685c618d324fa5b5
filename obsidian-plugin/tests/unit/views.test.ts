import { describe, expect, it } from "vitest";
import { parseHits, type Hit } from "../../src/protocol/events";
import { excerpt, headingOf, matchesIn, readable } from "../../src/ui/passage";
import { askFor, linkedWith, pickRelated, reasons } from "../../src/ui/related-list";

const hits = (...paths: (string | Record<string, unknown>)[]): Hit[] =>
	parseHits({ hits: paths.map((one) => (typeof one === "string" ? { path: one } : one)) }).hits;

describe("words of a query in a text", () => {
	const marked = (text: string, query: string) => matchesIn(text, query).map(([start, end]) => text.slice(start, end));

	it("are found whatever their case and accents", () => {
		expect(marked("Grüner Tee, GRUN", "grün")).toEqual(["Grün", "GRUN"]);
		expect(marked("Straße und ﬁn", "fin")).toEqual(["ﬁn"]);
		expect(marked("a🌱b🌱", "🌱")).toEqual(["🌱", "🌱"]);
		expect(marked("İstanbul", "stanbul")).toEqual(["stanbul"]);
	});

	it("do not overlap, and nothing has none", () => {
		expect(marked("abcabc", "ab abc")).toEqual(["abcabc"]);
		expect(marked("abc", "")).toEqual([]);
		expect(marked("abc", "?! \"abc\"")).toEqual(["abc"]);
	});
});

describe("an excerpt", () => {
	it("is one line, all of it if it is short", () => {
		expect(excerpt("a\n\n  b\tc", "x")).toBe("a b c");
	});

	it("is cut around the first word that was looked for", () => {
		const text = `${"before ".repeat(100)}needle ${"after ".repeat(100)}`;
		const shown = excerpt(text, "needle");
		expect(shown).toMatch(/^…before.*needle.*after…$/);
		expect(shown.length).toBeLessThan(230);
		expect(excerpt(text, "")).toMatch(/^before.*before…$/);
		expect(excerpt("x".repeat(1000), "")).toHaveLength(221);
	});
});

describe("a passage", () => {
	const read = (text: string, title = "", heading = "") => readable({ text, title, heading });

	it("is read without the signs of Markdown", () => {
		const text = "#### What to do\n\n- Look at `it`.\n- [x] **Then** open\n\n| State | Bar |\n| --- | :-: |\n| cold | 1.2 |\n\n> [!note]- Mind\n> ==Slowly==, _please_. ^id1\n";
		expect(excerpt(read(text), "")).toBe("What to do Look at it. Then open State · Bar cold · 1.2 Mind Slowly, please.");
		expect(read("See [[A/B#C|that]], [[Plumber]], [[A#B]], [there](http://x.example/a_(b)), ![[x.png]] <b>now</b>%% no %%.")).toBe(
			"See that, Plumber, A › B, there, x.png  now  .",
		);
	});

	it("keeps code and words as they are", () => {
		expect(read("```python\n# a_b_c = 2 ** 3\n```\nsnake_case_name, 2 * 3 * 4 and #tag [1]")).toBe("# a_b_c = 2 ** 3\nsnake_case_name, 2 * 3 * 4 and #tag [1]");
		expect(read("---")).toBe("");
	});

	it("does not say the title again", () => {
		expect(read("# Boiler\n\n## Pressure ##\n\n1.2 bar. Pressure", "Boiler", "Pressure")).toBe("1.2 bar. Pressure");
		expect(read("# Boiler\nx", "", "Boiler > Pressure")).toBe("x");
		expect(headingOf({ title: "Tea", heading: "tea" })).toBe("");
		expect(headingOf({ title: "Tea", heading: "Green" })).toBe("Green");
	});
});

describe("related notes", () => {
	const rules = { here: "Here.md", count: 3, exclude: [], linked: new Set<string>(), isLog: () => false };

	it("are each listed once, and the note itself and logs never", () => {
		const found = hits("Here.md", "A.md", "A.md", { path: "S.md", memory_type: "episodic" }, { path: "L.md", collection: "Library" }, "B.md");
		expect(pickRelated(found, rules).map((hit) => hit.path)).toEqual(["A.md", "B.md"]);
	});

	it("leave out folders, but not those that only begin alike", () => {
		const found = hits("Work/A.md", "Workshop/B.md", "Work.md");
		expect(pickRelated(found, { ...rules, exclude: ["Work"] }).map((hit) => hit.path)).toEqual(["Workshop/B.md", "Work.md"]);
	});

	it("leave out what is linked when told to, and stop at the number", () => {
		const linked = linkedWith({ "Here.md": { "A.md": 1 }, "B.md": { "Here.md": 2 }, "C.md": { "D.md": 1 } }, "Here.md");
		expect(linked.sort()).toEqual(["A.md", "B.md"]);
		const found = hits("A.md", "B.md", "C.md", "D.md", "E.md", "F.md");
		expect(pickRelated(found, { ...rules, linked: new Set(linked) }).map((hit) => hit.path)).toEqual(["C.md", "D.md", "E.md"]);
		expect(pickRelated(found, rules).map((hit) => hit.path)).toEqual(["A.md", "B.md", "C.md"]);
		expect(askFor(50)).toBe(200);
	});

	it("say why, without figures", () => {
		expect(reasons(["meaning 0.83 (table)", "links here", "2 links in common", "links here"], "Similar")).toEqual([
			"Similar",
			"Links here",
			"2 links in common",
		]);
	});
});
