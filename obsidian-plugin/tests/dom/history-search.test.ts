import { Keymap, TFile } from "obsidian";
import { afterEach, describe, expect, it, vi } from "vitest";
import { notices, openNote, press, type, until } from "../../mocks/obsidian/testing";
import { en } from "../../src/en";
import { TransportError } from "../../src/transport/transport";
import { HistoryModal } from "../../src/ui/history-modal";
import { SearchModal } from "../../src/ui/search-modal";
import { hit, one, stage, textOf, type Stage } from "./stage";

let here: Stage;
afterEach(() => {
	here.close();
});

const items = (selector: string) => Array.from(document.querySelectorAll<HTMLElement>(selector));

describe("history", () => {
	const now = Date.now() / 1000;
	const list = [
		{ id: "c1", title: "Über den Kessel", created: now, updated: now, turns: 2 },
		{ id: "c2", title: "Tea", created: 1, updated: now - 86400 * 400, turns: 1 },
		{ id: "c3", title: "", created: 1, updated: now - 1, turns: 1 },
	];
	const begin = async (routes = {}): Promise<void> => {
		here = await stage({ "GET /v1/conversations": () => ({ conversations: structuredClone(list) }), ...routes });
		new HistoryModal(here.services).open();
		await until(() => items(".tarsd-history-row").length > 0);
	};
	const titles = () => items(".tarsd-history-row .suggestion-title").map((el) => el.textContent);

	it("lists the last first and finds by words, without case and accents", async () => {
		await begin();
		expect(titles()).toEqual(["Über den Kessel", en.chat.untitled, "Tea"]);
		expect(items(".tarsd-history-row")[0]?.textContent).toContain(en.history.turns(2));
		type(one("input"), "kessel uber");
		await until(() => titles().length === 1);
		expect(titles()).toEqual(["Über den Kessel"]);
		type(one("input"), "nothing");
		await until(() => textOf(".suggestion-empty") === en.history.nothing);
	});

	it("has the name of each day before its first conversation, which is no line to choose", async () => {
		vi.useFakeTimers({ toFake: ["Date"], now: new Date(2026, 10, 28, 12) });
		try {
			const on = (day: number, hour: number): number => new Date(2026, 10, day, hour).getTime() / 1000;
			const times = { a: on(28, 9), b: on(28, 8), c: on(27, 23), d: on(22, 1), e: on(21, 23), f: on(21, 1) };
			const conversations = Object.entries(times).map(([id, updated]) => ({ id, title: id, created: 1, updated, turns: 1 }));
			await begin({ "GET /v1/conversations": () => ({ conversations }) });
			const shown = () => items(".tarsd-history-day, .suggestion-title").map((el) => el.textContent);
			const day = (seconds: number, how: Intl.DateTimeFormatOptions) => new Date(seconds * 1000).toLocaleDateString(undefined, how);
			const [sunday, earlier] = [day(times.d, { weekday: "long" }), day(times.e, { dateStyle: "long" })];
			expect(shown()).toEqual([en.history.today, "a", "b", en.history.yesterday, "c", sunday, "d", earlier, "e", "f"]);
			expect(items(".tarsd-history-day").every((el) => el.getAttribute("role") === "heading" && el.querySelector("bdi"))).toBe(true);
			for (const chosen of ["b", "c"]) {
				press(one("input"), "ArrowDown");
				expect(textOf(".is-selected .suggestion-title")).toBe(chosen);
			}
			one(".tarsd-history-day").click();
			expect(here.opened).toEqual([]);
			type(one("input"), "f");
			await until(() => titles().length === 1);
			expect(shown()).toEqual([earlier, "f"]);
		} finally {
			vi.useRealTimers();
		}
	});

	it("opens with Enter, in a tab with Mod, in a window with all modifiers, and moves with the arrows", async () => {
		await begin();
		press(one("input"), "ArrowDown");
		expect(textOf(".is-selected .suggestion-title")).toBe(en.chat.untitled);
		press(one("input"), "ArrowUp");
		press(one("input"), "Enter");
		expect(here.opened).toEqual([{ conversation: "c1" }]);
		new HistoryModal(here.services).open();
		await until(() => items(".tarsd-history-row").length > 0);
		press(one("input"), "ArrowUp");
		press(one("input"), "Enter", { ctrlKey: true });
		expect(here.opened[1]).toEqual({ conversation: "c2", place: "tab" });
		new HistoryModal(here.services).open();
		await until(() => items(".tarsd-history-row").length > 0);
		vi.spyOn(Keymap, "isModEvent").mockReturnValueOnce("window");
		one(".tarsd-history-row").click();
		expect(here.opened[2]).toEqual({ conversation: "c1", place: "window" });
	});

	const question = (text: string) => items(".modal-button-container button").find((el) => el.textContent === text);
	const row = (label: string) => one(`[aria-label="${label}"]`, items(".tarsd-history-row").at(-1));

	it("renames in a box; Escape leaves the title and the list as they are", async () => {
		await begin({ "PATCH /v1/conversations/c2": () => ({}) });
		const box = () => one<HTMLInputElement>(".modal input");
		row(en.history.rename).click();
		expect(box().value).toBe("Tea");
		type(box(), "Coffee");
		press(box(), "Escape");
		await until(() => items(".modal").length === 0);
		expect(titles()).toContain("Tea");
		press(one("input"), "ArrowUp");
		press(one("input"), "F2");
		type(box(), " Coffee ");
		press(box(), "Enter", { isComposing: true });
		expect(here.daemon.bodies("PATCH /v1/conversations/c2")).toEqual([]);
		press(box(), "Enter");
		await until(() => titles().includes("Coffee"));
		expect(here.daemon.bodies("PATCH /v1/conversations/c2")).toEqual([{ title: "Coffee" }]);
		expect(here.opened).toEqual([]);
	});

	it("deletes only after a yes", async () => {
		await begin({ "DELETE /v1/conversations/c2": () => ({}) });
		row(en.history.remove).click();
		question("Cancel")?.click();
		await until(() => items(".modal-button-container").length === 0);
		expect(titles()).toContain("Tea");
		press(one("input"), "ArrowUp");
		press(one("input"), "d", { ctrlKey: true });
		question(en.history.remove)?.click();
		await until(() => !titles().includes("Tea"));
		expect(here.daemon.bodies("DELETE /v1/conversations/c2")).toHaveLength(1);
	});

	it("says why there is no list", async () => {
		here = await stage({}, {}, false);
		new HistoryModal(here.services).open();
		await until(() => textOf(".suggestion-empty") !== "");
		expect(textOf(".suggestion-empty")).toContain(en.connection.notRunningTitle);
	});
});

