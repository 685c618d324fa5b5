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
import type { Fault, TurnEvent } from "../protocol/events";
import type { ChatChange, ChatMeans, Draft, Question } from "./chat-types";
import { faultOf, isNotFound, NotConnected } from "./errors";
import { merged, Turns } from "./turns";

export type { ChatChange, ChatMeans, Draft, Question } from "./chat-types";

interface Open {
	state: ChatState;
	/** Whether what the daemon knows is in here. */
	loaded: boolean;
	loading: Promise<void> | null;
	problem: Fault | null;
	draft: Draft;
	readonly stops: Set<string>;
}

/**
 * The conversations that are open, whether or not a pane shows them: it follows their turns, makes the changes that
 * they ask for, and tells the panes. Lives as long as the plugin.
 */
export class Chats {
	private readonly open = new Map<string, Open>();
	private readonly listeners = new Set<(change: ChatChange) => void>();
	/** What was sent, by question or turn, for asking again. */
	private readonly questions = new Map<string, Question>();
	private readonly turns: Turns;
	private readonly now: () => number;
	private readonly newId: () => string;
	private readonly end: () => void;
	private closed = false;

	constructor(private readonly means: ChatMeans) {
		this.now = means.now ?? (() => Date.now() / 1000);
		this.newId = means.id ?? (() => window.crypto.randomUUID());
		this.turns = new Turns({
			client: () => (this.closed ? null : means.connection.client),
			message: (conversation, turn) => this.message(conversation, turn),
			happened: (conversation, turn, event) => {
				this.set(conversation, reduce(this.state(conversation), turn, event), { turn, event });
			},
			reload: (conversation) => {
				this.entry(conversation).loaded = false;
				return this.load(conversation);
			},
			perform: means.perform,
		});
		this.end = means.connection.onChange((state) => {
			if (state.name === "connected") this.reconnected();
		});
	}

	/** End everything; turns go on in the daemon. */
	close(): void {
		this.closed = true;
		this.end();
		this.listeners.clear();
		this.turns.leave();
	}

	/** Be told of every change of every conversation; returns how to end that. */
	onChange(listener: (change: ChatChange) => void): () => void {
		this.listeners.add(listener);
		return () => {
			this.listeners.delete(listener);
		};
	}

	// ------------------------------------------------------------------------------------------ conversations

	/** The id of a conversation that begins; the daemon hears of it with its first question. */
	create(): string {
		const id = this.newId();
		this.entry(id).loaded = true;
		return id;
	}

	/** As it is now; an unknown one is empty, and is loaded as soon as the daemon is there. */
	state(conversation: string): ChatState {
		return this.entry(conversation).state;
	}

	/** Whether its messages are still to come from the daemon. */
	pending(conversation: string): boolean {
		return !this.entry(conversation).loaded;
	}

	/** Why it could not be loaded, or null. */
	problem(conversation: string): Fault | null {
		return this.entry(conversation).problem;
	}

	/** Load it unless it is there; resolves when it is, or when that failed (see `problem`). */
	load(conversation: string): Promise<void> {
		const one = this.entry(conversation);
		if (one.loaded) return Promise.resolve();
		one.loading ??= this.fetch(conversation, one).finally(() => {
			one.loading = null;
		});
		return one.loading;
	}

	/** It has another title now: the daemon was told already. */
	renamed(conversation: string, title: string): void {
		const one = this.open.get(conversation);
		if (one) this.set(conversation, { ...one.state, title });
	}

	/** It was removed; a pane that shows it shows an empty one. */
	forget(conversation: string): void {
		const one = this.open.get(conversation);
		if (!one) return;
		this.turns.leave(conversation);
		this.open.delete(conversation);
		this.entry(conversation).loaded = true;
		this.tell({ conversation, state: this.state(conversation) });
	}

	draft(conversation: string): Draft {
		return this.entry(conversation).draft;
	}

	/** Keeps what is written; nobody is told, for the box that it comes from shows it. */
	keepDraft(conversation: string, draft: Draft): void {
		this.entry(conversation).draft = draft;
	}

	/** The turn that runs or waits longest, if any. */
	running(conversation: string): Message | undefined {
		return this.state(conversation).messages.find((message) => !ended(message));
	}

	// ------------------------------------------------------------------------------------------ turns

	/** Ask. Resolves when the daemon has taken the question; if it does not, the message says why. */
	async send(conversation: string, question: Question, request = this.newId()): Promise<void> {
		const { message, notes = [], selection = "" } = question;
		this.set(conversation, asked(this.state(conversation), request, { question: message, notes, selection, at: this.now() }));
		this.questions.set(request, question);
		try {
			const client = this.client();
			const turn = await client.startTurn({ ...question, conversation, request_id: request, writer: "client", approvals: true });
			if (this.closed) return;
			const one = this.entry(conversation);
			this.questions.delete(request);
			this.questions.set(turn, question);
			this.set(conversation, accepted(one.state, request, turn));
			this.turns.follow(conversation, turn);
			if (one.stops.delete(request)) await this.stop(conversation, turn);
		} catch (error) {
			this.set(conversation, rejected(this.state(conversation), request, faultOf(error, this.means.connection.where)));
		}
	}

