import { createServer } from "node:http";
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
	ConfirmationModal,
	FileSystemAdapter,
	FuzzySuggestModal,
	ItemView,
	Menu,
	Modal,
	Notice,
	Plugin,
	type PluginManifest,
	PluginSettingTab,
	Setting,
	SuggestModal,
	type SettingDefinitionItem,
	type WorkspaceLeaf,
	requestUrl,
} from "obsidian";
import { expect, it } from "vitest";
import { diskAdapter } from "../../mocks/obsidian/disk";
import { deferredLeaf, layoutReady, loadPlugin, makeApp, notices, openNote, press, setConfig, settingsTabOf, type, until } from "../../mocks/obsidian/testing";

const manifest: PluginManifest = { id: "some", name: "Some", version: "1.0.0", minAppVersion: "1.13.0", description: "", author: "" };

it("refuses to create over a note or into a folder that is not there", async () => {
	const app = makeApp({ files: { "A.md": "a" } });
	await expect(app.vault.create("A.md", "b")).rejects.toThrow("already exists");
	await expect(app.vault.create("No/B.md", "b")).rejects.toThrow("ENOENT");
	await app.vault.createFolder("No");
	await app.vault.create("No/B.md", "b");
	await expect(app.vault.createFolder("No")).rejects.toThrow("already exists");
});

it("reads the bytes of a note that was written as text", async () => {
	const app = makeApp({ files: { "A.md": "ä" } });
	const file = app.vault.getFileByPath("A.md");
	expect(file && new Uint8Array(await app.vault.readBinary(file))).toEqual(new Uint8Array([0xc3, 0xa4]));
});

it("writes links as the options of the app say", () => {
	const app = makeApp({ files: { "a/Same.md": "", "b/Same.md": "", "My note.md": "" } });
	const link = (path: string, ...more: string[]) => {
		const file = app.vault.getFileByPath(path);
		return file && app.fileManager.generateMarkdownLink(file, "", ...more);
	};
	expect(link("My note.md", "#A head", "x")).toBe("[[My note#A head|x]]");
	expect(link("My note.md", "#^block")).toBe("[[My note#^block]]");
	expect(link("b/Same.md")).toBe("[[b/Same]]");
	setConfig(app, "useMarkdownLinks", true);
	expect(link("My note.md", "", "x")).toBe("[x](My%20note.md)");
});

it("gives an attachment a free place", async () => {
	const app = makeApp({ files: { "n/A.md": "", "n/pic.png": "" } });
	setConfig(app, "attachmentFolderPath", "./");
	expect(await app.fileManager.getAvailablePathForAttachment("pic.png", "n/A.md")).toBe("n/pic 1.png");
});

it("shows a notice and takes it away", () => {
	const notice = new Notice("Saved");
	expect(notices()).toEqual(["Saved"]);
	notice.hide();
	expect(notices()).toEqual([]);
});

it("has rows that answer to clicks and typing", () => {
	const seen: unknown[] = [];
	const row = new Setting(document.body).setName("Row").addToggle((toggle) => toggle.onChange((on) => seen.push(on)));
	row.addText((text) => text.onChange((value) => seen.push(value))).addButton((button) => button.setButtonText("Go").onClick(() => seen.push("go")));
	expect(row.settingEl.matches(".setting-item.mod-toggle")).toBe(true);
	row.controlEl.querySelector<HTMLElement>(".checkbox-container")?.click();
	type(row.controlEl.querySelector("input[type=text]") as HTMLInputElement, "hi");
	row.controlEl.querySelector("button")?.click();
	expect(seen).toEqual([true, "hi", "go"]);
	row.setDisabled(true).controlEl.querySelector("button")?.click();
	expect(seen).toHaveLength(3);
});

class Tab extends PluginSettingTab {
	override getSettingDefinitions(): SettingDefinitionItem[] {
		const settings = () => this.getControlValue("on") === true;
		return [
			{ name: "On", control: { type: "toggle", key: "on" } },
			{
				type: "group",
				heading: "More",
				items: [
					{
						name: "Folder",
						visible: settings,
						control: { type: "folder", key: "folder", validate: (value) => (value.startsWith("/") ? "No slash" : undefined) },
					},
					{ type: "page", name: "Page", displayValue: "here", status: () => "warning", items: [{ name: "Inside" }] },
				],
			},
		];
	}
}

