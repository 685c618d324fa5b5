import { Keymap, type WorkspaceLeaf } from "obsidian";
import { afterEach, describe, expect, it, vi } from "vitest";
import { notices, openNote, press, type, until } from "../../mocks/obsidian/testing";
import { en } from "../../src/en";
import { TransportError } from "../../src/transport/transport";
import { remember, showMemory, undoMemory } from "../../src/ui/memory-modal";
import { RELATED_VIEW, RelatedView } from "../../src/ui/related-view";
import { ReviewModal } from "../../src/ui/review-modal";
import { hit, one, stage, textOf, type Stage } from "./stage";

let here: Stage;
let leaf: WorkspaceLeaf | null = null;
afterEach(() => {
	leaf?.detach();
	leaf = null;
	here.close();
	vi.restoreAllMocks();
});

const texts = (selector: string) => Array.from(document.querySelectorAll<HTMLElement>(selector)).map((el) => el.textContent);
const button = (text: string) => Array.from(document.querySelectorAll("button")).find((el) => el.textContent === text);

describe("related notes", () => {
	const FILES = { "A.md": "a", "B.md": "b", "Work/C.md": "c", "Tea.md": "t" };
	const show = async (): Promise<RelatedView> => {
		leaf = here.app.workspace.getLeaf("tab");
		const view = new RelatedView(leaf, here.services);
		await leaf.open(view);
		return view;
	};

	it("follow the note in front, and say why", async () => {
		here = await stage(
			{
				"POST /v1/related": (body) =>
					(body as { path: string }).path === "A.md"
						? { hits: [hit("A.md"), hit("B.md", { why: ["meaning 0.7 (table)", "links here"], heading: "Part" }), hit("Work/C.md")] }
						: { hits: [hit("Tea.md")] },
			},
			FILES,
		);
		await openNote(here.app, "A.md");
		await show();
		expect(texts(".tarsd-related-item a")).toEqual(["B", "C"]);
		expect(texts(".tarsd-related-item:first-child .tarsd-related-reason")).toEqual([en.related.similar, "Links here"]);
		expect(textOf(".tarsd-related-head")).toBe(en.related.to("A"));
		await openNote(here.app, "B.md");
		await until(() => textOf(".tarsd-related-head") === en.related.to("B"));
		expect(texts(".tarsd-related-item a")).toEqual(["Tea"]);
	});

	it("open where the person wants, with a preview under the mouse", async () => {
		here = await stage({ "POST /v1/related": () => ({ hits: [hit("B.md", { heading: "Part", link: "B#Part" })] }) }, FILES);
		await openNote(here.app, "A.md");
		const opened: unknown[][] = [];
		here.app.workspace.openLinkText = (...values) => {
			opened.push(values);
			return Promise.resolve();
		};
		await show();
		const link = one(".tarsd-related-item a");
		const hovered: unknown[] = [];
		here.app.workspace.on("hover-link" as "quit", (event) => hovered.push(event));
		link.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
		expect(hovered[0]).toMatchObject({ source: RELATED_VIEW, linktext: "B#Part", sourcePath: "A.md" });
		vi.spyOn(Keymap, "isModEvent").mockReturnValueOnce(false).mockReturnValueOnce("tab");
		link.click();
		link.dispatchEvent(new MouseEvent("auxclick", { button: 1, bubbles: true }));
		await until(() => opened.length === 2);
		expect(opened.map((values) => values.slice(0, 3))).toEqual([["B.md#Part", "A.md", false], ["B.md#Part", "A.md", "tab"]]);
	});

	it("leave out what the settings leave out, and say so when nothing is left", async () => {
		here = await stage({ "POST /v1/related": () => ({ hits: [hit("Work/C.md")] }) }, FILES);
		here.settings.relatedExclude = ["Work"];
		await openNote(here.app, "A.md");
		await show();
		expect(textOf(".tarsd-related-none")).toBe(en.related.allHidden);
	});

	it("leave out conversations unless they are wished for, and show no Markdown", async () => {
		const logs = { "Talk.md": "---\ntars: session\n---\n", "tars/sessions/Mine.md": "# Mine" };
		const hits = [hit("Talk.md"), hit("tars/sessions/Unread.md"), hit("tars/sessions/Mine.md"), hit("B.md", { heading: "B", text: "# B\n\n#### Part\n| a | b |\n| --- | --- |" })];
		here = await stage({ "POST /v1/related": () => ({ hits }) }, { ...FILES, ...logs });
		await openNote(here.app, "A.md");
		const view = await show();
		expect(texts(".tarsd-related-item a")).toEqual(["Mine", "B"]);
		expect(texts(".tarsd-hit-text").at(-1)).toBe("Part a · b");
		expect(texts(".tarsd-hit-place")).toEqual(["tars/sessions"]);
		here.settings.relatedConversations = true;
		await view.look();
		expect(texts(".tarsd-related-item a")).toEqual(["Talk", "Unread", "Mine", "B"]);
	});

	it("say what is missing: a note, the index, the daemon", async () => {
		here = await stage({}, FILES);
		const view = await show();
		expect(textOf(".tarsd-related-none")).toBe(en.related.noNote);
		await openNote(here.app, "A.md");
		await view.look();
		expect(textOf(".tarsd-related-none")).toBe(en.related.notIndexed);
		here.daemon.up = false;
		here.services.connection.check();
		await until(() => textOf(".tarsd-related-none").includes(en.connection.notRunning));
	});

	it("drop a slow answer to an older question", async () => {
		let slow: (value: unknown) => void = () => undefined;
		here = await stage(
			{
				"POST /v1/related": (body) =>
					(body as { path: string }).path === "A.md"
						? new Promise((resolve) => { slow = resolve; })
						: { hits: [hit("Tea.md")] },
			},
			FILES,
		);
		const view = await show();
		await openNote(here.app, "A.md");
		const first = view.look();
		await until(() => here.daemon.calls.length === 1);
		await openNote(here.app, "B.md");
		await view.look();
		slow({ hits: [hit("Work/C.md")] });
		await first;
		expect(texts(".tarsd-related-item a")).toEqual(["Tea"]);
	});
});

