import type * as Real from "obsidian";
import { App as FakeApp, FileSystemAdapter, Editor } from "obsidian-test-mocks/obsidian";
import { setup } from "obsidian-test-mocks/setup";
import "./index";
import { closeModals } from "./modal";
import { cliHandlers } from "./plugin";
import { addDeferredLeaf, closeLeaves } from "./workspace";

/** What an app starts with. */
export interface AppOptions {
	/** Notes by path; a path that ends in a slash is an empty folder. */
	files?: Record<string, string>;
	/** Another place for the files, such as a folder on disk: see `disk.ts`. */
	adapter?: Real.DataAdapter;
	/** False starts before the layout is there; `layoutReady` ends that. */
	ready?: boolean;
}

/** The package forgets the selector. */
function delegated(this: HTMLElement, name: string, selector: string, run: (this: HTMLElement, event: Event, target: HTMLElement) => unknown): void {
	this.addEventListener(name, (event) => {
		const start = event.target instanceof Element ? event.target : null;
		const found = start?.closest<HTMLElement>(selector);
		if (found && this.contains(found)) run.call(this, event, found);
	});
}

/** The DOM helpers of the app, with those mended that do not hold outside a browser. Call it once. */
export function installGlobals(): void {
	setup();
	Object.assign(HTMLElement.prototype, { on: delegated });
	HTMLElement.prototype.isShown = function (this: HTMLElement): boolean {
		return this.isConnected && this.closest("[style*='display: none']") === null;
	};
}

export function makeApp({ files = {}, adapter, ready = true }: AppOptions = {}): Real.App {
	const store: Real.DataAdapter = adapter ?? FileSystemAdapter.create__("/vault").asOriginalType__();
	const app = FakeApp.createConfigured__({ files, adapter: store });
	document.body.append(app.workspace.containerEl);
	app.workspace.layoutReady = ready;
	if (adapter) app.vault.reconcile__();
	return app as unknown as Real.App;
}

const fake = (app: Real.App): FakeApp => app as unknown as FakeApp;

/** The layout is there: what waited for it runs. */
export function layoutReady(app: Real.App): void {
	fake(app).workspace.setLayoutReady__();
}

/** Puts the app away after a test: its panes and modals are closed, in order. */
export async function closeApp(app: Real.App): Promise<void> {
	closeModals();
	await closeLeaves(fake(app));
	fake(app).workspace.containerEl.remove();
}

/** Sets one of the app's own options, such as `useMarkdownLinks` or `newLinkFormat`. */
export function setConfig(app: Real.App, key: string, value: unknown): void {
	fake(app).vault.setConfig__(key, value);
}

/** Makes a plugin with what it saved before, and loads it to the end. */
export async function loadPlugin<T extends Real.Plugin>(
	app: Real.App,
	type: new (app: Real.App, manifest: Real.PluginManifest) => T,
	manifest: Real.PluginManifest,
	data: unknown = null,
): Promise<T> {
	const plugin = new type(app, manifest);
	Object.assign(plugin, { data__: data });
	const onload = plugin.onload.bind(plugin);
	const done: Promise<void>[] = [];
	plugin.onload = () => {
		done.push(Promise.resolve(onload()));
	};
	plugin.load();
	await Promise.all(done);
	return plugin;
}

/** Runs a command as the palette does. @returns false when the command does not want to run now. */
export function runCommand(plugin: Real.Plugin, id: string): boolean {
	const commands = (plugin as unknown as { commands__: Map<string, Real.Command> }).commands__;
	const command = commands.get(id);
	if (!command) throw new Error(`No command "${id}"; there are: ${[...commands.keys()].join(", ")}`);
	const info = plugin.app.workspace.activeEditor;
	const editor = info?.editor;
	if (command.editorCheckCallback || command.editorCallback) {
		if (!info || !editor) return false;
		if (command.editorCheckCallback?.(true, editor, info) === false) return false;
		command.editorCheckCallback?.(false, editor, info);
		void command.editorCallback?.(editor, info);
		return true;
	}
	if (command.checkCallback) {
		if (command.checkCallback(true) === false) return false;
		command.checkCallback(false);
		return true;
	}
	void command.callback?.();
	return true;
}

/** Calls a command of the app's command line. */
export async function runCli(app: Real.App, command: string, values: Record<string, string> = {}): Promise<string> {
	const handler = cliHandlers(app).get(command);
	if (!handler) throw new Error(`No command "${command}"`);
	return handler(values);
}

/** The settings tab that a plugin added. */
export function settingsTabOf(plugin: Real.Plugin): Real.PluginSettingTab {
	const tab = (plugin as unknown as { settingTabs__: Real.PluginSettingTab[] }).settingTabs__[0];
	if (!tab) throw new Error("The plugin added no settings tab.");
	return tab;
}

class NoteEditor extends Editor {}

/** Opens a note in an editor and makes it the active one. */
export async function openNote(app: Real.App, path: string): Promise<Real.Editor> {
	const file = app.vault.getFileByPath(path);
	if (!file) throw new Error(`No note "${path}"`);
	const leaf = app.workspace.getLeaf(false);
	await leaf.openFile(file);
	const editor = new NoteEditor().asOriginalType__();
	editor.setValue(await app.vault.read(file));
	const hoverPopover = null;
	app.workspace.activeEditor = { app, file, editor, hoverPopover };
	app.workspace.setActiveLeaf(leaf, { focus: true });
	return editor;
}

/** Puts a pane back as after a restart: not made until it is shown. */
export function deferredLeaf(app: Real.App, state: Real.ViewState): Real.WorkspaceLeaf {
	return addDeferredLeaf(fake(app), state) as unknown as Real.WorkspaceLeaf;
}

/** A text field gets this text, as if typed. */
export function type(el: HTMLInputElement | HTMLTextAreaElement, text: string): void {
	el.value = text;
	el.dispatchEvent(new Event("input", { bubbles: true }));
}

/** A key goes down. @returns false when something used it up. */
export function press(el: EventTarget, key: string, more: KeyboardEventInit = {}): boolean {
	return el.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
}

/** The texts of the messages in the corner. */
export function notices(): string[] {
	return Array.from(document.querySelectorAll(".notice-message")).map((el) => el.textContent ?? "");
}

/** Waits until something holds; how long is the test's own limit. */
export async function until(holds: () => boolean): Promise<void> {
	while (!holds()) await new Promise((done) => window.setTimeout(done, 5));
}