class Some extends Plugin {
	override settings = { on: false, folder: "" };
	override async onload(): Promise<void> {
		Object.assign(this.settings, await this.loadData());
		this.addSettingTab(new Tab(this.app, this));
		this.registerView("some-view", (leaf) => new Pane(leaf));
		this.addStatusBarItem().setText("ok");
	}
}

class Pane extends ItemView {
	log: string[] = [];
	getViewType(): string {
		return "some-view";
	}
	getDisplayText(): string {
		return "Pane";
	}
	override async onOpen(): Promise<void> {
		this.log.push("open");
		this.contentEl.setText("shown");
	}
	override async onClose(): Promise<void> {
		this.log.push("close");
	}
	override async setState(state: unknown): Promise<void> {
		this.log.push(`state ${JSON.stringify(state)}`);
	}
}

it("draws declared settings, keeps what is changed and refuses what does not pass", async () => {
	const plugin = await loadPlugin(makeApp(), Some, manifest, { folder: "notes" });
	const { containerEl } = settingsTabOf(plugin);
	const row = (name: string) =>
		Array.from(containerEl.querySelectorAll<HTMLElement>(".setting-item")).find((el) => el.querySelector(".setting-item-name")?.textContent === name);
	document.body.append(containerEl);
	expect(row("Folder")?.isShown()).toBe(false);
	row("On")?.querySelector<HTMLElement>(".checkbox-container")?.click();
	await until(() => row("Folder")?.isShown() === true);
	expect(await plugin.loadData()).toEqual({ on: true, folder: "notes" });
	const input = row("Folder")?.querySelector("input") as HTMLInputElement;
	expect(input.value).toBe("notes");
	type(input, "/x");
	await until(() => row("Folder")?.hasClass("is-invalid") === true);
	expect(plugin.settings.folder).toBe("notes");
	expect(row("Page")?.querySelector(".setting-item-display-value.mod-warning")?.textContent).toBe("here");
	row("Page")?.click();
	expect(row("Inside")).toBeDefined();
});

it("opens panes in the order of the app and takes all away with the plugin", async () => {
	const app = makeApp();
	const plugin = await loadPlugin(app, Some, manifest);
	const leaf = await app.workspace.ensureSideLeaf("some-view", "right", { active: true, state: { id: 1 } });
	const view = leaf.view as Pane;
	expect(view.log).toEqual(["open", 'state {"id":1}']);
	expect(view.contentEl.matches(".view-content")).toBe(true);
	expect(view.contentEl.isShown()).toBe(true);
	expect(app.workspace.getActiveViewOfType(Pane)).toBe(view);
	expect(document.querySelector(".status-bar-item.plugin-some")).not.toBeNull();
	leaf.detach();
	await until(() => view.log.includes("close"));
	plugin.unload();
	expect(document.querySelector(".status-bar-item")).toBeNull();
});

it("makes a deferred pane only when it is shown", async () => {
	const app = makeApp();
	await loadPlugin(app, Some, manifest);
	deferredLeaf(app, { type: "some-view" });
	const leaf = app.workspace.getLeavesOfType("some-view")[0] as WorkspaceLeaf;
	expect(leaf.view).not.toBeInstanceOf(Pane);
	await app.workspace.revealLeaf(leaf);
	expect(leaf.view).toBeInstanceOf(Pane);
});

it("calls what waits for the layout at once when it is there", () => {
	const seen: string[] = [];
	makeApp().workspace.onLayoutReady(() => seen.push("at once"));
	const app = makeApp({ ready: false });
	app.workspace.onLayoutReady(() => seen.push("later"));
	expect(seen).toEqual(["at once"]);
	layoutReady(app);
	expect(seen).toEqual(["at once", "later"]);
});

it("makes a note from a link that leads nowhere, which is why a plugin looks first", async () => {
	const app = makeApp({ files: { "A.md": "" } });
	const editor = await openNote(app, "A.md");
	editor.replaceSelection("text");
	await app.workspace.openLinkText("No/Where", "A.md", false);
	expect(app.vault.getFileByPath("No/Where.md")).not.toBeNull();
	expect(app.workspace.getActiveFile()?.path).toBe("No/Where.md");
});

it("keeps a modal open until it is closed, with its keys", () => {
	const modal = new Modal(makeApp()).setTitle("Title");
	modal.open();
	expect(document.querySelector(".modal-title")?.textContent).toBe("Title");
	press(document, "Escape");
	expect(document.querySelector(".modal")).toBeNull();
});

