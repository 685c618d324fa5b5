import { parseFault, parseSources, type Fault, type Source } from "./parts";
import { flag, listOf, needed, number, object, oneOf, shape, strict, text, texts, type Reader } from "./values";

/** A conversation in the list; times are seconds since 1970. */
export interface ConversationSummary {
	id: string;
	title: string;
	created: number;
	updated: number;
	turns: number;
}

export type PastState = "running" | "done" | "stopped" | "interrupted" | "failed";

/** A turn as it is kept; one that is "running" can be followed from event 1. */
export interface PastTurn {
	id: string;
	message: string;
	notes: string[];
	at: number;
	state: PastState;
	text: string;
	sources: Source[];
	citations: Source[];
	error: Fault | null;
	model: string;
	private: boolean;
	usage: string;
	tools: { name: string; state: string }[];
}

/** A whole conversation; `note` is the path of its note in the vault, "" without one. */
export interface ConversationReply extends ConversationSummary {
	note: string;
	history: PastTurn[];
}

const SUMMARY = {
	id: needed(text),
	title: text,
	created: number,
	updated: number,
	// a number in the list, and the turns themselves in a whole conversation
	turns: (turns: unknown) => (Array.isArray(turns) ? turns.length : number(turns)),
};

const turns: Reader<PastTurn[]> = listOf(
	strict({
		id: needed(text),
		message: text,
		notes: texts,
		at: number,
		state: oneOf<PastState>(["running", "done", "stopped", "interrupted", "failed"], "interrupted"),
		text,
		sources: parseSources,
		citations: parseSources,
		error: parseFault,
		model: text,
		private: flag,
		usage: text,
		tools: listOf(shape({ name: text, state: text })),
	}),
);

const list: Reader<ConversationSummary[]> = listOf(strict(SUMMARY));
const whole = strict({ ...SUMMARY, note: text });

/** The list of conversations, as the daemon orders it. */
export function parseConversations(value: unknown): ConversationSummary[] {
	return list(object(value)["conversations"]);
}

/** A conversation with its turns, or null. */
export function parseConversation(value: unknown): ConversationReply | null {
	const found = whole(value);
	return found && { ...found, history: turns(object(value)["turns"]) };
}

/** The path of the note that was made of a conversation, "" where none is made. */
export function parseSaved(value: unknown): string {
	return text(object(value)["note"]);
}
