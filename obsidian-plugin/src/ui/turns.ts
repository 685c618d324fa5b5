import { ended, type ChatState, type Message } from "../chat/state";
import { pause, retryDelay } from "../daemon/backoff";
import type { Client } from "../daemon/client";
import { isLast, type Fault, type TurnEvent, type WriteOrder } from "../protocol/events";
import { faultOf, hasStatus } from "./errors";

/** So often a turn is read that is said to be over, and has no end. */
const TRIES = 3;

/** A turn that is over, and nobody knows how. */
const OVER: Fault = { code: "", message: "", hint: "" };

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
export interface Turns {
	/** Follow a turn from the last event that is known of it; one that is followed already goes on. */
	readonly follow: (conversation: string, turn: string) => void;
	/** Follow no turn any more, or none of this conversation; they go on in the daemon. */
	readonly leave: (conversation?: string) => void;
}

export function followTurns(store: TurnStore): Turns {
	const followed = new Map<string, { conversation: string; controller: AbortController }>();
	const performed = new Set<string>();

	async function read(conversation: string, turn: string, client: Client, signal: AbortSignal): Promise<void> {
		try {
			for (let tries = 0; tries < TRIES; tries++) {
				if (tries > 0) await pause(retryDelay(tries), signal);
				for await (const event of client.follow(turn, store.message(conversation, turn)?.seq ?? 0, signal)) {
					if (signal.aborted) return;
					store.happened(conversation, turn, event);
					if (event.type === "write") write(client, event);
					if (isLast(event)) return;
				}
				if (signal.aborted) return;
			}
			await lost(conversation, turn, OVER, true);
		} catch (error) {
			if (!signal.aborted) await lost(conversation, turn, faultOf(error), hasStatus(error, 404));
		}
	}

	/** Each change is made once, however often its event is read. */
	function write(client: Client, order: WriteOrder): void {
		if (performed.has(order.id)) return;
		performed.add(order.id);
		store.perform(client, order).catch((error: unknown) => {
			console.warn("A note was not changed", error);
		});
	}

	/** A turn that is `gone`, as after a restart, or that has no end: the daemon's own record says what became of it. */
	async function lost(conversation: string, turn: string, fault: Fault, gone: boolean): Promise<void> {
		if (gone) await store.reload(conversation);
		const message = store.message(conversation, turn);
		if (!message || ended(message)) return;
		const error = gone ? { ...fault, code: "interrupted" } : fault;
		store.happened(conversation, turn, { seq: message.seq + 1, type: "failed", error, text: message.text });
	}

	return {
		follow: (conversation, turn) => {
			const client = store.client();
			const message = store.message(conversation, turn);
			if (!client || !message || ended(message) || followed.has(turn)) return;
			const controller = new AbortController();
			followed.set(turn, { conversation, controller });
			void read(conversation, turn, client, controller.signal).finally(() => {
				if (followed.get(turn)?.controller === controller) followed.delete(turn);
			});
		},
		leave: (conversation) => {
			for (const [turn, one] of followed) {
				if (conversation !== undefined && one.conversation !== conversation) continue;
				one.controller.abort();
				followed.delete(turn);
			}
		},
	};
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

/** What waited for a yes or ran when the end came does so no more. */
function withEnd(own: Message, { state, text, sources, citations, error, model, seq }: Message): Message {
	const approvals = own.approvals.map((one) =>
		one.state === "asked" || one.state === "answered" ? ({ ...one, state: "lapsed" } as const) : one,
	);
	const tools = own.tools.map((one) => (one.state === "running" ? ({ ...one, state: "stopped" } as const) : one));
	return { ...own, state, text, sources, citations, model, seq, tools, approvals, waiting: "", ...(error ? { error } : {}) };
}
