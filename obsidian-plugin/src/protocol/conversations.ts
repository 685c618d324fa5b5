import { parseFault, parseSources, type Fault, type Source } from "./parts";
import { choice, flag, isObject, list, number, object, text, texts } from "./values";

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
	tools: { name: string; state: string }[];
}

/** A whole conversation; `note` is the path of its note in the vault, "" without one. */
export interface ConversationReply extends ConversationSummary {
	note: string;
	history: PastTurn[];
}

const PAST_STATES = ["running", "done", "stopped", "interrupted", "failed"] as const;

/** The list of conversations, as the daemon orders it. */
export function parseConversations(value: unknown): ConversationSummary[] {
	return list(object(value)["conversations"], summary);
}

/** One line of that list, or null. */
export function parseSummary(value: unknown): ConversationSummary | null {
	return isObject(value) ? summary(value) : null;
}

/** A conversation with its turns, or null. */
export function parseConversation(value: unknown): ConversationReply | null {
	const given = object(value);
	const about = summary(given);
	if (about === null) return null;
	return {
		...about,
		note: text(given["note"]),
		history: list(given["turns"], (one): PastTurn | null => {
			const id = text(one["id"]);
			if (id === "") return null;
			return {
				id,
				message: text(one["message"]),
				notes: texts(one["notes"]),
				at: number(one["at"]),
				state: choice(one["state"], PAST_STATES) ?? "interrupted",
				text: text(one["text"]),
				sources: parseSources(one["sources"]),
				citations: parseSources(one["citations"]),
				error: parseFault(one["error"]),
				model: text(one["model"]),
				private: flag(one["private"]),
				tools: list(one["tools"], (used) => ({ name: text(used["name"]), state: text(used["state"]) })),
			};
		}),
	};
}

function summary(one: Record<string, unknown>): ConversationSummary | null {
	const id = text(one["id"]);
	if (id === "") return null;
	const turns = Array.isArray(one["turns"]) ? one["turns"].length : number(one["turns"]);
	return { id, title: text(one["title"]), created: number(one["created"]), updated: number(one["updated"]), turns };
}
