import { parseClosest, parseFault, parseSources, type Fault, type Source } from "./parts";
import { flag, given, isObject, needed, number, object, oneOf, optional, sometimes, strict, text, texts, type Json, type Reader } from "./values";

export * from "./conversations";
export * from "./memory";
export * from "./parts";
export * from "./replies";

export type ToolState = "running" | "done" | "failed" | "refused";
export type WriteOp = "create" | "append" | "modify";
export type WriteKind = "note" | "memory" | "session";

/** A change of a note that this client is asked to make; `if_hash` is null when the note must not exist yet. */
export interface WriteOrder {
	id: string;
	path: string;
	op: WriteOp;
	content: string;
	if_hash: string | null;
	kind: WriteKind;
}

export type RetrievedEvent = {
	type: "retrieved";
	sources: Source[];
	closest: Source[];
	relevance: number;
	/** Notes that changed and are not indexed yet. */
	behind: number;
	query: string;
	notices: string[];
	/** Names of private notes that this model may not see. */
	withheld: string[];
	model: string;
	local: boolean;
	private?: boolean;
};

export type ToolEvent = {
	type: "tool";
	call: string;
	name: string;
	state: ToolState;
	arguments?: Json;
	text?: string;
	sources?: Source[];
	private?: boolean;
};

/** What a turn took, and what this month did until then, each in words. */
interface Used {
	usage?: string;
	month?: string;
}

/** One numbered thing that happened in a turn; numbers begin at 1 and have no gaps. */
export type TurnEvent = { seq: number } & (
	| { type: "queued"; position: number }
	| RetrievedEvent
	| { type: "waiting"; text: string }
	| { type: "token"; text: string }
	| { type: "thinking"; text: string }
	| { type: "retract" }
	| ToolEvent
	| { type: "approval"; call: string; name: string; title: string; diff: string; arguments: Json }
	| ({ type: "write" } & WriteOrder)
	| { type: "written"; id: string; path: string; op: WriteOp; hash: string; by: "client" | "daemon"; error?: Fault }
	| { type: "usage"; model: string; input_tokens: number; output_tokens: number; estimated: boolean }
	| ({ type: "done"; text: string; citations: Source[]; notices: string[]; stopped?: boolean; private?: boolean } & Used)
	| ({ type: "failed"; error: Fault; text: string; notices?: string[] } & Used)
);

const OPS: readonly WriteOp[] = ["create", "append", "modify"];

const order = {
	id: needed(text),
	path: needed(text),
	op: oneOf(OPS),
	content: given,
	if_hash: (hash: unknown) => (hash === null ? hash : given(hash)),
	kind: oneOf<WriteKind>(["note", "memory", "session"], "note"),
};

const said = { text: given };
const used = { usage: optional(text), month: optional(text) };

/** The fields of every type of event. A Map, so that a type called "toString" is one that is not known. */
const EVENTS = new Map<unknown, Reader<object | null>>(Object.entries({
	queued: strict({ position: number }),
	retrieved: strict({
		sources: parseSources,
		closest: parseClosest,
		relevance: number,
		behind: number,
		query: text,
		notices: texts,
		withheld: texts,
		model: text,
		local: flag,
		private: sometimes,
	}),
	waiting: strict(said),
	token: strict(said),
	thinking: strict(said),
	retract: strict({}),
	tool: strict({
		call: needed(text),
		name: text,
		state: oneOf<ToolState>(["running", "done", "failed", "refused"]),
		arguments: (value) => (isObject(value) ? value : undefined),
		text: (value) => (typeof value === "string" ? value : undefined),
		sources: optional(parseSources),
		private: sometimes,
	}),
	approval: strict({ call: needed(text), name: text, title: text, diff: text, arguments: object }),
	write: strict(order),
	written: strict({
		id: needed(text),
		path: text,
		op: oneOf(OPS),
		hash: text,
		by: oneOf<"client" | "daemon">(["client", "daemon"], "daemon"),
		error: (value) => parseFault(value) ?? undefined,
	}),
	usage: strict({ model: text, input_tokens: number, output_tokens: number, estimated: flag }),
	done: strict({ text, citations: parseSources, notices: texts, stopped: sometimes, private: sometimes, ...used }),
	failed: strict({
		error: (value) => parseFault(value) ?? { code: "error", message: "", hint: "" },
		text,
		notices: optional(texts),
		...used,
	}),
} satisfies { [Type in TurnEvent["type"]]: Reader<Omit<Extract<TurnEvent, { type: Type }>, "seq" | "type"> | null> }));

/** The number of an event of any type, known or not; 0 when there is none. */
export function eventNumber(value: unknown): number {
	const seq = number(object(value)["seq"]);
	return Number.isInteger(seq) && seq > 0 ? seq : 0;
}

/** Whether a turn ends with this event. */
export function isLast(event: TurnEvent): boolean {
	return event.type === "done" || event.type === "failed";
}

/** What a line of a turn says; null when it is of no known type or lacks what it cannot do without. Never throws. */
export function parseEvent(value: unknown): TurnEvent | null {
	const seq = eventNumber(value);
	const { type } = object(value);
	const read = seq && EVENTS.get(type)?.(value);
	// the table has the fields of every type, as its own type says
	return read ? ({ seq, type, ...read } as TurnEvent) : null;
}

/** A change to make, as in a "write" event and in the reply to a claim; null when it cannot be carried out safely. */
export const parseWriteOrder: Reader<WriteOrder | null> = strict(order);
