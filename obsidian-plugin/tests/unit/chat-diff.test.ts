import { describe, expect, it } from "vitest";
import { compare, countChanges, parseDiff, pathOf, type DiffLine, type Segment } from "../../src/chat/diff";
import { Dice } from "./chat-events";

const DIFF = `--- a/A/Note.md
+++ b/A/Note.md
@@ -2,4 +2,5 @@ Heading
 same
-the old cat
+the new cat
+more
 
-- -- a list
+++ a sum
\\ No newline at end of file
`;

describe("parseDiff", () => {
	const lines = parseDiff(DIFF);

	it("tells lines by what they are, not by how they look", () => {
		expect(lines.map(({ kind, text }) => [kind, text])).toEqual([
			["file", "--- a/A/Note.md"],
			["file", "+++ b/A/Note.md"],
			["hunk", "@@ -2,4 +2,5 @@ Heading"],
			["context", "same"],
			["remove", "the old cat"],
			["add", "the new cat"],
			["add", "more"],
			["context", ""],
			["remove", "- -- a list"],
			["add", "++ a sum"],
			["note", "No newline at end of file"],
		]);
		expect(countChanges(lines)).toEqual({ added: 3, removed: 2 });
	});

	it("marks the words that differ", () => {
		expect(lines[4]?.segments).toEqual(marked("the |old| cat"));
		expect(lines[5]?.segments).toEqual(marked("the |new| cat"));
		expect(lines[6]?.segments).toBeUndefined();
	});

	it("pairs lines across the remark that the old one had no end", () => {
		const found = parseDiff("@@ -1 +1 @@\n-one two six\n\\ No newline at end of file\n+one two ten\n");
		expect(found.map((line) => line.segments?.length)).toEqual([undefined, 2, undefined, 2]);
	});

	it("reads several files, new ones, and hunks without counts", () => {
		const found = parseDiff(`${DIFF}\n--- /dev/null\n+++ b/New.md\n@@ -0,0 +1 @@\n+--- x\n--- a/C.md\n+++ b/C.md\n@@ -1 +1 @@\n-a\n+b`);
		expect(found.filter((line) => line.kind === "file").map(pathOf)).toEqual(["A/Note.md", "A/Note.md", "", "New.md", "C.md", "C.md"]);
		expect(found.filter((line) => line.kind === "add").map((line) => line.text)).toEqual(["the new cat", "more", "++ a sum", "--- x", "b"]);
	});

	it("shows what is no diff as it is", () => {
		expect(parseDiff("")).toEqual([]);
		expect(parseDiff("send mail\nto Otto").map((line) => [line.kind, line.text])).toEqual([["note", "send mail"], ["note", "to Otto"]]);
		const cut = parseDiff("@@ -1,9 +1,9 @@\n cut\n@@ -20 +20 @@\n-a\n+b");
		expect(cut.map((line) => line.kind)).toEqual(["hunk", "context", "hunk", "remove", "add"]);
	});

	it("has both texts in it", () => {
		for (let seed = 0; seed < 300; seed++) {
			const { diff, old, fresh } = randomDiff(new Dice(seed));
			const found = parseDiff(diff);
			const side = (kind: DiffLine["kind"]): string[] =>
				found.filter((line) => line.kind === "context" || line.kind === kind).map((line) => line.text);
			expect(side("remove")).toEqual(old);
			expect(side("add")).toEqual(fresh);
			for (const { segments, text } of found) if (segments) expect(segments.map((one) => one.text).join("")).toBe(text);
		}
	});
});

describe("compare", () => {
	it("marks what is not in the other line", () => {
		expect(compare("see Otto, the cat", "see Otto the big cat")).toEqual([marked("see Otto|,| the cat"), marked("see Otto the |big |cat")]);
		expect(compare("größe 1", "größe 2")).toEqual([marked("größe |1|"), marked("größe |2|")]);
	});

	it("says nothing of lines that are equal, too different or too long", () => {
		expect(compare("a", "a")).toBeNull();
		expect(compare("one thing", "quite another matter")).toBeNull();
		expect(compare("", "a")).toBeNull();
		expect(compare("a ".repeat(500), "a ".repeat(501))).toBeNull();
	});
});

/** "a |b| c": what stands between bars is changed. */
function marked(text: string): Segment[] {
	return text
		.split("|")
		.map((part, index) => ({ text: part, changed: index % 2 === 1 }))
		.filter((part) => part.text);
}

function randomDiff(dice: Dice): { diff: string; old: string[]; fresh: string[] } {
	const word = (): string => dice.pick(["", "-- a", "++ b", "@@ -1 +1 @@", "plain text here", "plain word here", "  indented", "+", "-", "\\ no"]);
	const rows: string[] = [];
	const [old, fresh]: [string[], string[]] = [[], []];
	for (let n = 1 + dice.roll(12); n > 0; n--) {
		const text = word();
		const side = dice.roll(3);
		rows.push(" -+".charAt(side) + text);
		if (side !== 2) old.push(text);
		if (side !== 1) fresh.push(text);
	}
	const head = `--- a/X.md\n+++ b/X.md\n@@ -${old.length ? 1 : 0},${old.length} +${fresh.length ? 1 : 0},${fresh.length} @@\n`;
	return { diff: head.replace("-0,", "-1,").replace("+0,", "+1,") + rows.join("\n") + "\n", old, fresh };
}