it("closes a question unless its button says to stay", async () => {
	const modal = new ConfirmationModal(makeApp());
	let stay = true;
	modal.addButton((button) => button.setButtonText("Go").onClick(() => stay)).addCancelButton();
	modal.open();
	const button = document.querySelector<HTMLElement>(".modal-button-container button");
	button?.click();
	await Promise.resolve();
	expect(document.querySelector(".modal")).not.toBeNull();
	stay = false;
	button?.click();
	await until(() => document.querySelector(".modal") === null);
});

class Words extends SuggestModal<string> {
	chosen: string[] = [];
	async getSuggestions(query: string): Promise<string[]> {
		return ["one", "two", "three"].filter((word) => word.startsWith(query));
	}
	renderSuggestion(value: string, el: HTMLElement): void {
		el.setText(value);
	}
	onChooseSuggestion(value: string): void {
		this.chosen.push(value);
	}
	override onClose(): void {
		this.chosen.push("closed");
	}
}

it("suggests while typing and chooses by keys", async () => {
	const modal = new Words(makeApp());
	modal.open();
	await until(() => document.querySelectorAll(".suggestion-item").length === 3);
	type(modal.inputEl, "t");
	await until(() => document.querySelectorAll(".suggestion-item").length === 2);
	press(modal.inputEl, "ArrowDown");
	expect(document.querySelector(".is-selected")?.textContent).toBe("three");
	press(modal.inputEl, "Enter", { shiftKey: true });
	expect(modal.chosen).toEqual([]);
	press(modal.inputEl, "Enter");
	expect(modal.chosen).toEqual(["closed", "three"]);
});

it("finds loosely, the best first", () => {
	class Fuzzy extends FuzzySuggestModal<string> {
		getItems = () => ["a long tale", "alt", "none"];
		getItemText = (item: string) => item;
		onChooseItem = () => undefined;
	}
	const modal = new Fuzzy(makeApp());
	modal.open();
	expect(document.querySelectorAll(".suggestion-item")).toHaveLength(3);
	type(modal.inputEl, "alt");
	expect(Array.from(document.querySelectorAll(".suggestion-item")).map((el) => el.textContent)).toEqual(["alt", "a long tale"]);
	expect(document.querySelector(".suggestion-highlight")).not.toBeNull();
});

it("shows a menu until something is chosen", () => {
	const seen: string[] = [];
	new Menu().addItem((item) => item.setTitle("Copy").onClick(() => seen.push("copy"))).showAtPosition({ x: 0, y: 0 });
	document.querySelector<HTMLElement>(".menu-item")?.click();
	expect(seen).toEqual(["copy"]);
	expect(document.querySelector(".menu")).toBeNull();
});

it("asks the network for real, and throws only when it should", async () => {
	const server = createServer((request, response) => {
		response.statusCode = request.url === "/no" ? 404 : 200;
		response.end(JSON.stringify({ method: request.method }));
	});
	await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
	const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
	expect((await requestUrl({ url, method: "POST", body: "{}" })).json).toEqual({ method: "POST" });
	await expect(requestUrl(`${url}/no`)).rejects.toThrow("status 404");
	expect((await requestUrl({ url: `${url}/no`, throw: false })).status).toBe(404);
	server.close();
});

it("can stand on a real folder", async () => {
	const root = realpathSync(mkdtempSync(join(tmpdir(), "vault-")));
	writeFileSync(join(root, "A.md"), "# Head\n\n[[B]]");
	const app = makeApp({ adapter: diskAdapter(root) });
	const file = app.vault.getFileByPath("A.md");
	expect(file && app.metadataCache.getFileCache(file)?.headings?.[0]?.heading).toBe("Head");
	await app.vault.createFolder("new");
	await app.vault.create("new/B.md", "b");
	if (file) await app.vault.process(file, (text) => `${text}\n`);
	expect(app.vault.adapter instanceof FileSystemAdapter && app.vault.adapter.getBasePath()).toBe(root);
	expect(readFileSync(join(root, "A.md"), "utf8")).toBe("# Head\n\n[[B]]\n");
	expect(readFileSync(join(root, "new/B.md"), "utf8")).toBe("b");
	rmSync(root, { recursive: true });
});

it("hands a delegated event to the element that was meant", async () => {
	const box = document.body.createDiv();
	const link = box.createEl("a", { cls: "internal-link", text: "x" });
	const seen: string[] = [];
	box.on("click", "a.internal-link", (_event, target) => seen.push(target.className));
	link.click();
	box.click();
	expect(seen).toEqual(["internal-link"]);
	await navigator.clipboard.writeText("copied");
	expect(await navigator.clipboard.readText()).toBe("copied");
});
