import {
	FuzzySuggestModal,
	Platform,
	PluginSettingTab,
	SecretComponent,
	type App,
	type Plugin,
	type SettingDefinitionItem,
	type SettingGroupItem,
	type TFolder,
} from "obsidian";
import { isAddress, MAX_RELATED, parseSettings, type DeviceSettings, type Settings } from "../settings";
import type { Store } from "../store";
import { drawCommand, drawConnection, stateText } from "./connection-page";
import type { Services } from "./services";

/** Where a control's value is kept: with the vault, or on this device. */
type Key = keyof Settings | keyof DeviceSettings;

/** The settings, described rather than drawn: the app draws them, and finds them in its search. */
export class TarsdSettingTab extends PluginSettingTab {
	override icon = "message-circle";

	constructor(
		app: App,
		plugin: Plugin,
		private readonly store: Store,
		private readonly services: Services,
	) {
		super(app, plugin);
		plugin.register(
			services.connection.onChange(() => {
				this.refreshDomState();
			}),
		);
	}

	override getSettingDefinitions(): SettingDefinitionItem<Key>[] {
		const { connection, t } = this.services;
		const words = t.settings;
		return [
			{
				type: "page",
				name: words.connection,
				desc: words.connectionText,
				displayValue: () => stateText(connection.state, t.state),
				status: () => (["offline", "attention"].includes(connection.state.name) ? "warning" : null),
				items: this.connectionItems(),
			},
			{ type: "group", heading: words.chat, items: this.chatItems() },
			{ type: "group", heading: words.related, items: this.relatedItems() },
			{
				type: "list",
				heading: words.exclude,
				emptyState: words.excludeNone,
				items: this.store.settings.relatedExclude.map((folder) => ({ name: folder, desc: words.excludeText })),
				addItem: {
					name: words.excludeAdd,
					action: () => {
						new FolderModal(this.app, words.folder, (folder) => void this.exclude((all) => [...all, folder])).open();
					},
				},
				onDelete: (index) => void this.exclude((all) => all.filter((_, at) => at !== index)),
			},
		];
	}

	override getControlValue(key: string): unknown {
		if (isDeviceKey(key)) return this.store.device[key];
		return Object.entries(this.store.settings).find(([name]) => name === key)?.[1];
	}

	override async setControlValue(key: string, value: unknown): Promise<void> {
		if (isDeviceKey(key)) this.store.changeDevice({ [key]: value });
		else await this.store.change(parseSettings({ ...this.store.settings, [key]: value }));
	}

	private connectionItems(): SettingDefinitionItem<Key>[] {
		const words = this.services.t.settings;
		return [
			{
				name: words.connection,
				searchable: false,
				render: (setting) => {
					setting.settingEl.empty();
					return drawConnection(setting.settingEl.createDiv(), this.services);
				},
			},
			{
				name: words.address,
				desc: `${words.addressText} ${words.addressPlain} ${words.connectionNote}`,
				control: {
					type: "text",
					key: "address",
					placeholder: "127.0.0.1:8300",
					validate: (typed) => (isAddress(typed) ? undefined : words.addressWrong),
				},
			},
			{
				name: words.token,
				desc: words.tokenText,
				render: (setting) => {
					new SecretComponent(this.app, setting.controlEl).setValue(this.store.device.tokenName).onChange((tokenName) => {
						this.store.changeDevice({ tokenName });
					});
					drawCommand(setting.descEl, "tarsd token", this.services.t.state);
				},
			},
			{
				name: words.socket,
				desc: `${words.socketText} ${words.connectionNote}`,
				visible: () => Platform.isDesktopApp && !Platform.isWin,
				control: {
					type: "text",
					key: "socket",
					validate: (typed) => (typed.trim() === "" || typed.trim().startsWith("/") ? undefined : words.socketWrong),
				},
			},
		];
	}

	private chatItems(): SettingGroupItem<Key>[] {
		const words = this.services.t.settings;
		return [
			{
				name: words.sendKey,
				desc: words.sendKeyText,
				control: {
					type: "dropdown",
					key: "sendKey",
					options: { enter: words.enter, "mod-enter": words.modEnter, "shift-enter": words.shiftEnter },
				},
			},
			{ name: words.openIn, control: { type: "dropdown", key: "openIn", options: { sidebar: words.sidebar, tab: words.tab } } },
			{ name: words.attachCurrentNote, desc: words.attachCurrentNoteText, control: { type: "toggle", key: "attachCurrentNote" } },
			{ name: words.attachSelection, desc: words.attachSelectionText, control: { type: "toggle", key: "attachSelection" } },
			{ name: words.showSources, control: { type: "toggle", key: "showSources" } },
			{ name: words.noteFolder, desc: words.noteFolderText, control: { type: "folder", key: "noteFolder", includeRoot: true } },
			{ name: words.statusBar, visible: () => !Platform.isMobile, control: { type: "toggle", key: "statusBar" } },
		];
	}

	private relatedItems(): SettingGroupItem<Key>[] {
		const words = this.services.t.settings;
		return [
			{ name: words.relatedCount, control: { type: "slider", key: "relatedCount", min: 1, max: MAX_RELATED, step: 1 } },
			{ name: words.relatedHideLinked, control: { type: "toggle", key: "relatedHideLinked" } },
			{ name: words.relatedConversations, control: { type: "toggle", key: "relatedConversations" } },
		];
	}

	private async exclude(change: (folders: readonly string[]) => string[]): Promise<void> {
		await this.store.change({ relatedExclude: change(this.store.settings.relatedExclude) });
		this.update();
	}
}

function isDeviceKey(key: string): key is keyof DeviceSettings {
	return key === "socket" || key === "address" || key === "tokenName";
}

/** Choose a folder of the vault. */
class FolderModal extends FuzzySuggestModal<TFolder> {
	constructor(
		app: App,
		placeholder: string,
		private readonly chosen: (path: string) => void,
	) {
		super(app);
		this.setPlaceholder(placeholder);
	}

	getItems(): TFolder[] {
		return this.app.vault.getAllFolders(false);
	}

	getItemText(folder: TFolder): string {
		return folder.path;
	}

	onChooseItem(folder: TFolder): void {
		this.chosen(folder.path);
	}
}