describe("the memory", () => {
	it("remembers a selection as one line, and takes it back", async () => {
		here = await stage({
			"POST /v1/memory": (body) => ({ path: "tars/memory.md", diff: (body as { text: string }).text === "known" ? "" : "+x" }),
			"POST /v1/memory/undo": () => ({ id: "w", path: "tars/memory.md", hash: null }),
		});
		await remember(here.services, " I drink\n tea ");
		expect(here.daemon.bodies("POST /v1/memory")).toEqual([{ text: "I drink tea", kind: "semantic" }]);
		expect(notices()[0]).toContain(en.memory.remembered("tars/memory.md"));
		button(en.writes.undo)?.click();
		await until(() => notices().at(-1) === en.memory.undone);
		expect(here.daemon.bodies("POST /v1/memory/undo")).toHaveLength(1);
		await remember(here.services, "Answer\nin one sentence", "procedural");
		expect(here.daemon.bodies("POST /v1/memory")[1]).toEqual({ text: "Answer in one sentence", kind: "procedural" });
		await remember(here.services, "known");
		expect(notices().at(-1)).toBe(en.memory.alreadyKnown);
	});

	it("shows what is remembered, and forgets exactly the chosen line after a yes", async () => {
		here = await stage({
			"GET /v1/memory": () => ({ enabled: true, facts: [{ line: "I drink tea", date: "2026-05-01" }], rules: [{ line: "Be short" }], noticed: [] }),
			"POST /v1/memory/forget": () => ({ path: "tars/rules.md", diff: "-x" }),
		});
		await showMemory(here.services);
		expect(texts(".tarsd-hit-place")).toEqual([`${en.memory.fact} · 2026-05-01`, en.memory.rule]);
		type(one("input"), "short");
		press(one("input"), "Enter");
		await until(() => button(en.memory.forgetYes) !== undefined);
		button(en.memory.forgetYes)?.click();
		await until(() => here.daemon.bodies("POST /v1/memory/forget").length === 1);
		expect(here.daemon.bodies("POST /v1/memory/forget")).toEqual([{ line: "Be short" }]);
	});

	it("says what went wrong", async () => {
		here = await stage({
			"POST /v1/memory/undo": () => {
				throw new TransportError("http", "x", { status: 404, body: { code: "not_found", message: "There is nothing.", hint: "" } });
			},
		});
		await undoMemory(here.services);
		expect(notices()).toEqual(["There is nothing."]);
	});
});

