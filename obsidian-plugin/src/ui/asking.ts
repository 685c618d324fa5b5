import { Notice, Platform, type Modifier, type SuggestModal } from "obsidian";
import { NotConnected, sentence } from "./errors";
import type { Services } from "./services";

/** The client, or what is wrong with the connection as an error to show. */
export function clientOf({ connection }: Services): NonNullable<Services["connection"]["client"]> {
	if (!connection.client) throw new NotConnected(connection);
	return connection.client;
}

/** Do something that was asked for; what goes wrong is told in the corner. */
export async function told(act: () => Promise<void>): Promise<void> {
	try {
		await act();
	} catch (error) {
		new Notice(sentence(error));
	}
}

/** A key with what it does to the chosen line of a list. */
export type ListKey = readonly [modifiers: Modifier[], key: string, purpose: string];

/** Show under a list what keys do, and let them choose, too; the first is Enter, to which a list listens by itself. */
export function chooseWith<T>(list: SuggestModal<T>, keys: readonly ListKey[]): void {
	const mod = Platform.isMacOS ? "⌘" : "Ctrl";
	list.setInstructions(keys.map(([modifiers, key, purpose]) => ({
		command: [...modifiers.map((one) => (one === "Mod" ? mod : one)), key.replace("Enter", "↵")].join(" "),
		purpose,
	})));
	for (const [modifiers, key] of keys.slice(1)) {
		list.scope.register(modifiers, key, (event) => {
			if (!event.isComposing) list.selectActiveSuggestion(event);
			return false;
		});
	}
}
