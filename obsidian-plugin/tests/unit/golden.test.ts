import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { daemonClient } from "../../src/daemon/client";
import { parseEvent, type TurnEvent } from "../../src/protocol/events";
import { parseFault } from "../../src/protocol/parts";
import { parsePage } from "../../src/protocol/replies";
import { isObject, type Json } from "../../src/protocol/values";
import type { Transport } from "../../src/transport/transport";
import { CALLS } from "../calls";

/** What a real daemon said; its own tests hold it to these files, so that they are the protocol. */
const FOLDER = join(import.meta.dirname, "../../../tests/golden");
const golden = (name: string): unknown => JSON.parse(readFileSync(join(FOLDER, `${name}.json`), "utf8"));
const FILES = readdirSync(FOLDER).map((file) => file.replace(/\.json$/, ""));

const TURNS = ["turn", "turn_refused", "turn_stopped", "turn_failed"];
/** Replies to requests that the plugin never makes. */
const OF_OTHERS = [
	"add_prompt", "add_vectors", "change_task", "check", "close_conversation", "digest", "models", "note", "notes", "plain_chat", "plain_index", "query", "reindex", "shutdown", "tasks", "usage", "vectors", "why",
];

/** Fields that a reply may be without, and is without in these files. */
const LEFT_OUT: Record<string, string[]> = { search: [".degraded"], related: [".degraded"] };

/** The places of everything that was read and was not said like that. */
function invented(read: unknown, said: unknown, place = ""): string[] {
	if (Array.isArray(read) && Array.isArray(said)) {
		if (read.length !== said.length) return [`${place}: ${read.length} of ${said.length}`];
		return read.flatMap((one, at) => invented(one, said[at], `${place}[${at}]`));
	}
	if (isObject(read) && isObject(said)) {
		return Object.keys(read).flatMap((name) => (name in said ? invented(read[name], said[name], `${place}.${name}`) : [`${place}.${name}`]));
	}
	// null is how the daemon says that there is none
	return read === said || (said === null && read === "") ? [] : [place];
}

function answering(reply: unknown): Transport {
	return {
		kind: "poll",
		streams: false,
		json: () => Promise.resolve(reply),
		stream: () => {
			throw new Error("this transport has no streams");
		},
	};
}

describe("the daemon's replies", () => {
	it("are all known here", () => {
		const used = Object.values(CALLS).map((call) => call.golden);
		expect([...used, ...TURNS, ...OF_OTHERS, "errors"].sort()).toEqual(FILES.sort());
	});

	it.each(Object.values(CALLS))("$golden is read whole", async ({ golden: name, send, reply }) => {
		const said = golden(name) as Json;
		const read = await send(daemonClient(answering(said)));
		if (reply === undefined) expect(read).toBeUndefined();
		else expect(invented(read, reply(said))).toEqual(LEFT_OUT[name] ?? []);
	});

	it("a page of events is read whole", () => {
		const page = golden("turn_events");
		expect(invented(parsePage(page), page)).toEqual([]);
	});

	it("errors are read whole", () => {
		const errors = golden("errors") as { body: Json }[];
		expect(errors.length).toBeGreaterThan(5);
		for (const { body } of errors) expect(invented(parseFault(body["error"]), body["error"])).toEqual([]);
	});
});

type Fields = { [Type in TurnEvent["type"]]: Record<Exclude<keyof Extract<TurnEvent, { type: Type }>, "seq" | "type">, boolean> };

/** Every field of every event, and whether it stands in these files; some are left out unless they are true. */
const FIELDS: Fields = {
	queued: { position: true },
	retrieved: {
		sources: true, closest: true, relevance: true, behind: true, query: true, notices: true, withheld: true, model: true, local: true,
		private: false,
	},
	waiting: { text: true },
	token: { text: true },
	thinking: { text: true },
	retract: {},
	tool: { call: true, name: true, state: true, arguments: true, text: true, sources: true, private: false },
	approval: { call: true, name: true, title: true, diff: true, arguments: true },
	write: { id: true, path: true, op: true, content: true, if_hash: true, kind: true },
	written: { id: true, path: true, op: true, hash: true, by: true, error: false },
	usage: { model: true, input_tokens: true, output_tokens: true, estimated: true },
	done: { text: true, citations: true, notices: true, stopped: true, private: false, usage: true, month: false },
	failed: { error: true, text: true, notices: true, usage: true, month: false },
};

describe("the daemon's events", () => {
	const lines = TURNS.flatMap((name) => golden(name) as Json[]);

	it.each(TURNS)("of %s are read whole", (name) => {
		for (const line of golden(name) as Json[]) expect(invented(parseEvent(line), line)).toEqual([]);
	});

	it.each(Object.entries(FIELDS))("%s has its fields", (type, fields) => {
		const read = lines.filter((line) => line["type"] === type).map(parseEvent);
		expect(read).not.toEqual([]);
		const seen = new Set(read.flatMap((event) => Object.keys(event ?? {})));
		for (const [field, stands] of Object.entries(fields)) expect([field, seen.has(field)]).toEqual([field, stands]);
	});

	it("are of no type that is not known", () => {
		expect(lines.filter((line) => !(String(line["type"]) in FIELDS))).toEqual([]);
	});
});
