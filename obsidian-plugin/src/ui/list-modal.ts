import { Platform, SuggestModal, type Modifier } from "obsidian";
import { sentence } from "./errors";
import type { Services } from "./services";

/** A key with what it does to the chosen line. */
export type ListKey = readonly [modifiers: Modifier[], key: string, purpose: string];

/** A list that the daemon fills, to choose from. What goes wrong is told in the place of its lines. */
export abstract class ListModal<T> extends SuggestModal<T> {
	/** `keys` are shown below; the first is Enter, to which a list listens by itself. What is meant, the event says. */
	constructor(
		readonly services: Services,
		placeholder: string,
		keys: readonly ListKey[],
	) {
		super(services.app);
		this.setPlaceholder(placeholder);
		const mod = Platform.isMacOS ? "⌘ " : "Ctrl ";
		this.setInstructions(keys.map(([[modifier], key, purpose]) => ({
			command: `${modifier === undefined ? "" : modifier === "Mod" ? mod : `${modifier} `}${key.replace("Enter", "↵")}`,
			purpose,
		})));
		for (const [modifiers, key] of keys.slice(1)) {
			this.scope.register(modifiers, key, (event) => {
				if (!event.isComposing) this.selectActiveSuggestion(event);
				return false;
			});
		}
	}

	/** What fits what was typed, which has no space around. */
	protected abstract lookUp(query: string): Promise<T[]> | T[];

	async getSuggestions(typed: string): Promise<T[]> {
		try {
			return await this.lookUp(typed.trim());
		} catch (error) {
			// of an older question nothing is told
			if (typed === this.inputEl.value) this.emptyStateText = sentence(error);
			return [];
		}
	}

	/** Look again, as if the same had been typed again. */
	protected again(): void {
		this.inputEl.dispatchEvent(new Event("input"));
	}
}
