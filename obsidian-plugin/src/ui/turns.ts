import { ended, type ChatState, type Message } from "../chat/state";
import type { Client } from "../daemon/client";
import { isLast, type TurnEvent, type WriteOrder } from "../protocol/events";
import { faultOf, isNotFound } from "./errors";

/** Where the events of turns go, and what is known of them. */
export interface TurnStore {
	readonly client: () => Client | null;
	readonly message: (conversation: string, turn: string) => Message | undefined;
	readonly happened: (conversation: string, turn: string, event: TurnEvent) => void;
	/** Read again what the daemon has kept of a conversation. */
	readonly reload: (conversation: string) => Promise<void>;
	readonly perform: (client: Client, order: WriteOrder) => Promise<void>;
}

/** Follows the turns that run, each once, and has the changes made that they ask for. */
export class Turns {
	private readonly followed = new Map<string, { conversation: string; controller: AbortController }>();
	private readonly performed = new Set<string>();

	constructor(private readonly store: TurnStore) {}

	/** Follow a turn from the last event that is known of it; one that is followed already goes on. */
	follow(conversation: string, turn: string): void {
		const client = this.store.client();
		const message = this.store.message(conversation, turn);
		if (!client || !message || ended(message) || this.followed.has(turn)) return;
		const controller = new AbortController();
		this.followed.set(turn, { conversation, controller });
		void this.read(conversation, turn, message.seq, client, controller.signal).finally(() => {
			if (this.followed.get(turn)?.controller === controller) this.followed.delete(turn);
		});
	}

	/** Follow no turn any more, or none of this conversation; they go on in the daemon. */
	leave(conversation?: string): void {
		for (const [turn, one] of this.followed) {
			if (conversation !== undefined && one.conversation !== conversation) continue;
			one.controller.abort();
			this.followed.delete(turn);
		}
	}

	private async read(conversation: string, turn: string, after: number, client: Client, signal: AbortSignal): Promise<void> {
		try {
			for await (const event of client.follow(turn, after, signal)) {
				if (signal.aborted) return;
				this.store.happened(conversation, turn, event);
				if (event.type === "write") this.write(client, event);
				if (isLast(event)) return;
			}
		} catch (error) {
			if (!signal.aborted) await this.lost(conversation, turn, error);
		}
	}

	/** Each change is made once, however often its event is read. */
	private write(client: Client, order: WriteOrder): void {
		if (this.performed.has(order.id)) return;
		this.performed.add(order.id);
		this.store.perform(client, order).catch((error: unknown) => {
			console.warn("A change of a note was not made", error);
		});
	}

	/** The daemon does not know the turn any more, as after a restart: its own record says what became of it. */
	private async lost(conversation: string, turn: string, error: unknown): Promise<void> {
		const gone = isNotFound(error);
		if (gone) await this.store.reload(conversation);
		const message = this.store.message(conversation, turn);
		if (!message || ended(message)) return;
		const fault = faultOf(error);
		const last = { ...fault, code: gone ? "interrupted" : fault.code };
		this.store.happened(conversation, turn, { seq: message.seq + 1, type: "failed", error: last, text: message.text });
	}
}

/** What is here is richer than what is saved; what is saved knows of more messages, and how they ended. */
export function merged(here: ChatState, saved: ChatState): ChatState {
	const known = new Map(here.messages.map((message) => [message.id, message]));
	const messages = saved.messages.map((message) => {
		const own = known.get(message.id);
		known.delete(message.id);
		if (!own) return message;
		return ended(own) || !ended(message) ? own : withEnd(own, message);
	});
	return { ...saved, messages: [...messages, ...known.values()] };
}

function withEnd(own: Message, saved: Message): Message {
	const approvals = own.approvals.map((one) =>
		one.state === "asked" || one.state === "answered" ? ({ ...one, state: "lapsed" } as const) : one,
	);
	const { state, text, sources, citations, error, model, seq } = saved;
	const tools = own.tools.map((one) => (one.state === "running" ? ({ ...one, state: "stopped" } as const) : one));
	return { ...own, state, text, sources, citations, model, seq, tools, approvals, waiting: "", ...(error ? { error } : {}) };
}
