import { mkdtempSync, rmSync } from "node:fs";
import { Component, Platform, type App, type CliHandler } from "obsidian";
import { afterEach, describe, expect, it, vi } from "vitest";
import manifest from "../../manifest.json";
import { diskAdapter } from "../../mocks/obsidian/disk";
import { cliHandlers } from "../../mocks/obsidian/plugin";
import { closeApp, layoutReady, loadPlugin, makeApp, openNote, runCommand, settingsTabOf, type, until } from "../../mocks/obsidian/testing";
import { en } from "../../src/en";
import TarsdPlugin from "../../src/main";
import { DEVICE_KEY } from "../../src/settings";
import type { Call } from "../../src/transport/transport";
import { CHAT_VIEW, ChatView } from "../../src/ui/chat-view";
import { registerCli } from "../../src/ui/cli";
import { ConnectionModal } from "../../src/ui/connection-page";
import { RELATED_VIEW } from "../../src/ui/related-view";
import { problemCount, progress, statusBar } from "../../src/ui/status-bar";
import { parseStatus } from "../../src/protocol/events";
import { one, stage, STATUS, textOf, type Stage } from "./stage";

const commandsOf = (plugin: TarsdPlugin) => [...(plugin as unknown as { commands__: Map<string, { name: string; hotkeys?: unknown }> }).commands__.entries()];
const texts = (selector: string) => Array.from(document.querySelectorAll<HTMLElement>(selector)).map((el) => el.textContent);

