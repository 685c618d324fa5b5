import type { Context, TurnBody } from "../chat/context";
import type { ChatState, Message } from "../chat/state";
import type { Client } from "../daemon/client";
import type { Connection } from "../daemon/connection";
import type { Listeners } from "../listeners";
import type { Fault, TurnEvent, WriteOrder } from "../protocol/events";

/** The type of the pane, as the app knows it. */
export const CHAT_VIEW = "tarsd-chat";

/** A question as the box hands it over; the rest of the request is added here. */
export type Question = Omit<TurnBody, "conversation" | "request_id" | "writer" | "approvals">;

/** What is written, and what would go along with it. */
export interface Draft {
	readonly text: string;
	readonly context: Context;
}

/**
 * The conversations that are open, whether or not a pane shows them: it follows their turns, makes the changes that
 * they ask for, and tells the panes. Lives as long as the plugin.
 */
export interface Chats {
	/** End everything; turns go on in the daemon. */
	close(): void;
	/** Be told of every change of every conversation; returns how to end that. */
	onChange: Listeners<ChatChange>["add"];

	// ------------------------------------------------------------------------------------------ conversations

	/** The id of a conversation that begins; the daemon hears of it with its first question. */
	create(): string;
	/** As it is now; an unknown one is empty, and is loaded as soon as the daemon is there. */
	state(conversation: string): ChatState;
	/** Whether its messages are still to come from the daemon. */
	pending(conversation: string): boolean;
	/** Why it could not be loaded, or null. */
	problem(conversation: string): Fault | null;
	/** Load it unless it is there; resolves when it is, or when that failed (see `problem`). */
	load(conversation: string): Promise<void>;
	/** It has another title now: the daemon was told already. */
	renamed(conversation: string, title: string): void;
	/** It was removed; a pane that shows it shows an empty one. */
	forget(conversation: string): void;
	draft(conversation: string): Draft;
	/** Keeps what is written; nobody is told, for the box that it comes from shows it. */
	keepDraft(conversation: string, draft: Draft): void;
	/** The turn that runs or waits longest, if any. */
	running(conversation: string): Message | undefined;

	// ------------------------------------------------------------------------------------------ turns

	/** Ask. Resolves when the daemon has taken the question; if it does not, the message says why. */
	send(conversation: string, question: Question): Promise<void>;
	/** Ask the same again; a question that the daemon never had goes under its old id, so that it is answered once. */
	retry(conversation: string, id: string): Promise<void>;
	/** Take a question away that the daemon never had. */
	withdraw(conversation: string, id: string): void;
	/** End a turn and keep its text; one that the daemon has not taken yet is ended as soon as it has. */
	stop(conversation: string, id?: string): Promise<void>;
	/** Answer a call that waits for a yes. */
	approve(conversation: string, turn: string, call: string, answer: { allow: boolean; always: boolean }): Promise<void>;
	/** Take a change of a note back. */
	undo(conversation: string, turn: string, write: string): Promise<void>;
	/** Take back all changes of notes that a turn made, the last first. */
	undoAll(conversation: string, turn: string): Promise<void>;
}

/** What `Chats` works with. `perform` makes a change that the daemon asks for; see vault/notes.ts. */
export interface ChatOptions {
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
