import type { App } from "obsidian";
import { object, type Json } from "./protocol/values";
import { listeners, type Listeners } from "./listeners";
import { DEVICE_KEY, parseDevice, parseSettings, type DeviceSettings, type Settings } from "./settings";

/** Where the plugin's data file is read and written. */
export interface DataFile {
	loadData(): Promise<unknown>;
	saveData(data: unknown): Promise<void>;
}

/** The settings as they are now, and where they are kept. */
export interface Store {
	readonly settings: Settings;
	/** Read at every use, for another window may have changed it. */
	readonly device: DeviceSettings;
	/** Read the data file, at the start and when it was synced. */
	load(): Promise<void>;
	change(change: Partial<Settings>): Promise<void>;
	changeDevice(change: Partial<DeviceSettings>): void;
	/** Be told of every change, from outside too; returns how to end that. */
	onChange: Listeners<"settings" | "device">["add"];
}

/** The settings of this vault and this device; as by default until they are loaded. */
export function openStore(app: App, file: DataFile): Store {
	const { add, tell } = listeners<"settings" | "device">();
	let settings = parseSettings(null);
	// what another version has saved besides
	let others: Json = {};
	const set = (given: unknown): void => {
		settings = parseSettings(given);
		tell("settings");
	};
	return {
		get settings() {
			return settings;
		},
		get device() {
			return parseDevice(app.loadLocalStorage(DEVICE_KEY));
		},
		async load() {
			others = object(await file.loadData());
			set(others);
		},
		async change(change) {
			set({ ...settings, ...change });
			await file.saveData({ ...others, ...settings });
		},
		changeDevice(change) {
			app.saveLocalStorage(DEVICE_KEY, parseDevice({ ...this.device, ...change }));
			tell("device");
		},
		onChange: add,
	};
}
