/** A conversation as the pane shows it: every view is drawn from this, and only events and the person change it. */

import type { ConversationReply, Fault, PastTurn, TurnEvent } from "../protocol/events";
import { choice } from "../protocol/values";
import { apply } from "./apply";
import { oneLine } from "./fold";
import { blank, ended, type ApprovalRequest, type Message, type WriteView } from "./message";

export { ended } from "./message";
export type { ApprovalRequest, Message, MessageState, ToolUse, WriteView } from "./message";

/** `title` is "" and `note` is "" until there is one. */
export interface ChatState {
	readonly conversation: string;
	readonly title: string;
	/** The path of the conversation's own note. */
	readonly note: string;
	readonly messages: readonly Message[];
}

/** What a person asked, before the daemon knows of it. */
export interface Asked {
	readonly question: string;
	readonly notes?: readonly string[];
	readonly selection?: string;
	/** Seconds since 1970. */
	readonly at: number;
}

/** The `seq` of a turn that was read whole: no event of it changes anything. */
export const WHOLE = Number.MAX_SAFE_INTEGER;

const TITLE_CHARS = 80;

/** A conversation in which nothing was asked yet. */
export function empty(conversation: string): ChatState {
	return { conversation, title: "", note: "", messages: [] };
}

/** The messages whose events are still to be followed, each from its `seq` on. */
export function unfinished(state: ChatState): readonly Message[] {
	return state.messages.filter((message) => !message.local && !ended(message));
}

/** The message that was asked last, if any. */
export function latest(state: ChatState): Message | undefined {
	return state.messages[state.messages.length - 1];
}

/** A title from a first question, cut at a word, as the daemon makes it. */
export function titleOf(question: string): string {
	const line = oneLine(question);
	const characters = Array.from(line);
	if (characters.length <= TITLE_CHARS) return line;
	const cut = characters.slice(0, TITLE_CHARS).join("");
	return `${cut.replace(/(.) [^ ]*$/, "$1")}…`;
}

// ------------------------------------------------------------------------------------------------ the person's part

/** A question was sent; `id` is its request id or turn. An id that is there already changes nothing. */
export function asked(state: ChatState, id: string, { question, notes = [], selection = "", at }: Asked): ChatState {
	if (find(state, id)) return state;
	const message: Message = { ...blank(id), local: true, question, notes, selection, at };
	return { ...state, title: state.title || titleOf(question), messages: [...state.messages, message] };
}

/** The daemon took the question `id` and calls it `turn`; what events have brought under that name is kept. */
export function accepted(state: ChatState, id: string, turn: string): ChatState {
	const own = find(state, id);
	if (!own) return state;
	const begun = id === turn ? undefined : find(state, turn);
	const message: Message = { ...own, ...begun, ...questionOf(own), id: turn, local: false };
	const others = begun ? state.messages.filter((one) => one !== begun) : state.messages;
	return { ...state, messages: others.map((one) => (one === own ? message : one)) };
}

/** The person's part of a message. */
function questionOf({ question, notes, selection, at }: Message): Pick<Message, "question" | "notes" | "selection" | "at"> {
	return { question, notes, selection, at };
}

/** The question never reached the daemon. */
export function rejected(state: ChatState, id: string, error: Fault): ChatState {
	return change(state, id, (message) => (ended(message) ? message : { ...message, state: "failed", error }));
}

/** A message is taken out of the view, as before a retry; the daemon's log keeps it. */
export function removed(state: ChatState, id: string): ChatState {
	return find(state, id) ? { ...state, messages: state.messages.filter((message) => message.id !== id) } : state;
}

/** The person answered the call; the daemon tells later what became of it. */
export function answered(state: ChatState, turn: string, call: string): ChatState {
	return change(state, turn, (message) => {
		const approvals = message.approvals.map((one): ApprovalRequest =>
			one.call === call && one.state === "asked" ? { ...one, state: "answered" } : one,
		);
		return { ...message, approvals };
	});
}

/** A write was taken back. */
export function undone(state: ChatState, turn: string, id: string): ChatState {
	return change(state, turn, (message) => {
		const writes = message.writes.map((one): WriteView => (one.id === id ? { ...one, state: "undone" } : one));
		return { ...message, writes };
	});
}

// ------------------------------------------------------------------------------------------------ the daemon's part

/**
 * The state after an event. An event whose number was seen changes nothing, so a log may be read from anywhere again;
 * numbers may be left out, for unknown events are. A turn that nobody asked here appears at the end.
 */
export function reduce(state: ChatState, turn: string, event: TurnEvent): ChatState {
	const known = find(state, turn);
	if (known && event.seq <= known.seq) return state;
	const base = known ? state : { ...state, messages: [...state.messages, blank(turn)] };
	return change(base, turn, (message) => {
		if (ended(message)) return { ...message, seq: event.seq };
		return { ...apply(message, event), local: false, seq: event.seq };
	});
}

/** As `reduce` for a whole log from its first event: what a reopened conversation does not say is there then. */
export function replayed(state: ChatState, turn: string, events: readonly TurnEvent[]): ChatState {
	const bare = change(state, turn, (message) => ({ ...blank(turn), ...questionOf(message) }));
	return events.reduce((current, event) => reduce(current, turn, event), bare);
}

/** A conversation that is opened again. What still runs has no answer here: its events bring it, from the first on. */
export function fromConversation(saved: ConversationReply): ChatState {
	return { conversation: saved.id, title: saved.title, note: saved.note, messages: saved.history.map(fromTurn) };
}

function fromTurn({ id, message: question, notes, at, model, state, text, sources, citations, error, tools, ...turn }: PastTurn): Message {
	const message: Message = { ...blank(id), question, notes, at, model };
	if (state === "running") return message;
	return {
		...message,
		state,
		text,
		sources,
		citations,
		...(error && { error }),
		private: turn.private,
		usage: turn.usage,
		tools: tools.map((tool, index) => ({
			call: `t${index + 1}`,
			name: tool.name,
			state: choice(tool.state, ["done", "failed", "refused"]) ?? "stopped",
			arguments: {},
			text: "",
			sources: [],
		})),
		seq: WHOLE,
	};
}

function find(state: ChatState, id: string): Message | undefined {
	return state.messages.find((message) => message.id === id);
}

function change(state: ChatState, id: string, how: (message: Message) => Message): ChatState {
	const message = find(state, id);
	if (!message) return state;
	const next = how(message);
	if (next === message) return state;
	return { ...state, messages: state.messages.map((one) => (one === message ? next : one)) };
}
