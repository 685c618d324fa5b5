import type * as Real from "obsidian";
import { Platform } from "obsidian-test-mocks/obsidian";

interface Handler extends Real.KeymapEventHandler {
	run: Real.KeymapEventListener;
}

/** Key bindings that hold while something is open. The package's version forgets what to run. */
export class Scope implements Real.Scope {
	private readonly handlers: Handler[] = [];

	constructor(private readonly parent?: Real.Scope) {}

	register(modifiers: Real.Modifier[] | null, key: string | null, run: Real.KeymapEventListener): Real.KeymapEventHandler {
		const handler: Handler = { scope: this, modifiers: modifiers === null ? null : wanted(modifiers), key, run };
		this.handlers.push(handler);
		return handler;
	}
	unregister(handler: Real.KeymapEventHandler): void {
		const index = this.handlers.findIndex((one) => one === handler);
		if (index >= 0) this.handlers.splice(index, 1);
	}

	/** Gives a key to the newest binding that fits; a binding that returns false has used it up. */
	handleKey(event: KeyboardEvent): void {
		const pressed = held(event);
		const context: Real.KeymapContext = { modifiers: pressed, key: event.key, vkey: event.key };
		for (const handler of [...this.handlers].reverse()) {
			const fits = handler.key === null || handler.key.toLowerCase() === event.key.toLowerCase();
			if (!fits || (handler.modifiers !== null && handler.modifiers !== pressed)) continue;
			if (handler.run(event, context) === false) event.preventDefault();
			return;
		}
		if (this.parent instanceof Scope) this.parent.handleKey(event);
	}
}

const ORDER: string[] = ["Alt", "Ctrl", "Meta", "Shift"];

function wanted(modifiers: Real.Modifier[]): string {
	const names: string[] = modifiers.map((name) => (name === "Mod" ? (Platform.isMacOS ? "Meta" : "Ctrl") : name));
	return ORDER.filter((name) => names.includes(name)).join(",");
}

function held(event: KeyboardEvent): string {
	const on: Record<string, boolean> = { Alt: event.altKey, Ctrl: event.ctrlKey, Meta: event.metaKey, Shift: event.shiftKey };
	return ORDER.filter((name) => on[name]).join(",");
}
