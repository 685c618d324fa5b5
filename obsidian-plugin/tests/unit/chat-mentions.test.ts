import { describe, expect, it } from "vitest";
import { insert, mentionAt, prepare, suggest, type Candidate, type Mention } from "../../src/chat/mentions";

/** The text with the caret at `|`. */
function at(marked: string): Mention | null {
	const caret = marked.indexOf("‸");
	return mentionAt(marked.replace("‸", ""), caret);
}

function note(path: string, more: Partial<Extract<Candidate, { kind: "note" }>> = {}): Candidate {
	const name = path.slice(path.lastIndexOf("/") + 1).replace(/\.md$/, "");
	return { kind: "note", path, name, link: name, ...more };
}

describe("mentionAt", () => {
	const open: [string, Mention["trigger"], string][] = [
		["[[‸", "[[", ""],
		["see [[Ott‸", "[[", "Ott"],
		["see [[Otto the c‸", "[[", "Otto the c"],
		["[[A]] and [[B‸", "[[", "B"],
		["@‸", "@", ""],
		["ask @Ott‸", "@", "Ott"],
		["ask @Otto the‸", "@", "Otto the"],
		["(@Ott‸", "@", "Ott"],
		["line\n@#wor‸", "@", "#wor"],
		["@Folder/no‸", "@", "Folder/no"],
		["`code` @A‸", "@", "A"],
		["```\ncode\n```\n[[A‸", "[[", "A"],
		["/‸", "/", ""],
		["/Ta‸", "/", "Ta"],
		["/t‸ask it", "/", "t"],
		["/weekly-re‸", "/", "weekly-re"],
		["/週‸", "/", "週"],
	];
	for (const [text, trigger, query] of open) {
		it(`sees ${JSON.stringify(text)}`, () => expect(at(text)).toMatchObject({ trigger, query }));
	}
	const closed = [
		"‸", "plain‸", "[‸", "[[A]]‸", "[[A]] ‸", "[[A|x‸", "[[A#‸", "[[ -f x‸", "[[A\n‸", "me@example‸", "@ home‸",
		"/tasks ‸", " /ta‸", "a\n/ta‸", "/etc/ho‸", "‸/ta",
		"@a  b‸", "@A\nB‸", "`[[A‸", "`@A‸", "```\n[[A‸", "~~~\n@A‸", "‸[[A", `@${"x".repeat(100)}‸`, "@[[A]] b‸",
	];
	for (const text of closed) it(`leaves ${JSON.stringify(text)}`, () => expect(at(text)).toBeNull());

	it("takes in the brackets that closed themselves, and the rest of a link that is changed", () => {
		expect(at("a [[Ott‸]] b")).toEqual({ trigger: "[[", from: 2, to: 9, query: "Ott" });
		expect(at("a [[Ot‸to]] b")).toEqual({ trigger: "[[", from: 2, to: 10, query: "Ot" });
		expect(at("a [[Ot‸ and [[B]]")).toEqual({ trigger: "[[", from: 2, to: 6, query: "Ot" });
	});
});

describe("suggest", () => {
	const everything = prepare([
		note("Pets/Otto.md", { recent: 3 }),
		note("Pets/Otto the cat.md"),
		note("Work/Lotto.md"),
		note("Work/Über uns.md", { aliases: ["About"] }),
		note("Work/Meeting notes 2026.md", { recent: 0 }),
		note("Otto/Index.md"),
		{ kind: "folder", path: "Otto/" },
		{ kind: "folder", path: "Work/Projects" },
		{ kind: "tag", tag: "#otto" },
		{ kind: "tag", tag: "work/deep" },
	]);
	const labels = (query: string, trigger: Mention["trigger"] = "@", limit?: number): string[] =>
		suggest(everything, { trigger, from: 0, to: 0, query }, limit).map((one) => one.label);

	it("puts the exact name first, then beginnings, words, parts, places", () => {
		expect(labels("otto")).toEqual(["Otto", "Otto/", "#otto", "Otto the cat", "Lotto", "Index"]);
		expect(labels("otto", "[[")).toEqual(["Otto", "Otto the cat", "Lotto", "Index"]);
	});

	it("does not mind case, accents or the order of words", () => {
		expect(labels("uber")).toEqual(["Über uns"]);
		expect(labels("ÜBER UNS")[0]).toBe("Über uns");
		expect(labels("notes meet")).toEqual(["Meeting notes 2026"]);
	});

	it("knows aliases", () => expect(labels("about")).toEqual(["Über uns"]));

	it("knows folders and tags, and tags alone after a hash", () => {
		expect(labels("#otto")).toEqual(["#otto"]);
		expect(labels("#deep")).toEqual(["#work/deep"]);
		expect(labels("#")).toEqual(["#otto", "#work/deep"]);
		expect(labels("proj")).toEqual(["Work/Projects/"]);
		expect(labels("work/proj")).toEqual(["Work/Projects/"]);
	});

	it("finds letters in their order, of one word only", () => {
		expect(labels("mtg")).toEqual(["Meeting notes 2026"]);
		expect(labels("mt nt")).toEqual([]);
		expect(labels("Otto please tell me")).toEqual([]);
		expect(labels("zzz")).toEqual([]);
	});

	it("begins with what was opened last", () => {
		expect(labels("").slice(0, 2)).toEqual(["Meeting notes 2026", "Otto"]);
		expect(labels("", "@", 3)).toHaveLength(3);
		expect(labels("", "[[").every((label) => !label.endsWith("/") && !label.startsWith("#"))).toBe(true);
	});
});

describe("insert", () => {
	const put = (marked: string, candidate: Candidate): { shown: string; chip: unknown } => {
		const mention = at(marked);
		if (!mention) throw new Error("no mention");
		const { text, caret, chip } = insert(marked.replace("‸", ""), mention, candidate);
		return { shown: `${text.slice(0, caret)}‸${text.slice(caret)}`, chip };
	};

	it("names a note as a link, with the caret after it", () => {
		const otto = note("Pets/Otto.md");
		expect(put("see @ot‸", otto)).toEqual({ shown: "see [[Otto]] ‸", chip: null });
		expect(put("see [[ot‸]] now", otto)).toEqual({ shown: "see [[Otto]] ‸now", chip: null });
		expect(put("see [[ot‸]], now", otto)).toEqual({ shown: "see [[Otto]]‸, now", chip: null });
		expect(put("see @ot‸x", otto)).toEqual({ shown: "see [[Otto]] ‸x", chip: null });
		expect(put("@ot‸", note("Pets/Otto.md", { link: "Pets/Otto" })).shown).toBe("[[Pets/Otto]] ‸");
	});

	it("makes chips of folders and tags, and of notes that no link can name", () => {
		expect(put("in @pro‸", { kind: "folder", path: "Work/Projects/" })).toEqual({
			shown: "in Work/Projects/ ‸",
			chip: { kind: "folder", path: "Work/Projects" },
		});
		expect(put("@#w‸", { kind: "tag", tag: "#work" })).toEqual({ shown: "#work ‸", chip: { kind: "tag", tag: "work" } });
		expect(put("@c‸", note("C# [1].md"))).toEqual({ shown: "C# [1] ‸", chip: { kind: "note", path: "C# [1].md", name: "C# [1]" } });
	});

	it("ends the mention", () => {
		for (const candidate of [note("Otto.md"), { kind: "folder", path: "F" } as const, { kind: "tag", tag: "t" } as const]) {
			const { text, caret } = insert("@o", { trigger: "@", from: 0, to: 2, query: "o" }, candidate);
			expect(mentionAt(text, caret)).toBeNull();
		}
	});
});