describe("search", () => {
	const FILES = { "A/Boiler.md": "# Boiler\n", "Tea.md": "tea" };
	const found = () => items(".tarsd-hit .suggestion-title").map((el) => el.textContent);
	const asked = () => here.daemon.bodies("POST /v1/search") as { query: string; mode: string }[];

	it("shows what has the words at once, and the better answer when it comes", async () => {
		let better: (value: unknown) => void = () => undefined;
		here = await stage(
			{
				"POST /v1/search": (body) =>
					(body as { mode: string }).mode === "fts"
						? { hits: [hit("Tea.md", { text: "Gyokuro is a tea of Japan" })] }
						: new Promise((resolve) => {
								better = resolve;
							}),
			},
			FILES,
		);
		new SearchModal(here.services).open();
		type(one("input"), "TÉA");
		await until(() => found().length === 1);
		expect(items(".tarsd-hit .suggestion-highlight").map((el) => el.textContent)).toEqual(["Tea", "tea"]);
		await until(() => asked().length === 2);
		better({ hits: [hit("A/Boiler.md"), hit("Tea.md")] });
		await until(() => found().length === 2);
		expect(found()).toEqual(["Boiler", "Tea"]);
		expect(asked().map(({ mode }) => mode)).toEqual(["fts", "hybrid"]);
	});

	it("does not take the list away from under a person who chooses", async () => {
		let better: (value: unknown) => void = () => undefined;
		const both = { hits: [hit("Tea.md"), hit("A/Boiler.md")] };
		here = await stage(
			{
				"POST /v1/search": (body) =>
					(body as { mode: string }).mode === "fts" ? both : new Promise((resolve) => { better = resolve; }),
			},
			FILES,
		);
		new SearchModal(here.services).open();
		type(one("input"), "tea");
		await until(() => found().length === 2);
		press(one("input"), "ArrowDown");
		await until(() => asked().length === 2);
		better({ hits: [] });
		await new Promise((done) => setTimeout(done, 20));
		expect(found()).toEqual(["Tea", "Boiler"]);
		expect(textOf(".is-selected .suggestion-title")).toBe("Boiler");
	});

	const choose = async (hits: unknown[], key: KeyboardEventInit): Promise<unknown[][]> => {
		here = await stage({ "POST /v1/search": () => ({ hits }) }, FILES);
		await openNote(here.app, "Tea.md");
		const opened: unknown[][] = [];
		here.app.workspace.openLinkText = (...values) => {
			opened.push(values);
			return Promise.resolve();
		};
		new SearchModal(here.services).open();
		type(one("input"), "x");
		await until(() => found().length > 0);
		press(one("input"), "Enter", key);
		await new Promise((done) => setTimeout(done, 5));
		return opened;
	};
	const BOILER = hit("A/Boiler.md", { heading: "Pressure", link: "A/Boiler#Pressure" });

	it("opens at the heading, and at the line without one", async () => {
		expect((await choose([BOILER], {}))[0]).toEqual(["A/Boiler.md#Pressure", "", false, {}]);
		here.close();
		expect((await choose([hit("Tea.md", { start_line: 12 })], {}))[0]).toEqual(["Tea.md", "", false, { eState: { line: 11 } }]);
	});

	it("opens in a tab with Mod and inserts a link with Shift", async () => {
		expect((await choose([BOILER], { ctrlKey: true }))[0]?.[2]).toBe("tab");
		here.close();
		expect(await choose([BOILER], { shiftKey: true })).toEqual([]);
		expect(here.inserted).toEqual(["[[Boiler#Pressure|Pressure]]"]);
	});

	it("opens nothing that is not in this vault, and makes no note of it", async () => {
		expect(await choose([hit("Books/Dune.md", { collection: "Library" })], {})).toEqual([]);
		expect(notices()).toEqual([en.search.notHere("Dune")]);
		here.close();
		expect(await choose([hit("Gone.md")], {})).toEqual([]);
		expect(here.app.vault.getAbstractFileByPath("Gone.md")).not.toBeInstanceOf(TFile);
	});

	it("puts conversations behind the notes, and marks them", async () => {
		const log = hit("tars/sessions/Talk.md", { text: "## Tea?\n\n**60** degrees" });
		const moved = hit("Old/Talk.md");
		here = await stage(
			{ "POST /v1/search": () => ({ hits: [log, moved, hit("Tea.md", { text: "# Tea\n\n- 60 `degrees`" })] }) },
			{ ...FILES, "Old/Talk.md": "---\ntars: session\n---\n", "tars/sessions/Talk.md": "---\ntars: session\n---\n" },
		);
		new SearchModal(here.services).open();
		type(one("input"), "x");
		await until(() => found().length === 3);
		expect(items(".tarsd-hit .tarsd-hit-place").map((el) => el.textContent)).toEqual(["Tea.md", "tars/sessions/Talk.md", "Old/Talk.md"]);
		expect(items(".tarsd-hit").map((el) => el.querySelector(".suggestion-flair")?.textContent)).toEqual([
			undefined,
			en.search.conversation,
			en.search.conversation,
		]);
		expect(items(".tarsd-hit .tarsd-hit-text").map((el) => el.textContent).slice(0, 2)).toEqual(["60 degrees", "Tea? 60 degrees"]);
	});

	it("says what is wrong in the place of results", async () => {
		const body = { code: "bad_request", message: "No such month.", hint: "Write 2026-05." };
		here = await stage({
			"POST /v1/search": () => {
				throw new TransportError("http", "bad", { status: 400, body });
			},
		});
		new SearchModal(here.services).open();
		expect(textOf(".suggestion-empty")).toBe("");
		type(one("input"), "date:2026-99");
		await until(() => textOf(".suggestion-empty") === "No such month. Write 2026-05.");
	});
});