describe("a review", () => {
	const REVIEW = {
		review: "r1",
		model: "a-model",
		proposals: [
			{ id: "p1", kind: "rule", text: "Be short", why: "Said twice", replaces: "Be long", private: false },
			{ id: "p2", kind: "memory", text: "I drink tea", why: "", replaces: "", private: true },
			{ id: "p3", kind: "rule", text: "Left", why: "", replaces: "", private: false },
		],
		diff: "+Be short",
	};

	it("keeps, changes and drops what was decided, and nothing else", async () => {
		here = await stage({ "POST /v1/review": () => REVIEW, "POST /v1/review/apply": () => ({ written: ["a", "b"], diff: "" }) });
		new ReviewModal(here.services).open();
		await until(() => texts(".tarsd-proposal").length === 3);
		expect(textOf(".tarsd-proposal")).toContain("Be long");
		button(en.memory.apply)?.click();
		await until(() => notices().length === 1);
		expect(notices()).toEqual([en.memory.nothingChosen]);
		const choices = Array.from(document.querySelectorAll("select"));
		const pick = (index: number, value: string): void => {
			const el = choices[index];
			if (!el) throw new Error("no choice");
			el.value = value;
			el.dispatchEvent(new Event("change"));
		};
		pick(0, "keep");
		pick(1, "keep");
		const second = document.querySelectorAll("textarea")[1];
		if (second) type(second, " I drink green tea ");
		pick(2, "drop");
		pick(2, "later");
		button(en.memory.apply)?.click();
		await until(() => notices().length === 2);
		expect(here.daemon.bodies("POST /v1/review/apply")).toEqual([
			{ review: "r1", decisions: [{ id: "p1", action: "apply" }, { id: "p2", action: "edit", text: "I drink green tea" }] },
		]);
		expect(notices()[1]).toBe(en.memory.applied(2));
		expect(document.querySelector(".tarsd-review")).toBeNull();
	});

	it("lets a remark become a rule only in the person's words", async () => {
		const of = (id: string): object => ({ id, kind: "rule", text: `remark ${id}`, why: "", replaces: "", private: false, remark: true });
		const review = { review: "r1", model: "", proposals: ["p1", "p2", "p3"].map(of), diff: "" };
		here = await stage({ "POST /v1/review": () => review, "POST /v1/review/apply": () => ({ written: ["a"], diff: "" }) });
		new ReviewModal(here.services).open();
		await until(() => texts(".tarsd-proposal").length === 3);
		expect(textOf(".tarsd-proposal")).toContain(en.memory.said("remark p1"));
		expect(Array.from(document.querySelectorAll("textarea"), (area) => area.value)).toEqual(["", "", ""]);
		document.querySelectorAll("select").forEach((el, index) => {
			el.value = ["keep", "keep", "drop"][index] ?? "";
			el.dispatchEvent(new Event("change"));
		});
		const first = document.querySelector("textarea");
		if (first) type(first, "Say the year");
		button(en.memory.apply)?.click();
		await until(() => notices().length === 1);
		expect(here.daemon.bodies("POST /v1/review/apply")).toEqual([
			{ review: "r1", decisions: [{ id: "p1", action: "edit", text: "Say the year" }, { id: "p3", action: "drop" }] },
		]);
	});

	it("says that there is nothing, or why not", async () => {
		here = await stage({ "POST /v1/review": () => ({ review: "r", model: "", proposals: [], diff: "" }) });
		const modal = new ReviewModal(here.services);
		modal.open();
		await until(() => modal.contentEl.textContent === en.memory.reviewNothing);
	});
});
