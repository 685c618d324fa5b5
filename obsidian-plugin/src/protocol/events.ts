import { parseFault, parseSources, type Fault, type Source } from "./parts";
import { choice, flag, isObject, number, object, text, texts, type Json } from "./values";

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

/** One numbered thing that happened in a turn; numbers begin at 1 and have no gaps. */
export type TurnEvent = { seq: number } & (
	| { type: "queued"; position: number }
	| RetrievedEvent
	| { type: "waiting" | "token" | "thinking"; text: string }
	| { type: "retract" }
	| ToolEvent
	| { type: "approval"; call: string; name: string; title: string; diff: string; arguments: Json }
	| ({ type: "write" } & WriteOrder)
	| { type: "written"; id: string; path: string; op: WriteOp; hash: string; by: "client" | "daemon"; error?: Fault }
	| { type: "usage"; input_tokens: number; output_tokens: number }
	| { type: "done"; text: string; citations: Source[]; notices: string[]; stopped?: boolean; private?: boolean }
	| { type: "failed"; error: Fault; text: string; notices?: string[] }
);

const OPS = ["create", "append", "modify"] as const;
const KINDS = ["note", "memory", "session"] as const;
const TOOL_STATES = ["running", "done", "failed", "refused"] as const;

/** The number of an event of any type, known or not; 0 when there is none. */
export function eventNumber(value: unknown): number {
	const seq = object(value)["seq"];
	return typeof seq === "number" && Number.isInteger(seq) && seq > 0 ? seq : 0;
}

/** Whether a turn ends with this event. */
export function isLast(event: TurnEvent): boolean {
	return event.type === "done" || event.type === "failed";
}

/** What a line of a turn says; null when it is of no known type or lacks what it cannot do without. Never throws. */
export function parseEvent(value: unknown): TurnEvent | null {
	const seq = eventNumber(value);
	if (!isObject(value) || seq === 0) return null;
	switch (value["type"]) {
		case "queued":
			return { seq, type: "queued", position: number(value["position"]) };
		case "retrieved":
			return { seq, ...retrieved(value) };
		case "waiting":
		case "token":
		case "thinking":
			return typeof value["text"] === "string" ? { seq, type: value["type"], text: value["text"] } : null;
		case "retract":
			return { seq, type: "retract" };
		case "tool":
			return tool(seq, value);
		case "approval":
			return approval(seq, value);
		case "write": {
			const order = parseWriteOrder(value);
			return order && { seq, type: "write", ...order };
		}
		case "written":
			return written(seq, value);
		case "usage":
			return {
				seq,
				type: "usage",
				input_tokens: number(value["input_tokens"]),
				output_tokens: number(value["output_tokens"]),
			};
		case "done":
			return {
				seq,
				type: "done",
				text: text(value["text"]),
				citations: parseSources(value["citations"]),
				notices: texts(value["notices"]),
				...(flag(value["stopped"]) ? { stopped: true } : {}),
				...(flag(value["private"]) ? { private: true } : {}),
			};
		case "failed":
			return {
				seq,
				type: "failed",
				error: parseFault(value["error"]) ?? { code: "error", message: "", hint: "" },
				text: text(value["text"]),
				...("notices" in value ? { notices: texts(value["notices"]) } : {}),
			};
		default:
			return null;
	}
}

/** A change to make, as in a "write" event and in the reply to a claim; null when it cannot be carried out safely. */
export function parseWriteOrder(value: unknown): WriteOrder | null {
	const given = object(value);
	const { id, path, content, if_hash: hash } = given;
	const op = choice(given["op"], OPS);
	if (typeof id !== "string" || typeof path !== "string" || typeof content !== "string") return null;
	if (op === null || id === "" || path === "" || (typeof hash !== "string" && hash !== null)) return null;
	return { id, path, op, content, if_hash: hash, kind: choice(given["kind"], KINDS) ?? "note" };
}

function retrieved(value: Json): RetrievedEvent {
	return {
		type: "retrieved",
		sources: parseSources(value["sources"]),
		closest: parseSources(value["closest"]),
		relevance: number(value["relevance"]),
		behind: number(value["behind"]),
		query: text(value["query"]),
		notices: texts(value["notices"]),
		withheld: texts(value["withheld"]),
		model: text(value["model"]),
		local: flag(value["local"]),
		...(flag(value["private"]) ? { private: true } : {}),
	};
}

function tool(seq: number, value: Json): TurnEvent | null {
	const state = choice(value["state"], TOOL_STATES);
	const call = text(value["call"]);
	if (state === null || call === "") return null;
	return {
		seq,
		type: "tool",
		call,
		name: text(value["name"]),
		state,
		...(isObject(value["arguments"]) ? { arguments: value["arguments"] } : {}),
		...(typeof value["text"] === "string" ? { text: value["text"] } : {}),
		...("sources" in value ? { sources: parseSources(value["sources"]) } : {}),
		...(flag(value["private"]) ? { private: true } : {}),
	};
}

function approval(seq: number, value: Json): TurnEvent | null {
	const call = text(value["call"]);
	if (call === "") return null;
	return {
		seq,
		type: "approval",
		call,
		name: text(value["name"]),
		title: text(value["title"]),
		diff: text(value["diff"]),
		arguments: object(value["arguments"]),
	};
}

function written(seq: number, value: Json): TurnEvent | null {
	const op = choice(value["op"], OPS);
	const id = text(value["id"]);
	if (op === null || id === "") return null;
	const error = parseFault(value["error"]);
	return {
		seq,
		type: "written",
		id,
		path: text(value["path"]),
		op,
		hash: text(value["hash"]),
		by: value["by"] === "client" ? "client" : "daemon",
		...(error ? { error } : {}),
	};
}
