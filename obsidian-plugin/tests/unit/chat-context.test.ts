import { describe, expect, it } from "vitest";
import { chips, keyOf, MOST_NOTES, noContext, renamed, sendable, sent, toRequest, trimmed, withChip, withCurrent, without, withSelection, type Chip, type Context, type TurnBody } from "../../src/chat/context";
import { Dice } from "./chat-events";

const NOTE = { path: "A/Note.md", name: "Note" };
const OTHER = { path: "B.md", name: "B" };
const CURRENT: Chip = { kind: "current", ...NOTE };
const SELECTION: Chip = { kind: "selection", ...NOTE, text: "Otto" };
const QUESTION = { conversation: "c", request_id: "r", message: "Where?" };

const kinds = (context: Context): string[] => chips(context).map((chip) => chip.kind);
const body = (context: Context): TurnBody => toRequest(QUESTION, context, () => []).body;

describe("chips", () => {
	const context = withCurrent(noContext(), NOTE);

	it("show the current note", () => {
		expect(chips(noContext())).toEqual([]);
		expect(chips(context)).toEqual([CURRENT]);
		expect(chips(withCurrent(context, null))).toEqual([]);
	});

	it("show a selection instead of the current note", () => {
		expect(chips(withSelection(context, { ...NOTE, text: "Otto" }))).toEqual([SELECTION]);
		expect(kinds(withSelection(context, { ...NOTE, text: " \n" }))).toEqual(["current"]);
		expect(kinds(withSelection(withSelection(context, { ...NOTE, text: "Otto" }), null))).toEqual(["current"]);
	});

	it("stay away when they were taken away, until there is another note or another selection", () => {
		const taken = without(context, CURRENT);
		expect(chips(taken)).toEqual([]);
		expect(chips(withCurrent(taken, { ...NOTE }))).toEqual([]);
		expect(kinds(withCurrent(taken, OTHER))).toEqual(["current"]);
		expect(kinds(withCurrent(withCurrent(taken, OTHER), NOTE))).toEqual(["current"]);
		const bare = without(withSelection(taken, { ...NOTE, text: "Otto" }), SELECTION);
		expect(chips(bare)).toEqual([]);
		expect(kinds(withSelection(bare, { ...NOTE, text: "Otto" }))).toEqual([]);
		expect(kinds(withSelection(bare, { ...NOTE, text: "Anna" }))).toEqual(["selection"]);
		expect(kinds(withSelection(withSelection(bare, null), { ...NOTE, text: "Otto" }))).toEqual(["selection"]);
	});

	it("come back when the person asks about them", () => {
		expect(chips(withChip(without(context, CURRENT), CURRENT))).toEqual([CURRENT]);
		const without_ = without(withSelection(context, { ...NOTE, text: "Otto" }), SELECTION);
		expect(chips(withChip(without_, SELECTION))).toEqual([SELECTION]);
	});

	it("that were added are there once, and gone after the question", () => {
		const folder: Chip = { kind: "folder", path: "A" };
		let full = withChip(withChip(withChip(context, folder), folder), { kind: "tag", tag: "Work" });
		full = withChip(full, { kind: "tag", tag: "work" });
		expect(kinds(full)).toEqual(["current", "folder", "tag"]);
		expect(kinds(without(full, folder))).toEqual(["current", "tag"]);
		expect(kinds(sent(full))).toEqual(["current"]);
		expect(sent(context)).toBe(context);
	});

	it("do not show the current note twice", () => {
		const note: Chip = { kind: "note", ...NOTE };
		expect(kinds(withChip(context, note))).toEqual(["current"]);
		expect(kinds(without(withChip(context, note), CURRENT))).toEqual(["note"]);
	});

	it("are the same object when nothing is new", () => {
		expect(withCurrent(context, { ...NOTE })).toBe(context);
		const marked = withSelection(context, { ...NOTE, text: "Otto" });
		expect(withSelection(marked, { ...NOTE, text: "Otto" })).toBe(marked);
		expect(without(without(context, CURRENT), CURRENT).refused).toHaveLength(1);
	});

	it("follow a rename of the note or of its folder", () => {
		const full = withChip(withChip(withSelection(context, { ...NOTE, text: "x" }), { kind: "folder", path: "A" }), { kind: "note", ...OTHER });
		const moved = renamed(renamed(full, "A", "Z"), "B.md", "C/D.md");
		expect(moved.current).toEqual({ path: "Z/Note.md", name: "Note" });
		expect(chips(moved)).toEqual([
			{ kind: "selection", path: "Z/Note.md", name: "Note", text: "x" },
			{ kind: "folder", path: "Z" },
			{ kind: "note", path: "C/D.md", name: "D" },
		]);
		expect(chips(renamed(without(context, CURRENT), "A/Note.md", "New.md"))).toEqual([]);
		expect(renamed(context, "A/Not", "X").current).toEqual(NOTE);
	});
});

