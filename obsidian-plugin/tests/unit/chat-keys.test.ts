import { describe, expect, it } from "vitest";
import { keyAction, SEND_KEYS, type Keyboard, type KeyAction, type Press, type SendKey } from "../../src/chat/keys";

const KEYS: Record<string, Partial<Press>> = {
	Enter: {},
	"Shift-Enter": { shiftKey: true },
	"Ctrl-Enter": { ctrlKey: true },
	"Meta-Enter": { metaKey: true },
	"Alt-Enter": { altKey: true },
	"Ctrl-Shift-Enter": { ctrlKey: true, shiftKey: true },
};

function press(more: Partial<Press> = {}): Press {
	const none = { shiftKey: false, ctrlKey: false, metaKey: false, altKey: false, repeat: false, isComposing: false };
	return { key: "Enter", keyCode: 13, ...none, ...more };
}

function keyboard(more: Partial<Keyboard> = {}): Keyboard {
	return { sendKey: "enter", phone: false, mac: false, suggesting: false, ...more };
}

describe("keyAction", () => {
	const table: [SendKey, boolean, boolean, Record<string, KeyAction>][] = [
		["enter", false, false, { Enter: "send", "Shift-Enter": "leave", "Ctrl-Enter": "send", "Meta-Enter": "newline", "Alt-Enter": "newline", "Ctrl-Shift-Enter": "send" }],
		["mod-enter", false, false, { Enter: "leave", "Shift-Enter": "leave", "Ctrl-Enter": "send", "Meta-Enter": "newline", "Alt-Enter": "newline" }],
		["shift-enter", false, false, { Enter: "leave", "Shift-Enter": "send", "Ctrl-Enter": "newline", "Alt-Enter": "newline" }],
		["enter", false, true, { Enter: "send", "Ctrl-Enter": "newline", "Meta-Enter": "send" }],
		["mod-enter", false, true, { Enter: "leave", "Ctrl-Enter": "newline", "Meta-Enter": "send" }],
		["enter", true, false, { Enter: "leave", "Shift-Enter": "leave", "Ctrl-Enter": "send" }],
		["mod-enter", true, false, { Enter: "leave", "Shift-Enter": "leave", "Ctrl-Enter": "send" }],
		["shift-enter", true, false, { Enter: "leave", "Shift-Enter": "leave" }],
	];
	for (const [sendKey, phone, mac, expected] of table) {
		it(`follows the setting ${sendKey}${phone ? " on a phone" : ""}${mac ? " on a Mac" : ""}`, () => {
			for (const [name, action] of Object.entries(expected)) {
				expect([name, keyAction(press(KEYS[name]), keyboard({ sendKey, phone, mac }))]).toEqual([name, action]);
			}
		});
	}

	it("never sends, chooses or closes with a key of an input method", () => {
		for (const sendKey of SEND_KEYS) {
			for (const key of ["Enter", "Tab", "Escape", "ArrowDown", "Process"]) {
				for (const held of Object.values(KEYS)) {
					for (const suggesting of [true, false]) {
						const where = keyboard({ sendKey, suggesting });
						expect(keyAction(press({ ...held, key, isComposing: true }), where)).toBe("leave");
						expect(keyAction(press({ ...held, key, keyCode: 229 }), where)).toBe("leave");
					}
				}
			}
		}
	});

	it("sends once for a key that is held down", () => {
		expect(keyAction(press({ repeat: true }), keyboard())).toBe("swallow");
		expect(keyAction(press({ repeat: true }), keyboard({ suggesting: true }))).toBe("swallow");
		expect(keyAction(press({ repeat: true }), keyboard({ sendKey: "mod-enter" }))).toBe("leave");
	});

	it("moves in the list of suggestions while there is one", () => {
		const open = keyboard({ suggesting: true });
		const actions = ["ArrowDown", "ArrowUp", "Enter", "Tab", "Escape", "a"].map((key) => keyAction(press({ key }), open));
		expect(actions).toEqual(["next", "previous", "choose", "choose", "dismiss", "leave"]);
		expect(keyAction(press({ shiftKey: true }), open)).toBe("leave");
		expect(keyAction(press({ ctrlKey: true }), open)).toBe("send");
		expect(keyAction(press({ key: "ArrowDown" }), keyboard())).toBe("leave");
		expect(keyAction(press(), keyboard({ suggesting: true, phone: true }))).toBe("choose");
	});

	it("leaves every other key to the browser", () => {
		for (const key of ["a", "Backspace", "Tab", "Escape", "Home"]) expect(keyAction(press({ key }), keyboard())).toBe("leave");
	});
});