describe("the plugin", () => {
	let app: App;
	let plugin: TarsdPlugin;
	let folder = "";
	/** `real`: the vault is a folder on disk, so that there is a place where its daemon would listen. */
	const load = async (data: unknown = null, { files = {}, real = false }: { files?: Record<string, string>; real?: boolean } = {}): Promise<void> => {
		vi.stubEnv("TARSD_HOME", "/nowhere");
		if (real) folder = mkdtempSync("/tmp/tp-");
		app = makeApp({ files, ready: false, ...(real ? { adapter: diskAdapter(folder) } : {}) });
		plugin = await loadPlugin(app, TarsdPlugin, manifest, data);
	};
	afterEach(async () => {
		plugin.unload();
		await closeApp(app);
		vi.unstubAllEnvs();
		if (folder !== "") rmSync(folder, { recursive: true });
		folder = "";
	});
	const rows = () => texts(".setting-item-name");
	const row = (name: string): HTMLElement => {
		const found = Array.from(document.querySelectorAll<HTMLElement>(".setting-item")).find((el) => textOf(".setting-item-name", el) === name);
		if (!found) throw new Error(`No row "${name}" in ${rows().join(", ")}`);
		return found;
	};
	const openTab = () => {
		const tab = settingsTabOf(plugin);
		document.body.append(tab.containerEl);
		tab.update();
		return tab;
	};

	it("has commands without hotkeys, plugin name or the word command, all with different names", async () => {
		await load();
		const all = commandsOf(plugin);
		expect(all.length).toBeGreaterThan(12);
		expect(new Set(all.map(([, { name }]) => name)).size).toBe(all.length);
		for (const [id, { name, hotkeys }] of all) {
			expect(hotkeys).toBeUndefined();
			expect(`${id} ${name}`.toLowerCase()).not.toMatch(/tarsd|command/);
		}
	});

	it("only offers what makes sense", async () => {
		await load(null, { files: { "A.md": "some text" } });
		expect(runCommand(plugin, "stop")).toBe(false);
		expect(runCommand(plugin, "ask-note")).toBe(false);
		expect(runCommand(plugin, "ask-selection")).toBe(false);
		const editor = await openNote(app, "A.md");
		expect(runCommand(plugin, "ask-note")).toBe(true);
		expect(runCommand(plugin, "remember")).toBe(false);
		editor.setSelection({ line: 0, ch: 0 }, { line: 0, ch: 4 });
		expect(runCommand(plugin, "ask-selection")).toBe(true);
		expect(runCommand(plugin, "remember-rule")).toBe(true);
		await until(() => app.workspace.getLeavesOfType(CHAT_VIEW).length === 1);
	});

	it("opens its panes and leaves them where they are when it ends", async () => {
		await load();
		runCommand(plugin, "new-chat");
		runCommand(plugin, "related");
		await until(() => app.workspace.getLeavesOfType(RELATED_VIEW).length === 1 && app.workspace.getLeavesOfType(CHAT_VIEW).length === 1);
		plugin.unload();
		expect(app.workspace.getLeavesOfType(CHAT_VIEW)).toHaveLength(1);
		expect(document.querySelector(".status-bar-item")).toBeNull();
	});

	it("begins chats in tabs, and in windows where the app has them", async () => {
		await load();
		const panes = () => app.workspace.getLeavesOfType(CHAT_VIEW).flatMap(({ view }) => (view instanceof ChatView ? [view.containerEl.doc === document] : []));
		runCommand(plugin, "new-chat-tab");
		await until(() => panes().length === 1);
		runCommand(plugin, "new-chat-tab");
		await until(() => panes().length === 2);
		expect(runCommand(plugin, "new-chat-window")).toBe(true);
		await until(() => panes().length === 3);
		expect(panes()).toEqual([true, true, false]);
		Object.assign(Platform, { isDesktop: false });
		expect(runCommand(plugin, "new-chat-window")).toBe(false);
	});

	it("connects when the layout is there and not before", async () => {
		await load(null, { real: true });
		expect(textOf(".tarsd-status-text")).toBe(en.state.connecting);
		layoutReady(app);
		await until(() => textOf(".tarsd-status-text") === en.state.offline);
		one(".tarsd-status").click();
		expect(textOf(".modal .tarsd-link-state")).toBe(en.connection.notRunningTitle);
		expect(textOf(".modal .tarsd-copyable code")).toContain("tarsd run");
	});

	it("keeps settings in its file and where the daemon is on the device", async () => {
		await load({ sendKey: "mod-enter" });
		const tab = openTab();
		expect(one<HTMLSelectElement>("select", row(en.settings.sendKey)).value).toBe("mod-enter");
		await tab.setControlValue("showSources", true);
		await tab.setControlValue("relatedCount", 999);
		row(en.settings.connection).click();
		expect(rows()).toContain(en.settings.address);
		type(one("input", row(en.settings.address)), "notes.example.org:8300");
		await until(() => app.loadLocalStorage(DEVICE_KEY) !== null);
		const saved: unknown = await plugin.loadData();
		expect(saved).toMatchObject({ sendKey: "mod-enter", showSources: true, relatedCount: 50 });
		expect(JSON.stringify(saved)).not.toContain("example");
		expect(app.loadLocalStorage(DEVICE_KEY)).toMatchObject({ address: "notes.example.org:8300" });
	});

	it("refuses what is no address or no path", async () => {
		await load();
		openTab();
		row(en.settings.connection).click();
		type(one("input", row(en.settings.address)), "ftp://x");
		await until(() => row(en.settings.address).textContent?.includes(en.settings.addressWrong) ?? false);
		type(one("input", row(en.settings.socket)), "relative.sock");
		await until(() => row(en.settings.socket).textContent?.includes(en.settings.socketWrong) ?? false);
		expect(app.loadLocalStorage(DEVICE_KEY)).toBeNull();
	});

	it("shows the state on the row of the page, and what to do on the page", async () => {
		await load(null, { real: true });
		layoutReady(app);
		openTab();
		await until(() => row(en.settings.connection).textContent?.includes(en.state.offline) ?? false);
		row(en.settings.connection).click();
		expect(textOf(".tarsd-link-state")).toBe(en.connection.notRunningTitle);
	});

	it("takes settings over that were synced", async () => {
		await load({ statusBar: true });
		await plugin.saveData({ statusBar: false, relatedExclude: ["Work"] });
		await plugin.onExternalSettingsChange();
		expect(one(".tarsd-status").style.display).toBe("none");
		openTab();
		expect(rows()).toContain("Work");
		one('[aria-label="Delete"]', row("Work")).click();
		await until(() => !rows().includes("Work"));
		expect(await plugin.loadData()).toMatchObject({ relatedExclude: [] });
	});

	it("keeps what a newer version has saved", async () => {
		await load({ ofTheFuture: { a: 1 }, sendKey: "mod-enter" });
		await openTab().setControlValue("showSources", true);
		expect(await plugin.loadData()).toMatchObject({ ofTheFuture: { a: 1 }, sendKey: "mod-enter", showSources: true });
	});

	it("has a command line on the desktop only", async () => {
		await load();
		expect([...cliHandlers(app).keys()]).toEqual(["tarsd:ask", "tarsd:status"]);
		plugin.unload();
		Object.assign(Platform, { isDesktop: false, isDesktopApp: false, isMobile: true, isMobileApp: true, isPhone: true });
		await load();
		expect([...cliHandlers(app).keys()]).toEqual([]);
		layoutReady(app);
		openTab();
		await until(() => row(en.settings.connection).textContent?.includes(en.state.attention) ?? false);
	});
});

