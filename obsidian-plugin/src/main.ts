import { debounce, Platform, Plugin } from "obsidian";
import { keepConnected } from "./daemon/connection";
import { en } from "./en";
import { openStore } from "./store";
import { CHAT_ICON, CHAT_VIEW, ChatView } from "./ui/chat-view";
import { makeChats } from "./ui/chats";
import { registerCli } from "./ui/cli";
import { commands } from "./ui/commands";
import { ConnectionModal } from "./ui/connection-page";
import { HistoryModal } from "./ui/history-modal";
import { lastEditor } from "./ui/last-editor";
import { openChat } from "./ui/open-chat";
import { RELATED_VIEW, RelatedView } from "./ui/related-view";
import type { Services } from "./ui/services";
import { TarsdSettingTab } from "./ui/settings-tab";
import { statusBar } from "./ui/status-bar";
import { performWrite } from "./vault/notes";
import { appVault } from "./vault/port";
import { waysTo } from "./ways";

/** Time to finish typing an address before it is tried. */
const TYPING_MS = 800;

/** Wires the parts together and nothing else. */
export default class TarsdPlugin extends Plugin {
	private readonly store = openStore(this.app, this);
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
		this.followSettings(services);

		const { connection } = services;
		const check = (): void => {
			connection.check();
		};
		this.registerDomEvent(window, "online", check);
		this.registerDomEvent(activeDocument, "visibilitychange", check);
		app.workspace.onLayoutReady(() => {
			connection.start();
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
		const vault = appVault(app, this);
		const editor = lastEditor(app, this);
		const connection = keepConnected(() => waysTo(app, store.device));
		const chats = makeChats({ connection, perform: (client, order) => performWrite(vault, client, order) });
		this.register(() => {
			chats.close();
			connection.close();
		});
		const services: Services = {
			app,
			connection,
			chats,
			vault,
			settings: () => store.settings,
			openChat: (options) => openChat(app, options, store.settings.openIn),
			insertAtCursor: editor.insert,
			markedText: editor.selection,
			openHistory: () => {
				new HistoryModal(services).open();
			},
			openConnection: () => {
				new ConnectionModal(services).open();
			},
		};
		return services;
	}

	/** What the settings say of the connection, the status bar and the related notes, from now on. */
	private followSettings(services: Services): void {
		const { app, store } = this;
		const reconnect = debounce(() => {
			services.connection.retry();
		}, TYPING_MS, true);
		const bar = Platform.isMobile ? null : this.addStatusBarItem();
		const follow = (what?: string): void => {
			if (what === "device") reconnect();
			bar?.toggle(store.settings.statusBar);
			for (const { view } of app.workspace.getLeavesOfType(RELATED_VIEW)) {
				if (view instanceof RelatedView) void view.look();
			}
		};
		if (bar) statusBar(bar, services, this);
		follow();
		this.register(store.onChange(follow));
		this.register(() => reconnect.cancel());
	}
}
