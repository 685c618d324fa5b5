import type * as Real from "obsidian";
import { Plugin as Base, type App } from "obsidian-test-mocks/obsidian";
import { setIcon } from "./icons";
import { codeBlockProcessors } from "./markdown";
import { creatorsOf, perApp } from "./view";

/** Commands of the app's own command line. */
export const cliHandlers = perApp<Real.CliHandler>();

/** What a plugin registers is in the app while it is loaded, and gone afterwards. */
export abstract class Plugin extends Base {
	constructor(app: App, manifest: Real.PluginManifest) {
		super(app, manifest);
		Object.assign(this, { data__: null });
	}

	/** Null before anything was saved; afterwards always a fresh copy, as it comes from a file. */
	override async loadData(): Promise<unknown> {
		await Promise.resolve();
		return this.data__ === null ? null : (JSON.parse(JSON.stringify(this.data__)) as unknown);
	}
	override async saveData(data: unknown): Promise<void> {
		await Promise.resolve();
		this.data__ = JSON.parse(JSON.stringify(data)) as Record<string, unknown>;
	}
	override registerView(type: string, create: Real.ViewCreator): void {
		const creators = creatorsOf(this.app);
		if (creators.has(type)) throw new Error(`Attempting to register an existing view type "${type}"`);
		creators.set(type, create);
		this.register(() => creators.delete(type));
	}
	override registerCliHandler(command: string, _description: string, _flags: Real.CliFlags | null, handler: Real.CliHandler): void {
		const handlers = cliHandlers(this.app);
		const id = this.manifest.id;
		if (command !== id && !command.startsWith(`${id}:`)) throw new Error(`The command must be "${id}" or begin with "${id}:"`);
		if (handlers.has(command)) throw new Error(`The command "${command}" is already registered`);
		handlers.set(command, handler);
		this.register(() => handlers.delete(command));
	}
	override registerMarkdownCodeBlockProcessor(language: string, handler: CodeBlockHandler, order?: number): Real.MarkdownPostProcessor {
		codeBlockProcessors.set(language, handler);
		this.register(() => codeBlockProcessors.delete(language));
		return super.registerMarkdownCodeBlockProcessor(language, handler, order);
	}
	override addStatusBarItem(): HTMLElement {
		const bar = document.body.querySelector<HTMLElement>(".status-bar") ?? document.body.createDiv("status-bar");
		const el = bar.createDiv(`status-bar-item plugin-${this.manifest.id}`);
		this.statusBarItems__.push(el);
		this.register(() => el.remove());
		return el;
	}
	override addRibbonIcon(icon: string, title: string, callback: (evt: MouseEvent) => unknown): HTMLElement {
		const bar = document.body.querySelector<HTMLElement>(".side-dock-ribbon") ?? document.body.createDiv("side-dock-ribbon");
		const el = bar.createDiv({ cls: "clickable-icon side-dock-ribbon-action", attr: { "aria-label": title } });
		setIcon(el, icon);
		el.addEventListener("click", (event) => void callback(event));
		this.ribbonActions__.push(el);
		this.register(() => el.remove());
		return el;
	}
	/** The app describes the settings once when the tab is added, for the search. */
	override addSettingTab(tab: Parameters<Base["addSettingTab"]>[0]): void {
		super.addSettingTab(tab);
		tab.update();
	}
}

type CodeBlockHandler = Parameters<Base["registerMarkdownCodeBlockProcessor"]>[1];