	/** Ask the same again; a question that the daemon never had goes under its old id, so that it is answered once. */
	async retry(conversation: string, id: string): Promise<void> {
		const message = this.message(conversation, id);
		if (!message) return;
		const { question, notes, selection, local } = message;
		const saved: Question = { message: question, ...(notes.length ? { notes: [...notes] } : {}), ...(selection ? { selection } : {}) };
		const again = this.questions.get(id) ?? saved;
		this.set(conversation, removed(this.state(conversation), id));
		await this.send(conversation, again, local ? id : this.newId());
	}

	/** Take a question away that the daemon never had. */
	withdraw(conversation: string, id: string): void {
		if (this.message(conversation, id)?.local) this.set(conversation, removed(this.state(conversation), id));
	}

	/** End a turn and keep its text; one that the daemon has not taken yet is ended as soon as it has. */
	async stop(conversation: string, id?: string): Promise<void> {
		const message = id === undefined ? this.running(conversation) : this.message(conversation, id);
		if (!message || ended(message)) return;
		if (message.local) {
			this.entry(conversation).stops.add(message.id);
			return;
		}
		await this.client().stop(message.id);
	}

	/** Answer a call that waits for a yes. */
	async approve(conversation: string, turn: string, call: string, answer: { allow: boolean; always: boolean }): Promise<void> {
		const before = this.state(conversation);
		this.set(conversation, answered(before, turn, call));
		try {
			await this.client().approve(turn, call, answer);
		} catch (error) {
			// the buttons come back, unless something else has happened to the call meanwhile
			const message = this.message(conversation, turn);
			const old = before.messages.find((one) => one.id === turn);
			if (message && old && message.seq === old.seq) this.replace(conversation, old);
			throw error;
		}
	}

	/** Take a change of a note back. */
	async undo(conversation: string, turn: string, write: string): Promise<void> {
		await this.client().undo(write);
		this.set(conversation, undone(this.state(conversation), turn, write));
	}

	/** Take back all changes of notes that a turn made, the last first. */
	async undoAll(conversation: string, turn: string): Promise<void> {
		const writes = this.message(conversation, turn)?.writes.filter((one) => one.state === "written" && one.kind !== "session") ?? [];
		for (const write of [...writes].reverse()) await this.undo(conversation, turn, write.id);
	}

	// ------------------------------------------------------------------------------------------ inside

	private client(): Client {
		const { client } = this.means.connection;
		if (!client) throw new NotConnected(this.means.connection);
		return client;
	}

	private entry(conversation: string): Open {
		let one = this.open.get(conversation);
		if (!one) {
			const state = empty(conversation);
			one = { state, loaded: false, loading: null, problem: null, draft: { text: "", context: noContext() }, stops: new Set() };
			this.open.set(conversation, one);
		}
		return one;
	}

	private message(conversation: string, id: string): Message | undefined {
		return this.state(conversation).messages.find((one) => one.id === id);
	}

	private replace(conversation: string, message: Message): void {
		const { state } = this.entry(conversation);
		this.set(conversation, { ...state, messages: state.messages.map((one) => (one.id === message.id ? message : one)) });
	}

	private set(conversation: string, state: ChatState, more: { turn?: string; event?: TurnEvent } = {}): void {
		const one = this.entry(conversation);
		if (one.state === state) return;
		one.state = state;
		this.tell({ conversation, state, ...more });
	}

	private tell(change: ChatChange): void {
		for (const listener of [...this.listeners]) listener(change);
	}

	private async fetch(conversation: string, one: Open): Promise<void> {
		const { client } = this.means.connection;
		if (!client || this.closed) return;
		one.problem = null;
		try {
			const saved = fromConversation(await client.conversation(conversation));
			one.loaded = true;
			this.set(conversation, merged(one.state, saved));
		} catch (error) {
			// it has not begun yet, or another client removed it
			if (isNotFound(error)) one.loaded = true;
			else one.problem = faultOf(error, this.means.connection.where);
			this.tell({ conversation, state: one.state });
		}
		for (const message of unfinished(one.state)) this.turns.follow(conversation, message.id);
	}

	private reconnected(): void {
		// what is followed might hold on to a way that is gone
		this.turns.leave();
		for (const [conversation, one] of this.open) {
			if (one.state.messages.some((message) => !ended(message))) one.loaded = false;
			void this.load(conversation);
		}
	}
}