describe("the request", () => {
	it("has the current note", () => {
		expect(body(withCurrent(noContext(), NOTE))).toEqual({ ...QUESTION, notes: ["A/Note.md"], writer: "client", approvals: true });
		expect(body(noContext())).toEqual({ ...QUESTION, writer: "client", approvals: true });
	});

	it("has only the selection of a note in which something is marked, and says which note that is", () => {
		const made = body(withSelection(withCurrent(noContext(), NOTE), { ...NOTE, text: "Otto" }));
		expect(made).toMatchObject({ selection: "Otto", selection_note: "A/Note.md" });
		expect(made.notes).toBeUndefined();
	});

	it("has what the person named first, every note once, and no more than the daemon takes", () => {
		const context = withChip(withChip(withCurrent(noContext(), NOTE), { kind: "folder", path: "F" }), { kind: "note", ...OTHER });
		const many = Array.from({ length: 60 }, (_, n) => `F/${n}.md`);
		const { body: made, leftOut } = toRequest(QUESTION, context, () => ["B.md", ...many]);
		expect(made.notes?.slice(0, 3)).toEqual(["A/Note.md", "B.md", "F/0.md"]);
		expect(made.notes).toHaveLength(MOST_NOTES);
		expect(leftOut).toBe(12);
	});

	it("expands folders and tags, each as itself", () => {
		const context = withChip(withChip(noContext(), { kind: "folder", path: "F" }), { kind: "tag", tag: "t" });
		const { body: made } = toRequest(QUESTION, context, (chip) => [chip.kind === "folder" ? `${chip.path}/x.md` : `${chip.tag}.md`]);
		expect(made.notes).toEqual(["F/x.md", "t.md"]);
	});

	it("sends exactly what is shown", () => {
		for (let seed = 0; seed < 300; seed++) {
			const dice = new Dice(seed);
			let context = noContext();
			for (let n = dice.roll(20); n > 0; n--) {
				const note = dice.pick([NOTE, OTHER]);
				const shown = chips(context);
				const steps: ((one: Context) => Context)[] = [
					(one) => withCurrent(one, note),
					(one) => withCurrent(one, null),
					(one) => withSelection(one, { ...note, text: dice.pick(["Otto", "Anna"]) }),
					(one) => withSelection(one, null),
					(one) => withChip(one, { kind: "note", ...note }),
					(one) => (shown.length ? without(one, dice.pick(shown)) : one),
					(one) => withChip(one, { kind: "current", ...note }),
					sent,
				];
				const removed = steps.indexOf(dice.pick(steps));
				context = steps[removed]?.(context) ?? context;
			}
			const shown = chips(context);
			const made = body(context);
			expect(new Set(shown.map(keyOf)).size).toBe(shown.length);
			expect(made.selection).toBe(shown.find((chip) => chip.kind === "selection")?.text);
			const paths = shown.flatMap((chip) => (chip.kind === "note" || chip.kind === "current" ? [chip.path] : []));
			expect(made.notes ?? []).toEqual(paths);
			if (made.selection !== undefined) expect(kinds(context)).not.toContain("current");
			for (const chip of shown) expect(chips(without(context, chip)).map(keyOf)).not.toContain(keyOf(chip));
		}
	});
});

it("sends no empty message, and none with empty lines around it", () => {
	expect(sendable(" \n\t")).toBe(false);
	expect(sendable(" a ")).toBe(true);
	expect(trimmed("\n  \n  - a\n    - b\n\n")).toBe("  - a\n    - b");
});
