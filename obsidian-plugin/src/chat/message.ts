/** A question and its answer, and what belongs to it: tools, approvals, changes of notes. */

import type { Fault, Source, WriteKind, WriteOp } from "../protocol/events";

/** A call of a tool. `stopped` is ours: the turn ended while it ran. */
export interface ToolUse {
	readonly call: string;
	readonly name: string;
	readonly state: "running" | "done" | "failed" | "refused" | "stopped";
	/** What it was called with; {} when a reopened conversation does not say. */
	readonly arguments: Readonly<Record<string, unknown>>;
	readonly text: string;
	readonly sources: readonly Source[];
}

/**
 * A call that waits, or waited, for a yes. `answered` is between the person's answer and the daemon's next word on it;
 * `lapsed` means that the turn ended first.
 */
export interface ApprovalRequest {
	readonly call: string;
	readonly name: string;
	readonly title: string;
	readonly diff: string;
	readonly arguments: Readonly<Record<string, unknown>>;
	readonly state: "asked" | "answered" | "allowed" | "refused" | "lapsed";
}

/** A change of a note. `kind` is "" when the daemon wrote it without offering it. */
export interface WriteView {
	readonly id: string;
	readonly path: string;
	readonly op: WriteOp;
	readonly kind: WriteKind | "";
	readonly state: "asked" | "written" | "failed" | "undone";
	readonly hash: string;
	/** "client" or "daemon", "" before. */
	readonly by: string;
	readonly error?: Fault;
}

/** `retrieving` is also the time before the first event; the last four are ends. */
export type MessageState = "queued" | "retrieving" | "answering" | "done" | "stopped" | "interrupted" | "failed";

/** A question and its answer. `seq` is the number of the last event that is in here, to go on from. */
export interface Message {
	/** The turn's id, or one of ours until the daemon has given one. */
	readonly id: string;
	/** Whether the daemon does not know of it yet (or never will, when it failed). */
	readonly local: boolean;
	readonly question: string;
	readonly notes: readonly string[];
	/** Text that was sent along with the question; "" in a reopened conversation. */
	readonly selection: string;
	/** Seconds since 1970. */
	readonly at: number;
	readonly text: string;
	readonly thinking: string;
	readonly tools: readonly ToolUse[];
	/** What `[n]` in the text can mean, by number. */
	readonly sources: readonly Source[];
	/** Near misses; only there when nothing was found. */
	readonly closest: readonly Source[];
	readonly citations: readonly Source[];
	readonly notices: readonly string[];
	/** Private notes that this model was not shown. */
	readonly withheld: readonly string[];
	readonly behind: number;
	readonly approvals: readonly ApprovalRequest[];
	readonly writes: readonly WriteView[];
	/** Why nothing comes at the moment, as the daemon says it; "" otherwise. */
	readonly waiting: string;
	/** How many turns are ahead of it while it is queued. */
	readonly position: number;
	readonly state: MessageState;
	readonly error?: Fault;
	readonly model: string;
	/** Whether the model is on the daemon's machine; true until something else is known. */
	readonly modelIsLocal: boolean;
	readonly private: boolean;
	/** What it took in tokens and money, in words; "" when no model was asked. */
	readonly usage: string;
	readonly seq: number;
}

/** Whether nothing more will come. */
export function ended(message: Message): boolean {
	return ["done", "stopped", "interrupted", "failed"].includes(message.state);
}

/** A turn of which nothing is known yet but its id. */
export function blank(id: string): Message {
	return {
		id,
		local: false,
		question: "",
		notes: [],
		selection: "",
		at: 0,
		text: "",
		thinking: "",
		tools: [],
		sources: [],
		closest: [],
		citations: [],
		notices: [],
		withheld: [],
		behind: 0,
		approvals: [],
		writes: [],
		waiting: "",
		position: 0,
		state: "retrieving",
		model: "",
		modelIsLocal: true,
		private: false,
		usage: "",
		seq: 0,
	};
}
