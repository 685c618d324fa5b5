/** What a key does in the box where the person writes. */

/** The setting: which key sends. */
export type SendKey = "enter" | "mod-enter" | "shift-enter";

export const SEND_KEYS: readonly SendKey[] = ["enter", "mod-enter", "shift-enter"];

/** The part of a `KeyboardEvent` that decides. */
export interface Press {
	readonly key: string;
	readonly keyCode: number;
	readonly isComposing: boolean;
	readonly shiftKey: boolean;
	readonly ctrlKey: boolean;
	readonly metaKey: boolean;
	readonly altKey: boolean;
	readonly repeat: boolean;
}

/** Where the key was pressed; `suggesting` while a list of mentions is open with at least one entry. */
export interface Keyboard {
	readonly sendKey: SendKey;
	readonly phone: boolean;
	readonly mac: boolean;
	readonly suggesting: boolean;
}

/**
 * `leave` lets the browser do what it does; everything else is done by us, and the browser's own is prevented.
 * `newline` is for keys on which browsers insert none; `swallow` does nothing at all.
 */
export type KeyAction = "leave" | "swallow" | "send" | "newline" | "next" | "previous" | "choose" | "dismiss";

/** The keyCode of every key that an input method takes for itself, also where `isComposing` is false already. */
const TAKEN_BY_INPUT_METHOD = 229;

/** What to do with a key. Nothing is ever sent or chosen by a key that belongs to an input method. */
export function keyAction(press: Press, keyboard: Keyboard): KeyAction {
	if (press.isComposing || press.keyCode === TAKEN_BY_INPUT_METHOD) return "leave";
	const plain = !press.shiftKey && !press.ctrlKey && !press.metaKey && !press.altKey;
	if (keyboard.suggesting && plain) {
		if (press.key === "ArrowDown") return "next";
		if (press.key === "ArrowUp") return "previous";
		if (press.key === "Escape") return "dismiss";
		if (press.key === "Enter" || press.key === "Tab") return press.repeat ? "swallow" : "choose";
	}
	if (press.key !== "Enter") return "leave";
	const mod = keyboard.mac ? press.metaKey : press.ctrlKey;
	const shift = press.shiftKey && !mod && !press.altKey;
	// Mod-Enter sends under every setting but Shift-Enter's own, with the keyboard of a phone too
	if (mod && !press.altKey && keyboard.sendKey !== "shift-enter") return once(press);
	if (shift && keyboard.sendKey === "shift-enter" && !keyboard.phone) return once(press);
	if (plain && keyboard.sendKey === "enter" && !keyboard.phone) return once(press);
	return plain || shift ? "leave" : "newline";
}

/** A key that is held down sends once: what it repeats would fall into the empty box. */
function once(press: Press): KeyAction {
	return press.repeat ? "swallow" : "send";
}
