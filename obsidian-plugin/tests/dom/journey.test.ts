import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Keymap, type App, type TAbstractFile } from "obsidian";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import manifest from "../../manifest.json";
import { diskAdapter } from "../../mocks/obsidian/disk";
import { closeApp, loadPlugin, makeApp, notices, press, runCli, runCommand, type, until } from "../../mocks/obsidian/testing";
import { en } from "../../src/en";
import TarsdPlugin from "../../src/main";
import { Model } from "../contract/model";
import { tarsd, type Tarsd } from "../contract/tarsd";

const NOTES = {
	"House/Boiler.md": "# Boiler\n\n## Pressure\n\nThe gauge should read 1.2 bar when cold. See [[Plumber]].\n",
	"House/Plumber.md": "# Plumber\n\nOlla Brandt repairs the boiler and its gauge.\n",
	"Tea.md": "# Tea\n\nGyokuro wants water of 60 degrees.\n",
};

/** From a key in the box to a note on disk: nothing on the way is replaced but the app and the model. */
describe("a person, a pane, a daemon", { timeout: 180_000 }, () => {
	const model = new Model();
	const events: string[] = [];
	const opened: unknown[][] = [];
	let daemon: Tarsd;
	let app: App;
	let plugin: TarsdPlugin;
	let bar: HTMLElement | null = null;

	beforeAll(async () => {
		Object.assign(window, { require: createRequire(import.meta.url) });
		daemon = tarsd(NOTES, await model.config());
		await daemon.start();
		vi.stubEnv("TARSD_HOME", daemon.home);
	}, 120_000);

	afterAll(async () => {
		(plugin as TarsdPlugin | undefined)?.unload();
		if (bar) await closeApp(app);
		vi.unstubAllEnvs();
		await daemon.remove();
		await model.close();
	}, 120_000);

	beforeEach(() => {
		// what the tests before have built stays; only the frame is cleared between them
		if (bar?.parentElement) document.body.append(app.workspace.containerEl, bar.parentElement);
	});

	const pane = () => app.workspace.containerEl;
	const status = () => bar?.querySelector(".tarsd-status-text")?.textContent ?? "";
	const answers = () => Array.from(pane().querySelectorAll<HTMLElement>(".tarsd-answer"));
	const lastAnswer = () => answers().at(-1)?.textContent ?? "";
	const sessions = () => readdirSync(join(daemon.vault, "tars/sessions"), { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".md"));
	const sessionText = () => readFileSync(join(daemon.vault, "tars/sessions", sessions()[0] ?? ""), "utf8");
	const box = () => pane().querySelector<HTMLTextAreaElement>(".tarsd-box");

	function ask(question: string): void {
		const el = box();
		if (!el) throw new Error("no box");
		type(el, question);
		press(el, "Enter");
	}

	it("connects by itself", async () => {
		app = makeApp({ adapter: diskAdapter(daemon.vault) });
		app.vault.on("create", (file: TAbstractFile) => events.push(`create ${file.path}`));
		app.vault.on("modify", (file: TAbstractFile) => events.push(`modify ${file.path}`));
		const open = app.workspace.openLinkText.bind(app.workspace);
		app.workspace.openLinkText = (...values) => {
			opened.push(values);
			return open(...values);
		};
		plugin = await loadPlugin(app, TarsdPlugin, manifest);
		bar = document.querySelector(".status-bar-item");
		await until(() => status() === en.state.connected);
		expect(bar?.getAttribute("aria-label")).toContain("openai:scripted");
	});

	it("answers in the pane, and a citation leads to the heading", async () => {
		model.replies.push({ text: ["It should read ", "1.2 bar [1]."] });
		runCommand(plugin, "open");
		await until(() => box() !== null);
		ask("What should the boiler gauge read?");
		await until(() => lastAnswer().includes("1.2 bar"));
		await until(() => answers().at(-1)?.querySelector("a") !== null);
		const link = answers().at(-1)?.querySelector("a");
		vi.spyOn(Keymap, "isModEvent").mockReturnValue(false);
		link?.click();
		await until(() => opened.length > 0);
		expect(String(opened[0]?.[0])).toBe("House/Boiler.md#Pressure");
	});

	it("writes the conversation's note through the app", async () => {
		await until(() => events.some((event) => event.startsWith("create tars/sessions/")));
		await until(() => sessionText().includes("1.2 bar"));
		expect(sessions()).toHaveLength(1);
		expect(sessionText()).toContain("What should the boiler gauge read?");
	});

	it("stops at once and keeps the text", async () => {
		model.replies.push({ text: ["A first part", " and a second"], hold: true });
		ask("How warm for tea?");
		await until(() => lastAnswer().includes("A first part"));
		runCommand(plugin, "stop");
		await until(() => pane().textContent?.includes(en.chat.stopped) ?? false);
		expect(lastAnswer()).toContain("A first part");
		expect(lastAnswer()).not.toContain("second");
		model.release();
		await until(() => sessionText().includes("How warm for tea?"));
		expect(runCommand(plugin, "stop")).toBe(false);
	});

	it("finds its daemon again after a restart, and goes on", async () => {
		await daemon.stop();
		runCommand(plugin, "reconnect");
		await until(() => status() === en.state.offline);
		await daemon.start();
		runCommand(plugin, "reconnect");
		await until(() => status() === en.state.connected);
		expect(answers()).toHaveLength(2);
		model.replies.push({ text: ["Olla Brandt does [1]."] });
		ask("Who repairs the boiler?");
		await until(() => lastAnswer().includes("Olla Brandt"));
		await until(() => sessionText().includes("Who repairs the boiler?"));
		await until(() => events.some((event) => event.startsWith("modify tars/sessions/")));
		expect(sessions()).toHaveLength(1);
	});

	it("answers on the command line of the app", async () => {
		model.replies.push({ text: ["60 degrees [1]."] });
		const reply = await runCli(app, "tarsd:ask", { q: "How warm is the water for gyokuro?" });
		expect(reply).toContain("60 degrees [1].");
		expect(reply).toContain(`${en.chat.exportSources}:\n[1] `);
		expect(await runCli(app, "tarsd:ask", { q: "true" })).toBe(en.cli.noQuestion);
		expect(await runCli(app, "tarsd:status")).toContain(daemon.vault);
	});

	it("has nothing to complain about", () => {
		expect(notices()).toEqual([]);
	});
});
