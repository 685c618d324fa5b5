import type { App } from "obsidian";
import { DEVICE_KEY, parseDevice, parseSettings, type DeviceSettings, type Settings } from "./settings";

/** Where the plugin's data file is read and written. */
export interface DataFile {
	loadData(): Promise<unknown>;
	saveData(data: unknown): Promise<void>;
}

/** The settings as they are now, and where they are kept. Listeners hear of every change, from outside too. */
export class Store {
	private current: Settings = parseSettings(null);
	private readonly listeners = new Set<(what: "settings" | "device") => void>();

	constructor(
		private readonly app: App,
		private readonly file: DataFile,
	) {}

	get settings(): Settings {
		return this.current;
	}

	/** Read at every use, for another window may have changed it. */
	get device(): DeviceSettings {
		return parseDevice(this.app.loadLocalStorage(DEVICE_KEY));
	}

	/** Read the data file, at the start and when it was synced. */
	async load(): Promise<void> {
		this.current = parseSettings(await this.file.loadData());
		this.tell("settings");
	}

	async change(change: Partial<Settings>): Promise<void> {
		this.current = parseSettings({ ...this.current, ...change });
		this.tell("settings");
		await this.file.saveData(this.current);
	}

	changeDevice(change: Partial<DeviceSettings>): void {
		this.app.saveLocalStorage(DEVICE_KEY, parseDevice({ ...this.device, ...change }));
		this.tell("device");
	}

	/** Be told of every change; returns how to end that. */
	onChange(listener: (what: "settings" | "device") => void): () => void {
		this.listeners.add(listener);
		return () => {
			this.listeners.delete(listener);
		};
	}

	private tell(what: "settings" | "device"): void {
		for (const listener of [...this.listeners]) listener(what);
	}
}
