import type { App } from "obsidian";
import type { Selection } from "../chat/context";
import type { Connection } from "../daemon/connection";
import type { Settings } from "../settings";
import type { VaultPort } from "../vault/port";
import type { Chats } from "./chats";

/** Where a conversation is opened. "same" is the pane that is there already, or the right sidebar. */
export type ChatPlace = "same" | "sidebar" | "tab" | "window";

/** What a pane is opened with. Without a conversation, the pane goes on with its own; "new" begins one. */
export interface OpenChat {
	readonly conversation?: string;
	readonly place?: ChatPlace;
	/** Put into the box, behind what is written there. */
	readonly text?: string;
	/** Attached to the next question. */
	readonly note?: string;
	readonly selection?: string;
	/** Whether the box gets the focus; it does unless this is false. */
	readonly focus?: boolean;
}

/** Everything a view works with; there is one of it, made by main.ts. */
export interface Services {
	readonly app: App;
	readonly connection: Connection;
	readonly chats: Chats;
	readonly vault: VaultPort;
	settings(): Settings;
	/** Shows a chat pane; `openChat` in open-chat.ts does it. */
	openChat(options?: OpenChat): Promise<void>;
	/** Puts text at the cursor of the note that was edited last; false when there is none. `LastEditor` has it. */
	insertAtCursor(text: string): boolean;
	/** The text that is marked there, if any. */
	markedText(): Selection | null;
	/** The list of conversations, to choose one from. */
	openHistory(): void;
	/** The page of the settings that shows and mends the connection. */
	openConnection(): void;
}
