import { SEND_KEYS, type SendKey } from "./chat/keys";
import { choice, flag, number, object, text, texts } from "./protocol/values";
import { parseAddress } from "./transport/address";

/** What a person chose. It lies in the plugin's data file, so it comes along when the vault is synced. */
export interface Settings {
	sendKey: SendKey;
	/** Whether the list of sources under a reply is open from the start. */
	showSources: boolean;
	/** Whether a new question has the note that is open as a chip, until it is taken away. */
	attachCurrentNote: boolean;
	/** Whether text that is marked in the editor becomes a chip, too. */
	attachSelection: boolean;
	/** Where a reply goes that is saved as a note; "" is the vault's root. */
	noteFolder: string;
	/** Where the pane opens for the first time. */
	openIn: "sidebar" | "tab";
	statusBar: boolean;
	relatedCount: number;
	/** Leave notes out of the related ones that are linked with the note already. */
	relatedHideLinked: boolean;
	/** List the notes of conversations as related, too. */
	relatedConversations: boolean;
	/** Folders whose notes are never listed as related. */
	relatedExclude: string[];
}

/**
 * How this device reaches the daemon. It is kept on the device and never in the vault: whoever can write a synced file
 * could otherwise send the notes to a machine of theirs.
 */
export interface DeviceSettings {
	/** A socket's path in place of the one that follows from the vault; "" for that. */
	socket: string;
	/** Host and port, or a URL; "" when there is only the socket. */
	address: string;
	/** Under which name the app keeps the token; "" for none. */
	tokenName: string;
}

export const DEFAULTS: Readonly<Settings> = {
	sendKey: "enter",
	showSources: false,
	attachCurrentNote: true,
	attachSelection: true,
	noteFolder: "",
	openIn: "sidebar",
	statusBar: true,
	relatedCount: 12,
	relatedHideLinked: false,
	relatedConversations: false,
	relatedExclude: [],
};

export const DEVICE_DEFAULTS: Readonly<DeviceSettings> = { socket: "", address: "", tokenName: "" };

/** Under which name the device's own settings are in the app's local storage. */
export const DEVICE_KEY = "tarsd-device";

export const MAX_RELATED = 50;

const PLACES = ["sidebar", "tab"] as const;

/** Settings from whatever the data file holds; what is missing or makes no sense is as by default. */
export function parseSettings(value: unknown): Settings {
	const given = object(value);
	const yes = (name: keyof Settings): boolean => {
		const found = given[name];
		return typeof found === "boolean" ? found : flag(DEFAULTS[name]);
	};
	const count = Math.round(number(given["relatedCount"], DEFAULTS.relatedCount));
	return {
		sendKey: choice(given["sendKey"], SEND_KEYS) ?? DEFAULTS.sendKey,
		showSources: yes("showSources"),
		attachCurrentNote: yes("attachCurrentNote"),
		attachSelection: yes("attachSelection"),
		noteFolder: folder(text(given["noteFolder"])),
		openIn: choice(given["openIn"], PLACES) ?? DEFAULTS.openIn,
		statusBar: yes("statusBar"),
		relatedCount: Math.min(Math.max(count, 1), MAX_RELATED),
		relatedHideLinked: yes("relatedHideLinked"),
		relatedConversations: yes("relatedConversations"),
		relatedExclude: [...new Set(texts(given["relatedExclude"]).map(folder).filter(Boolean))],
	};
}

/** The device's settings from whatever its storage holds. */
export function parseDevice(value: unknown): DeviceSettings {
	const given = object(value);
	return {
		socket: text(given["socket"]).trim(),
		address: text(given["address"]).trim(),
		tokenName: text(given["tokenName"]).trim(),
	};
}

/** Whether an address, or nothing, was typed. */
export function isAddress(typed: string): boolean {
	return typed.trim() === "" || parseAddress(typed) !== null;
}

/** A folder as paths have it, without slashes around. */
function folder(typed: string): string {
	return typed.trim().replace(/^\/+|\/+$/g, "");
}
