import type { Context, TurnBody } from "../chat/context";
import type { ChatState } from "../chat/state";
import type { Client } from "../daemon/client";
import type { Connection } from "../daemon/connection";
import type { TurnEvent, WriteOrder } from "../protocol/events";

/** The type of the pane, as the app knows it. */
export const CHAT_VIEW = "tarsd-chat";

/** A question as the box hands it over; the rest of the request is added here. */
export type Question = Omit<TurnBody, "conversation" | "request_id" | "writer" | "approvals">;

/** What is written, and what would go along with it. */
export interface Draft {
	readonly text: string;
	readonly context: Context;
}

/** What `Chats` works with. `perform` makes a change that the daemon asks for; see vault/notes.ts. */
export interface ChatMeans {
	readonly connection: Connection;
	readonly perform: (client: Client, order: WriteOrder) => Promise<void>;
	/** Seconds since 1970. */
	readonly now?: () => number;
	/** A new id, for conversations and questions. */
	readonly id?: () => string;
}

/** `conversation` is the one that changed; `event` is there when it is an event of a turn that did it. */
export interface ChatChange {
	readonly conversation: string;
	readonly state: ChatState;
	readonly turn?: string;
	readonly event?: TurnEvent;
}
