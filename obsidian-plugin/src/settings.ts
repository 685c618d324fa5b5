import { SEND_KEYS, type SendKey } from "./chat/keys";
import { flag, number, oneOf, shape, text, texts, type Reader } from "./protocol/values";
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

/** Under which name the device's own settings are in the app's local storage. */
export const DEVICE_KEY = "tarsd-device";

export const MAX_RELATED = 50;

const yesOr =
	(fallback: boolean): Reader<boolean> =>
	(value) =>
		typeof value === "boolean" ? value : fallback;

/** Settings from whatever the data file holds; what is missing or makes no sense is as by default. */
export const parseSettings: Reader<Settings> = shape({
	sendKey: oneOf(SEND_KEYS, "enter"),
	showSources: flag,
	attachCurrentNote: yesOr(true),
	attachSelection: yesOr(true),
	noteFolder: folder,
	openIn: oneOf<Settings["openIn"]>(["sidebar", "tab"], "sidebar"),
	statusBar: yesOr(true),
	relatedCount: (value) => Math.min(Math.max(Math.round(number(value, 12)), 1), MAX_RELATED),
	relatedHideLinked: flag,
	relatedConversations: flag,
	relatedExclude: (value) => [...new Set(texts(value).map(folder).filter(Boolean))],
});

export const DEFAULTS: Readonly<Settings> = /* @__PURE__ */ parseSettings(null);

const trimmed = (value: unknown): string => text(value).trim();

/** The device's settings from whatever its storage holds. */
export const parseDevice: Reader<DeviceSettings> = shape({ socket: trimmed, address: trimmed, tokenName: trimmed });

/** Whether an address, or nothing, was typed. */
export function isAddress(typed: string): boolean {
	return typed.trim() === "" || parseAddress(typed) !== null;
}

/** A folder as paths have it, without slashes around. */
function folder(typed: unknown): string {
	return text(typed).trim().replace(/^\/+|\/+$/g, "");
}
