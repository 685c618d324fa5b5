import { describe, expect, it } from "vitest";
import * as protocol from "../../src/protocol/events";
import { eventNumber, isLast, parseEvent } from "../../src/protocol/events";
import { judge } from "../../src/protocol/version";

const SOURCE = {
	n: 1, path: "A/B.md", title: "B", heading: "H", link: "[[A/B#H]]", start_line: 1, end_line: 2, relevance: 0.5,
	collection: "", attached: false,
};
const FAULT = { code: "model_busy", message: "Busy.", hint: "Wait." };

/** One whole event of every type, as the daemon sends it. */
const WHOLE: Record<string, unknown>[] = [
	{ seq: 1, type: "queued", position: 2 },
	{
		seq: 1, type: "retrieved", sources: [SOURCE], closest: [], relevance: 0.5, behind: 3, query: "q", notices: ["n"],
		withheld: ["Private"], model: "fake", local: true, private: true,
	},
	{ seq: 1, type: "waiting", text: "w" },
	{ seq: 1, type: "token", text: "" },
	{ seq: 1, type: "thinking", text: "hm" },
	{ seq: 1, type: "retract" },
	{ seq: 1, type: "tool", call: "t1", name: "note_read", state: "running", arguments: { name: "B" } },
	{ seq: 1, type: "tool", call: "t1", name: "note_read", state: "done", text: "…", sources: [SOURCE], private: true },
	{ seq: 1, type: "tool", call: "t1", name: "note_read", state: "failed", text: "No." },
	{ seq: 1, type: "approval", call: "t1", name: "note_append", title: "Add to B", diff: "+x", arguments: { name: "B" } },
	{ seq: 1, type: "write", id: "w1", path: "B.md", op: "append", content: "x", if_hash: "ab", kind: "note" },
	{ seq: 1, type: "write", id: "w1", path: "B.md", op: "create", content: "", if_hash: null, kind: "session" },
	{ seq: 1, type: "written", id: "w1", path: "B.md", op: "modify", hash: "cd", by: "client" },
	{ seq: 1, type: "written", id: "w1", path: "B.md", op: "modify", hash: "", by: "daemon", error: FAULT },
	{ seq: 1, type: "usage", model: "m", input_tokens: 1, output_tokens: 2, estimated: true },
	{ seq: 1, type: "done", text: "t", citations: [SOURCE], notices: [], stopped: true, private: true, usage: "9 tokens", month: "This month: 10 tokens" },
	{ seq: 1, type: "failed", error: FAULT, text: "half", notices: ["n"] },
];

/** What a hostile or broken sender may put anywhere. */
const ODD: unknown[] = [
	undefined, null, true, 0, -1, 1.5, Number.NaN, Number.MAX_VALUE, "", "text", [], [null, 1, "x", {}, []], {}, { n: "1" },
	{ toString: null }, [{ n: 1 }], [{ n: 1, path: 2 }], [{ n: -1, path: "x" }],
];

describe("parseEvent", () => {
	it.each(WHOLE)("reads $type whole", (event) => {
		expect(parseEvent(event)).toEqual(event);
		// over the wire, with what a later version may add
		expect(parseEvent({ ...(JSON.parse(JSON.stringify(event)) as object), later: 1 })).toEqual(event);
	});

	it("never throws, and keeps the types, whatever stands in a field", () => {
		for (const event of WHOLE) {
			for (const field of [...Object.keys(event), "notices", "sources", "error", "private", "stopped"]) {
				for (const odd of ODD) {
					const parsed = parseEvent({ ...event, [field]: odd });
					if (parsed === null) continue;
					expect(parsed.seq).toBeGreaterThan(0);
					for (const [name, value] of Object.entries(parsed)) {
						const known = event[name];
						if (known !== undefined && known !== null && value !== null) expect([name, typeof value]).toEqual([name, typeof known]);
						if (Array.isArray(known)) expect(Array.isArray(value)).toBe(true);
					}
				}
			}
		}
		for (const odd of ODD) expect(parseEvent(odd)).toBeNull();
	});

	it("gives null for what it does not know, and still its number", () => {
		expect(parseEvent({ seq: 9, type: "from-the-future" })).toBeNull();
		expect(parseEvent({ seq: 9, type: "toString" })).toBeNull();
		expect(eventNumber({ seq: 9, type: "from-the-future" })).toBe(9);
		for (const odd of ODD) expect(eventNumber({ seq: odd })).toBe(odd === Number.MAX_VALUE ? Number.MAX_VALUE : 0);
	});

	it("takes no write that could not be carried out safely", () => {
		const write = { seq: 1, type: "write", id: "w", path: "B.md", op: "modify", content: "x", if_hash: "ab", kind: "note" };
		for (const broken of [{ if_hash: undefined }, { if_hash: 5 }, { content: null }, { path: "" }, { op: "delete" }, { id: "" }]) {
			expect(parseEvent({ ...write, ...broken })).toBeNull();
		}
	});

	it("knows what a turn ends with", () => {
		const last = WHOLE.map(parseEvent).filter((event) => event !== null).filter(isLast);
		expect(last.map((event) => event.type)).toEqual(["done", "failed"]);
	});
});

describe("replies", () => {
	it("are read without throwing, whatever comes", () => {
		const parsers = [
			protocol.parseHello, protocol.parseStatus, protocol.parseHits, protocol.parseConversations,
			protocol.parseConversation, protocol.parseMemory, protocol.parseMemoryChange,
			protocol.parseReview, protocol.parseApplied, protocol.parseUndone, protocol.parsePage,
			protocol.parseWriteOrder, protocol.parseFault, protocol.parseSources,
		];
		const names = ["hits", "notes", "conversations", "turns", "facts", "providers", "models", "proposals", "written", "events", "vault", "chat", "id"];
		for (const parse of parsers) {
			for (const odd of ODD) {
				parse(odd);
				for (const name of names) parse({ name: "tarsd", protocol: 1, id: "x", [name]: odd });
			}
		}
	});

	it("leave out of lists what cannot be used", () => {
		expect(protocol.parseHits({ hits: [{ title: "no path" }, { path: "A.md" }, 5] }).hits).toMatchObject([{ path: "A.md", title: "A.md", why: [] }]);
		expect(protocol.parseMemory({ facts: [{ line: "" }, { line: "x" }] })).toMatchObject({ enabled: true, facts: [{ line: "x" }], rules: [] });
		expect(protocol.parseHello({ name: "nginx" })).toBeNull();
		expect(protocol.parseConversation({ id: "c", turns: [{ id: "t", state: "?" }] })).toMatchObject({ turns: 1, history: [{ id: "t", state: "interrupted" }] });
		expect(protocol.parsePage({ events: [1, { seq: 1 }], ended: true })).toEqual({ events: [1, { seq: 1 }], ended: true });
	});
});

describe("judge", () => {
	const hello = protocol.parseHello({ name: "tarsd", protocol: 1, vault: { id: "0123456789ab" } });
	it.each([
		[1, "0123456789ab", "ok"],
		[1, "", "ok"],
		[1, "ba9876543210", "wrong-vault"],
		[0, "0123456789ab", "too-old"],
		[2, "0123456789ab", "too-new"],
		[2, "ba9876543210", "too-new"],
	] as const)("protocol %d, vault “%s”: %s", (version, vault, verdict) => {
		if (hello === null) throw new Error("no hello");
		expect(judge({ ...hello, protocol: version }, vault)).toBe(verdict);
	});
});
