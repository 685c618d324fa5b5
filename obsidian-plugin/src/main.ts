import { debounce, Platform, Plugin } from "obsidian";
import { Connection } from "./daemon/connection";
import { en } from "./en";
import { Store } from "./store";
import { CHAT_ICON, CHAT_VIEW, ChatView } from "./ui/chat-view";
import { Chats } from "./ui/chats";
import { registerCli } from "./ui/cli";
import { commands } from "./ui/commands";
import { ConnectionModal } from "./ui/connection-page";
import { HistoryModal } from "./ui/history-modal";
import { LastEditor } from "./ui/last-editor";
import { openChat } from "./ui/open-chat";
import { RELATED_VIEW, RelatedView } from "./ui/related-view";
import type { Services } from "./ui/services";
import { TarsdSettingTab } from "./ui/settings-tab";
import { StatusBar } from "./ui/status-bar";
import { performWrite } from "./vault/notes";
import { AppVault } from "./vault/port";
import { waysTo } from "./ways";

/** Time to finish typing an address before it is tried. */
const TYPING_MS = 800;

/** Wires the parts together and nothing else. */
export default class TarsdPlugin extends Plugin {
	private readonly store = new Store(this.app, this);
	private services: Services | null = null;

	override async onload(): Promise<void> {
		const { app, store } = this;
		await store.load();
		const services = this.makeServices();
		this.services = services;

		this.registerView(CHAT_VIEW, (leaf) => new ChatView(leaf, services));
		this.registerView(RELATED_VIEW, (leaf) => new RelatedView(leaf, services));
		this.registerHoverLinkSource(CHAT_VIEW, { display: en.chat.viewName, defaultMod: true });
		this.registerHoverLinkSource(RELATED_VIEW, { display: en.related.title, defaultMod: true });
		for (const command of commands(services)) this.addCommand(command);
		this.addRibbonIcon(CHAT_ICON, en.commands.open, () => void services.openChat());
		this.addSettingTab(new TarsdSettingTab(app, this, store, services));
		registerCli(this, services);
		if (!Platform.isMobile) this.addStatus(services);
		this.watchSettings(services);

		this.registerDomEvent(window, "online", () => {
			services.connection.check();
		});
		this.registerDomEvent(activeDocument, "visibilitychange", () => {
			services.connection.check();
		});
		app.workspace.onLayoutReady(() => {
			services.connection.start();
		});
	}

	override onUserEnable(): void {
		void this.services?.openChat({ focus: false });
	}

	override async onExternalSettingsChange(): Promise<void> {
		await this.store.load();
	}

	private makeServices(): Services {
		const { app, store } = this;
		const vault = this.addChild(new AppVault(app));
		const editor = this.addChild(new LastEditor(app));
		const connection = new Connection(() => waysTo(app, store.device));
		const chats = new Chats({ connection, perform: (client, order) => performWrite(vault, client, order) });
		this.register(() => {
			chats.close();
			connection.close();
		});
		const services: Services = {
			app,
			connection,
			chats,
			vault,
			t: en,
			settings: () => store.settings,
			openChat: (options) => openChat(app, options, store.settings.openIn),
			insertAtCursor: (text) => editor.insert(text),
			markedText: () => editor.selection(),
			openHistory: () => {
				new HistoryModal(services).open();
			},
			openConnection: () => {
				new ConnectionModal(services).open();
			},
		};
		return services;
	}

	private addStatus(services: Services): void {
		const bar = this.addChild(new StatusBar(this.addStatusBarItem(), services));
		bar.show(this.store.settings.statusBar);
		this.register(this.store.onChange(() => {
			bar.show(this.store.settings.statusBar);
		}));
	}

	private watchSettings({ connection }: Services): void {
		const reconnect = debounce(() => {
			connection.retry();
		}, TYPING_MS, true);
		this.register(() => reconnect.cancel());
		this.register(this.store.onChange((what) => {
			if (what === "device") reconnect();
			for (const { view } of this.app.workspace.getLeavesOfType(RELATED_VIEW)) {
				if (view instanceof RelatedView) void view.look();
			}
		}));
	}
}
