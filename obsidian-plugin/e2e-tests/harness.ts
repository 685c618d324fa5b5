import * as obsidian from "obsidian";
import { FileSystemAdapter, Keymap, Platform, type App, type DataWriteOptions, type PaneType } from "obsidian";
import manifest from "../manifest.json";
import { popouts } from "../mocks/obsidian/popout";
import { installGlobals, loadPlugin, makeApp, openNote, runCommand, until } from "../mocks/obsidian/testing";
import type { Harness, HarnessOptions, Opened, PluginModule } from "./bridge";

/** What the app keeps between two starts, by the names that the plugin gave it: they stay as they are for ever. */
const CHAT_VIEW = "tarsd-chat";
const DEVICE_KEY = "tarsd-device";
const TOKEN_NAME = "tarsd-token";

/** The class of the plugin, out of the file that is released. There is no module but the app's, as on a phone. */
function released(): PluginModule["default"] {
	const module = { exports: {} as PluginModule };
	window.runPlugin(module, module.exports, (name) => {
		if (name !== "obsidian") throw new Error(`there is no module "${name}"`);
		return obsidian;
	});
	return module.exports.default;
}

/** The vault in the page's memory; what the plugin writes is on disk as well before anybody hears that it is written. */
class PageAdapter extends FileSystemAdapter {
	override async write(path: string, data: string, options?: DataWriteOptions): Promise<void> {
		await super.write(path, data, options);
		await window.harnessDisk(path, data);
	}
	override async append(path: string, data: string, options?: DataWriteOptions): Promise<void> {
		await super.append(path, data, options);
		await window.harnessDisk(path, await this.read(path));
	}
	override async remove(path: string): Promise<void> {
		await super.remove(path);
		await window.harnessDisk(path, null);
	}
}

function dress({ theme, phone, rtl }: HarnessOptions): void {
	document.body.addClass(`theme-${theme}`);
	document.body.toggleClass("is-mobile", phone);
	document.body.toggleClass("is-phone", phone);
	document.body.toggleClass("mod-rtl", rtl);
	document.documentElement.dir = rtl ? "rtl" : "ltr";
	Object.assign(Platform, {
		isDesktop: !phone,
		// this is a browser: there is no Node, as on a phone, so that the plugin uses fetch
		isDesktopApp: false,
		isMobile: phone,
		isMobileApp: phone,
		isAndroidApp: phone,
		isPhone: phone,
	});
}

/** A pane's own window is one of the browser's, with the styles of the first. */
popouts.open = (closed) => {
	const other = window.open("", "", "popup,width=480,height=700");
	if (!other) throw new Error("the browser opens no window");
	const rules = Array.from(document.styleSheets, (sheet) => Array.from(sheet.cssRules, ({ cssText }) => cssText)).flat();
	other.document.head.appendChild(other.document.createElement("style")).textContent = rules.join("\n");
	other.document.body.className = `${document.body.className} is-popout-window`;
	other.addEventListener("pagehide", closed);
	return {
		body: other.document.body,
		close: () => {
			other.close();
		},
	};
};

function record(app: App): Opened[] {
	const opened: Opened[] = [];
	const open = app.workspace.openLinkText.bind(app.workspace);
	app.workspace.openLinkText = (link: string, source: string, where?: PaneType | boolean, state?: object) => {
		opened.push({ link, where: where ?? false });
		return open(link, source, where, state);
	};
	// the package knows no modifier keys
	Keymap.isModEvent = (event) => (event && (event.ctrlKey || event.metaKey) ? "tab" : false);
	return opened;
}

async function start(options: HarnessOptions): Promise<Harness> {
	installGlobals();
	dress(options);
	const adapter = new (PageAdapter as unknown as new (root: string) => PageAdapter)("/vault");
	const app = makeApp({ adapter });
	const write = adapter as unknown as { writeSync__(path: string, text: string): void };
	for (const [path, text] of Object.entries(options.files)) write.writeSync__(path, text);
	(app.vault as unknown as { reconcile__(): void }).reconcile__();
	const opened = record(app);
	app.secretStorage.setSecret(TOKEN_NAME, options.token);
	app.saveLocalStorage(DEVICE_KEY, { address: options.address, tokenName: TOKEN_NAME });
	const plugin = await loadPlugin(app, released(), manifest, { openIn: "sidebar", ...options.settings });
	const panes = () => app.workspace.getLeavesOfType(CHAT_VIEW);
	runCommand(plugin, "open");
	await until(() => panes().length > 0);
	// as the app does when a pane has another size
	new ResizeObserver(() => {
		for (const leaf of panes()) leaf.view.onResize();
	}).observe(app.workspace.containerEl);
	return {
		opened,
		command: (id) => runCommand(plugin, id),
		openNote: async (path) => {
			await openNote(app, path);
		},
		// as the app brings back a pane that was there before
		showConversation: async (conversation) => {
			await panes()[0]?.setViewState({ type: CHAT_VIEW, active: true, state: { conversation } });
		},
	};
}

window.harness = await start(window.harnessOptions);
document.body.setAttribute("data-ready", "yes");
