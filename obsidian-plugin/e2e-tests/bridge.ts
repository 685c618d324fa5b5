import type { App, Plugin, PluginManifest } from "obsidian";
import type { Settings } from "../src/settings";

/** What the page is told before it starts. */
export interface HarnessOptions {
	/** Where the daemon listens, and its token. */
	address: string;
	token: string;
	/** The vault's notes by path, as they are on disk. */
	files: Readonly<Record<string, string>>;
	theme: "light" | "dark";
	phone: boolean;
	rtl: boolean;
	settings: Partial<Settings>;
}

/** A link that was followed. */
export interface Opened {
	link: string;
	where: string | boolean;
}

/** What the page offers to a test. */
export interface Harness {
	readonly opened: Opened[];
	command(id: string): boolean;
	openNote(path: string): Promise<void>;
	showConversation(id: string): Promise<void>;
}

/** What the plugin's file exports. */
export interface PluginModule {
	default: new (app: App, manifest: PluginManifest) => Plugin;
}

declare global {
	interface Window {
		/** The plugin's file, with what a CommonJS module sees. */
		runPlugin(module: { exports: PluginModule }, exports: PluginModule, require: (name: string) => unknown): void;
		harness: Harness;
		harnessOptions: HarnessOptions;
		/** Writes a file of the vault on disk, where the daemon sees it; null removes it. */
		harnessDisk(path: string, text: string | null): Promise<void>;
		longTasks: number[];
	}
}
