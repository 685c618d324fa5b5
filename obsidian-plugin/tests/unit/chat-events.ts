import type { Source, TurnEvent } from "../../src/protocol/events";

/** Events without their numbers, as tests write them. */
export type Loose = TurnEvent extends infer T ? (T extends { seq: number } ? Omit<T, "seq"> : never) : never;

/** A source with this number. */
export function source(n: number, more: Partial<Source> = {}): Source {
	return {
		n,
		path: `Folder/Note ${n}.md`,
		title: `Note ${n}`,
		heading: "Part",
		link: `[[Folder/Note ${n}#Part]]`,
		start_line: 1,
		end_line: 3,
		relevance: 0.9,
		collection: "",
		attached: false,
		...more,
	};
}

/** A "retrieved" event. */
export function retrieved(more: Partial<Extract<Loose, { type: "retrieved" }>> = {}): Loose {
	return {
		type: "retrieved",
		sources: [source(1), source(2)],
		closest: [],
		relevance: 0.9,
		behind: 0,
		query: "q",
		notices: [],
		withheld: [],
		model: "ollama:small",
		local: true,
		...more,
	};
}

/** Events with numbers from 1. */
export function numbered(events: readonly Loose[]): TurnEvent[] {
	return events.map((event, index) => ({ ...event, seq: index + 1 }));
}

/** Random numbers that are the same in every run with the same seed. */
export class Dice {
	private state: number;

	constructor(seed: number) {
		this.state = (seed * 2654435761 + 1) >>> 0;
	}

	/** From 0 up to, and without, `below`. */
	roll(below: number): number {
		// mulberry32
		this.state = (this.state + 0x6d2b79f5) >>> 0;
		let t = this.state;
		t = Math.imul(t ^ (t >>> 15), t | 1);
		t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
		return Math.floor((((t ^ (t >>> 14)) >>> 0) / 4294967296) * below);
	}

	pick<T>(from: readonly T[]): T {
		const item = from[this.roll(from.length)];
		if (item === undefined) throw new Error("nothing to pick from");
		return item;
	}
}

/** A log as a daemon might write it, and now and then one that it would not. */
export function randomLog(dice: Dice): TurnEvent[] {
	const log: Loose[] = [];
	if (dice.roll(4) === 0) log.push({ type: "queued", position: 1 + dice.roll(3) });
	if (dice.roll(10)) log.push(retrieved({ behind: dice.roll(3), notices: dice.roll(2) ? ["Take care."] : [] }));
	const steps = dice.roll(25);
	for (let step = 0; step < steps; step++) log.push(randomEvent(dice, step));
	const end = dice.roll(5);
	const text = "The answer [1].";
	if (end === 0) log.push({ type: "done", text, citations: [source(1)], notices: ["n"], usage: "9 tokens", month: "This month: 10 tokens" });
	if (end === 1) log.push({ type: "done", text, citations: [], notices: [], stopped: true, private: true });
	if (end === 2) log.push({ type: "failed", error: { code: "interrupted", message: "m", hint: "h" }, text });
	if (end === 3) log.push({ type: "failed", error: { code: "busy", message: "m", hint: "h" }, text: "", notices: ["x"] });
	return numbered(log);
}

function randomEvent(dice: Dice, step: number): Loose {
	const call = `t${1 + dice.roll(3)}`;
	const id = `w${1 + dice.roll(2)}`;
	switch (dice.roll(12)) {
		case 0:
			return { type: "waiting", text: "The server is busy." };
		case 1:
			return { type: "thinking", text: `hm${step} ` };
		case 2:
			return { type: "retract" };
		case 3:
			return { type: "tool", call, name: "search", state: "running", arguments: { query: "x" } };
		case 4: {
			const state = dice.pick(["done", "failed", "refused"] as const);
			return { type: "tool", call, name: "search", state, text: "result", sources: [source(1 + dice.roll(6))] };
		}
		case 5:
			return { type: "approval", call, name: "edit", title: "Edit", diff: "+a", arguments: { path: "A.md" } };
		case 6:
			return { type: "write", id, path: "A.md", op: "append", content: "a", if_hash: "00", kind: "note" };
		case 7: {
			const fault = dice.roll(2) ? { error: { code: "conflict", message: "m", hint: "" } } : {};
			return { type: "written", id, path: "A.md", op: "append", hash: "11", by: "client", ...fault };
		}
		case 8:
			return { type: "usage", model: "m", input_tokens: dice.roll(100), output_tokens: dice.roll(100), estimated: false };
		default:
			return { type: "token", text: `w${step} ` };
	}
}

/** Frozen all the way down, so that a change of it throws. */
export function frozen<T>(value: T): T {
	if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
		Object.freeze(value);
		Object.values(value).forEach(frozen);
	}
	return value;
}
