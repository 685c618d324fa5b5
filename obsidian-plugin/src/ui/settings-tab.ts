import {
	FuzzySuggestModal,
	Platform,
	PluginSettingTab,
	SecretComponent,
	type App,
	type Plugin,
	type SettingDefinition,
	type SettingDefinitionItem,
	type SettingGroupItem,
	type TFolder,
} from "obsidian";
import { en } from "../en";
import { isAddress, MAX_RELATED, type DeviceSettings, type Settings } from "../settings";
import type { Store } from "../store";
import { drawCommand, drawConnection } from "./connection-page";
import type { Services } from "./services";

const words = en.settings;

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
		const { connection } = this.services;
		return [
			{
				type: "page",
				name: words.connection,
				desc: words.connectionText,
				displayValue: () => en.state[connection.state.name],
				status: () => ("failure" in connection.state ? "warning" : null),
				items: this.connectionItems(),
			},
			{ type: "group", heading: en.chat.viewName, items: chatItems() },
			{
				type: "group",
				heading: en.related.title,
				items: [
					{ name: words.relatedCount, control: { type: "slider", key: "relatedCount", min: 1, max: MAX_RELATED, step: 1 } },
					toggle("relatedHideLinked", words.relatedHideLinked),
					toggle("relatedConversations", words.relatedConversations),
				],
			},
			{
				type: "list",
				heading: words.exclude,
				emptyState: words.excludeNone,
				items: this.store.settings.relatedExclude.map((name) => ({ name })),
				addItem: {
					name: words.excludeAdd,
					action: () => {
						new FolderModal(this.app, (folder) => void this.exclude((all) => [...all, folder])).open();
					},
				},
				onDelete: (index) => void this.exclude((all) => all.filter((_, at) => at !== index)),
			},
		];
	}

	override getControlValue(key: string): unknown {
		return { ...this.store.settings, ...this.store.device }[key as Key];
	}

	override async setControlValue(key: string, value: unknown): Promise<void> {
		if (key in this.store.device) this.store.changeDevice({ [key]: value });
		else await this.store.change({ [key]: value });
	}

	private connectionItems(): SettingGroupItem<Key>[] {
		return [
			{
				name: words.connection,
				searchable: false,
				render: ({ settingEl }) => {
					settingEl.empty();
					return drawConnection(settingEl.createDiv(), this.services);
				},
			},
			{
				name: words.address,
				desc: words.addressText,
				control: {
					type: "text",
					key: "address",
					placeholder: "127.0.0.1:8427",
					validate: (typed) => (isAddress(typed) ? undefined : words.addressWrong),
				},
			},
			{
				name: words.token,
				desc: words.tokenText,
				render: ({ controlEl, descEl }) => {
					new SecretComponent(this.app, controlEl).setValue(this.store.device.tokenName).onChange((tokenName) => {
						this.store.changeDevice({ tokenName });
					});
					drawCommand(descEl, "tarsd token");
				},
			},
			{
				name: words.socket,
				desc: words.socketText,
				visible: () => Platform.isDesktopApp && !Platform.isWin,
				control: { type: "text", key: "socket", validate: (typed) => (/^\s*(\/|$)/.test(typed) ? undefined : words.socketWrong) },
			},
		];
	}

	private async exclude(change: (folders: readonly string[]) => string[]): Promise<void> {
		await this.store.change({ relatedExclude: change(this.store.settings.relatedExclude) });
		this.update();
	}
}

function chatItems(): SettingGroupItem<Key>[] {
	return [
		{
			name: words.sendKey,
			desc: words.sendKeyText,
			control: { type: "dropdown", key: "sendKey", options: { enter: words.enter, "mod-enter": words.modEnter, "shift-enter": words.shiftEnter } },
		},
		{ name: words.openIn, control: { type: "dropdown", key: "openIn", options: { sidebar: words.sidebar, tab: words.tab } } },
		toggle("attachCurrentNote", words.attachCurrentNote),
		toggle("attachSelection", words.attachSelection, words.attachSelectionText),
		toggle("showSources", words.showSources),
		{ name: words.noteFolder, desc: words.noteFolderText, control: { type: "folder", key: "noteFolder" } },
		{ ...toggle("statusBar", words.statusBar), visible: () => !Platform.isMobile },
	];
}

function toggle(key: Key, name: string, desc = ""): SettingDefinition<Key> {
	return { name, desc, control: { type: "toggle", key } };
}

/** Choose a folder of the vault. */
class FolderModal extends FuzzySuggestModal<TFolder> {
	constructor(
		app: App,
		private readonly chosen: (path: string) => void,
	) {
		super(app);
		this.setPlaceholder(words.folder);
	}

	getItems(): TFolder[] {
		return this.app.vault.getAllFolders(false);
	}

	getItemText({ path }: TFolder): string {
		return path;
	}

	onChooseItem({ path }: TFolder): void {
		this.chosen(path);
	}
}