describe("the command line", () => {
	it("ends with the plugin", async () => {
		let signal: AbortSignal | undefined;
		const here = await stage({ "POST /v1/turns": () => ({ turn: "t1" }) });
		here.daemon.stream = async function* (call: Call) {
			signal = call.signal;
			await new Promise((resolve) => call.signal?.addEventListener("abort", resolve));
			yield* [];
		};
		const handlers = new Map<string, CliHandler>();
		const owner = new Component();
		owner.load();
		registerCli(
			{
				manifest,
				register: (end) => {
					owner.register(end);
				},
				registerCliHandler: (name, _about, _flags, handler) => void handlers.set(name, handler),
			},
			here.services,
		);
		const answer = handlers.get("tarsd:ask")?.({ q: "Tea?" });
		await until(() => signal !== undefined);
		owner.unload();
		expect(await answer).toBe(en.cli.unloaded);
		here.close();
	});
});

describe("the status bar", () => {
	let here: Stage;
	let bar: Component;
	const begin = async (status: () => unknown): Promise<void> => {
		here = await stage({ "GET /v1/status": status });
		bar = new Component();
		bar.load();
		statusBar(document.body.createDiv(), here.services, bar);
	};
	afterEach(() => {
		bar.unload();
		here.close();
	});

	it("tells connection, index and what needs a look", async () => {
		let counts: Record<string, number> = { ...STATUS.counts, pending: 3 };
		const at = (path: string, line: number, reason = "x") => ({ path, collection: "", line, reason, hint: "h" });
		const problems = [at("A.md", 1), at("A.md", 9), at("A.md", 4, "y"), at("B.md", 1), at("", 0)];
		await begin(() => ({ ...STATUS, counts, behind: 2, problems }));
		await until(() => textOf(".tarsd-status-text") === en.state.indexing(7, 10));
		const tip = one(".tarsd-status").getAttribute("aria-label");
		expect(tip).toContain(en.state.behind(2));
		expect(tip).toContain(en.state.problems(4));
		counts = STATUS.counts;
		here.services.connection.retry();
		await until(() => textOf(".tarsd-status-text") === en.state.connected);
		here.daemon.up = false;
		here.services.connection.check();
		await until(() => textOf(".tarsd-status-text") === en.state.offline);
	});

	it("counts a problem once for each note, as status, doctor and page do", () => {
		const one = { path: "A.md", collection: "", line: 1, reason: "x", hint: "h" };
		expect(problemCount([])).toBe(0);
		expect(problemCount([one, { ...one, line: 2 }])).toBe(1);
		expect(problemCount([one, { ...one, hint: "i" }, { ...one, reason: "y" }, { ...one, path: "B.md" }, { ...one, collection: "Work" }])).toBe(5);
	});

	it("counts what is left, and not what waits for a model that is missing", () => {
		expect(progress(parseStatus(STATUS))).toBeNull();
		expect(progress(parseStatus({ ...STATUS, embedding: { state: "working", done: 3, remaining: 5 } }))).toEqual({ done: 3, total: 8 });
		expect(progress(parseStatus({ ...STATUS, embedding: { state: "unavailable", done: 3, remaining: 5 } }))).toBeNull();
	});

	it("is a button for the keyboard, too", async () => {
		await begin(() => STATUS);
		const el = one(".tarsd-status");
		const opened = vi.spyOn(here.services, "openConnection");
		el.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
		el.click();
		expect(opened).toHaveBeenCalledTimes(2);
	});

	it("opens a page that mends itself", async () => {
		await begin(() => STATUS);
		here.daemon.up = false;
		new ConnectionModal(here.services).open();
		expect(textOf(".modal .tarsd-link-about")).toContain("9.9");
		expect(textOf(".modal .tarsd-link-about")).toContain(en.state.unix("/x/v.sock"));
		one(".modal button").click();
		await until(() => textOf(".modal .tarsd-link-state") === en.connection.notRunningTitle);
		const copied: string[] = [];
		Object.defineProperty(navigator, "clipboard", { configurable: true, value: { writeText: (text: string) => Promise.resolve(copied.push(text)) } });
		one(".modal .tarsd-copyable button").click();
		await until(() => copied.length === 1);
		expect(copied[0]).toBe(textOf(".modal .tarsd-copyable code"));
		here.daemon.up = true;
		one<HTMLElement>(".modal button:last-child").click();
		await until(() => textOf(".modal .tarsd-link-state") === en.state.connected);
	});
});
