import { noContext } from "../chat/context";
import {
	accepted,
	answered,
	asked,
	empty,
	ended,
	fromConversation,
	reduce,
	rejected,
	removed,
	undone,
	unfinished,
	type ChatState,
	type Message,
} from "../chat/state";
import type { Client } from "../daemon/client";
import { listeners } from "../listeners";
import type { Fault, TurnEvent } from "../protocol/events";
import type { ChatChange, ChatOptions, Chats, Draft, Question } from "./chat-types";
import { faultOf, hasStatus, NotConnected } from "./errors";
import { followTurns, merged } from "./turns";

export type { ChatChange, Chats, Draft, Question } from "./chat-types";

interface Open {
	state: ChatState;
	/** Whether what the daemon knows is in here. */
	loaded: boolean;
	loading: Promise<void> | null;
	problem: Fault | null;
	draft: Draft;
	/** Questions that are to be stopped as soon as the daemon has taken them. */
	readonly stops: Set<string>;
}

/** The conversations over this connection; none is known yet. */
export function makeChats({ connection, perform, now = () => Date.now() / 1000, id: newId = () => window.crypto.randomUUID() }: ChatOptions): Chats {
	const open = new Map<string, Open>();
	const { add, tell: tellAll } = listeners<ChatChange>();
	/** What was sent, by question or turn, for asking again. */
	const questions = new Map<string, Question>();
	let closed = false;

	const turns = followTurns({
		client: () => (closed ? null : connection.client),
		message,
		happened: (conversation, turn, event) => {
			set(conversation, reduce(state(conversation), turn, event), { turn, event });
		},
		reload: (conversation) => {
			entry(conversation).loaded = false;
			return load(conversation);
		},
		perform,
	});
	const end = connection.onChange(({ name }) => {
		if (name !== "connected") return;
		// what is followed might hold on to a way that is gone
		turns.leave();
		for (const [conversation, one] of open) {
			if (running(conversation)) one.loaded = false;
			void load(conversation);
		}
	});

	// ------------------------------------------------------------------------------------------ inside

	function client(): Client {
		if (!connection.client) throw new NotConnected(connection);
		return connection.client;
	}

	function entry(conversation: string): Open {
		let one = open.get(conversation);
		if (!one) {
			one = {
				state: empty(conversation),
				loaded: false,
				loading: null,
				problem: null,
				draft: { text: "", context: noContext() },
				stops: new Set(),
			};
			open.set(conversation, one);
		}
		return one;
	}

	function state(conversation: string): ChatState {
		return entry(conversation).state;
	}

	function message(conversation: string, id: string): Message | undefined {
		return state(conversation).messages.find((one) => one.id === id);
	}

	function running(conversation: string): Message | undefined {
		return state(conversation).messages.find((one) => !ended(one));
	}

	function set(conversation: string, next: ChatState, more: { turn?: string; event?: TurnEvent } = {}): void {
		const one = entry(conversation);
		if (one.state === next) return;
		one.state = next;
		tell({ conversation, state: next, ...more });
	}

	function tell(change: ChatChange): void {
		if (!closed) tellAll(change);
	}

	function load(conversation: string): Promise<void> {
		const one = entry(conversation);
		if (one.loaded) return Promise.resolve();
		one.loading ??= fetch(conversation, one).finally(() => {
			one.loading = null;
		});
		return one.loading;
	}

	async function fetch(conversation: string, one: Open): Promise<void> {
		if (!connection.client || closed) return;
		one.problem = null;
		try {
			const saved = fromConversation(await connection.client.conversation(conversation));
			one.loaded = true;
			set(conversation, merged(one.state, saved));
		} catch (error) {
			// it has not begun yet, or another client removed it
			if (hasStatus(error, 404)) one.loaded = true;
			else one.problem = faultOf(error, connection.where);
			tell({ conversation, state: one.state });
		}
		for (const { id } of unfinished(one.state)) turns.follow(conversation, id);
	}

	async function send(conversation: string, question: Question, request = newId()): Promise<void> {
		const { message: words, notes = [], selection = "" } = question;
		set(conversation, asked(state(conversation), request, { question: words, notes, selection, at: now() }));
		questions.set(request, question);
		try {
			const turn = await client().startTurn({ ...question, conversation, request_id: request, writer: "client", approvals: true });
			if (closed) return;
			questions.delete(request);
			questions.set(turn, question);
			set(conversation, accepted(state(conversation), request, turn));
			turns.follow(conversation, turn);
			if (entry(conversation).stops.delete(request)) await stop(conversation, turn);
		} catch (error) {
			set(conversation, rejected(state(conversation), request, faultOf(error, connection.where)));
		}
	}

	async function stop(conversation: string, id?: string): Promise<void> {
		const one = id === undefined ? running(conversation) : message(conversation, id);
		if (!one || ended(one)) return;
		if (one.local) entry(conversation).stops.add(one.id);
		else await client().stop(one.id);
	}

	async function undo(conversation: string, turn: string, write: string): Promise<void> {
		await client().undo(write);
		set(conversation, undone(state(conversation), turn, write));
	}

	return {
		close: () => {
			closed = true;
			end();
			turns.leave();
		},
		onChange: add,

		create: () => {
			const id = newId();
			entry(id).loaded = true;
			return id;
		},
		state,
		pending: (conversation) => !entry(conversation).loaded,
		problem: (conversation) => entry(conversation).problem,
		load,
		renamed: (conversation, title) => {
			if (open.has(conversation)) set(conversation, { ...state(conversation), title });
		},
		forget: (conversation) => {
			turns.leave(conversation);
			if (!open.delete(conversation)) return;
			entry(conversation).loaded = true;
			tell({ conversation, state: state(conversation) });
		},
		draft: (conversation) => entry(conversation).draft,
		keepDraft: (conversation, draft) => {
			entry(conversation).draft = draft;
		},
		running,

		send: (conversation, question) => send(conversation, question),
		retry: async (conversation, id) => {
			const one = message(conversation, id);
			if (!one) return;
			const { question, notes, selection, local } = one;
			const saved: Question = { message: question, ...(notes.length ? { notes: [...notes] } : {}), ...(selection ? { selection } : {}) };
			set(conversation, removed(state(conversation), id));
			await send(conversation, questions.get(id) ?? saved, local ? id : newId());
		},
		withdraw: (conversation, id) => {
			if (message(conversation, id)?.local) set(conversation, removed(state(conversation), id));
		},
		stop,
		approve: async (conversation, turn, call, answer) => {
			const before = message(conversation, turn);
			set(conversation, answered(state(conversation), turn, call));
			try {
				await client().approve(turn, call, answer);
			} catch (error) {
				// it was answered elsewhere or has ended, which the card tells
				if (hasStatus(error, 409)) return;
				// the buttons come back, unless something else has happened to the call meanwhile
				const present = state(conversation);
				const messages = present.messages.map((one) => (before && one.id === turn && one.seq === before.seq ? before : one));
				set(conversation, { ...present, messages });
				throw error;
			}
		},
		undo,
		undoAll: async (conversation, turn) => {
			const writes = message(conversation, turn)?.writes.filter((one) => one.state === "written" && one.kind !== "session") ?? [];
			for (const { id } of writes.reverse()) await undo(conversation, turn, id);
		},
	};
}
