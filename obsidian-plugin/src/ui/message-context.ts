import type { HoverParent } from "obsidian";
import type { Source } from "../protocol/events";
import type { Services } from "./services";

/** What a message's parts know of the pane that they are in. */
export interface MessageContext {
	readonly services: Services;
	readonly hoverParent: HoverParent;
	readonly conversation: () => string;
	/** The conversation's own note, from which its links are seen; "" for none. */
	readonly source: () => string;
	/** Something changed its height. */
	readonly grew: () => void;
	/** Said to screen readers, once. */
	readonly say: (words: string) => void;
	readonly focusBox: () => void;
	/** Have a task made done: the daemon proposes the change in a turn of its own. */
	readonly complete: (task: Source) => void;
	/** Whether an answer is being given, so that nothing else can be asked for with a click. */
	readonly busy: () => boolean;
	/** Text comes back into the box, if that is empty. */
	readonly giveBack: (text: string) => void;
}
