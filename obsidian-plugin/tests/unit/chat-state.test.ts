import { describe, expect, it } from "vitest";
import type { ConversationReply, TurnEvent } from "../../src/protocol/events";
import {
	accepted,
	answered,
	asked,
	empty,
	ended,
	fromConversation,
	latest,
	reduce,
	rejected,
	removed,
	replayed,
	titleOf,
	undone,
	unfinished,
	type ChatState,
	type Message,
} from "../../src/chat/state";
import { Dice, frozen, numbered, randomLog, retrieved, source, type Loose } from "./chat-events";

const START = frozen(accepted(asked(empty("c"), "r1", { question: "Where is Otto?", notes: ["A.md"], at: 5 }), "r1", "T"));

function run(events: readonly TurnEvent[], from: ChatState = START, turn = "T"): ChatState {
	return events.reduce((state, event) => frozen(reduce(state, turn, event)), from);
}

function after(...events: Loose[]): Message {
	const message = latest(run(numbered(events)));
	if (!message) throw new Error("no message");
	return message;
}

/** The daemon's own rule for the text of a turn. */
function textOf(events: readonly TurnEvent[]): string {
	let said = "";
	for (const event of events) {
		if (event.type === "retract") said = "";
		if (event.type === "token") said += event.text;
		if (event.type === "done") return event.text;
		if (event.type === "failed" && event.text) return event.text;
	}
	return said;
}

const LOGS = Array.from({ length: 100 }, (_, seed) => frozen(randomLog(new Dice(seed))));

describe("any log of events", () => {
	it("gives the same state when it is cut anywhere and read again from anywhere before", () => {
		for (const log of LOGS) {
			const whole = run(log);
			for (let cut = 0; cut <= log.length; cut++) {
				const first = run(log.slice(0, cut));
				for (let again = 0; again <= cut; again++) expect(run(log.slice(again), first)).toEqual(whole);
			}
		}
	}, 60_000);

	it("gives the same state after a trip through JSON", () => {
		for (const [seed, log] of LOGS.entries()) {
			const cut = new Dice(seed).roll(log.length + 1);
			const kept = JSON.parse(JSON.stringify(run(log.slice(0, cut)))) as ChatState;
			expect(run(log.slice(cut), frozen(kept))).toEqual(run(log));
		}
	});

	it("is changed by no event that was seen, in whatever order those come", () => {
		for (const [seed, log] of LOGS.entries()) {
			const dice = new Dice(1000 + seed);
			let state = START;
			log.forEach((event, index) => {
				state = frozen(reduce(state, "T", event));
				for (let n = dice.roll(4); n > 0; n--) {
					const old = log[dice.roll(index + 1)];
					if (old) expect(reduce(state, "T", old)).toBe(state);
				}
			});
			expect(state).toEqual(run(log));
		}
	});

	it("is not disturbed by another turn's events in between", () => {
		for (const [seed, log] of LOGS.entries()) {
			const other = LOGS[(seed + 1) % LOGS.length] ?? [];
			const both = accepted(asked(START, "r2", { question: "And?", at: 6 }), "r2", "U");
			const dice = new Dice(2000 + seed);
			let [mixed, i, j] = [both, 0, 0];
			while (i < log.length || j < other.length) {
				const own = j >= other.length || (i < log.length && dice.roll(2) === 0);
				const event = own ? log[i++] : other[j++];
				if (event) mixed = frozen(reduce(mixed, own ? "T" : "U", event));
			}
			expect(mixed).toEqual(run(other, run(log, both), "U"));
		}
	});

	it("has the text that the daemon would keep, at every event", () => {
		for (const log of LOGS) {
			for (let cut = 0; cut <= log.length; cut++) {
				const message = latest(run(log.slice(0, cut)));
				const expected = textOf(log.slice(0, cut));
				expect(message?.text).toBe(expected);
			}
		}
	});

	it("leaves nothing running or waiting once it has ended", () => {
		for (const log of LOGS) {
			const message = latest(run(log));
			if (!message || !ended(message)) continue;
			expect(message.waiting).toBe("");
			expect(message.tools.filter((tool) => tool.state === "running")).toEqual([]);
			expect(message.approvals.filter((one) => one.state === "asked" || one.state === "answered")).toEqual([]);
		}
	});

	it("knows every source once, in the order of numbers", () => {
		for (const log of LOGS) {
			const numbers = latest(run(log))?.sources.map((one) => one.n) ?? [];
			expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
		}
	});

	it("is the same whether it was followed from the start or found in a reopened conversation", () => {
		for (const log of LOGS) {
			const live = run(log);
			const past = { id: "T", message: "Where is Otto?", notes: ["A.md"], at: 5, model: "", private: false, usage: "", tools: [] };
			const turn = { ...past, state: "running" as const, text: textOf(log), sources: [], citations: [], error: null };
			const reopened = fromConversation(reply(turn));
			expect(run(log, frozen(reopened)).messages).toEqual(live.messages);
			const message = latest(live);
			if (!message || !ended(message)) continue;
			const whole = fromConversation(reply({ ...turn, state: "done" as const }));
			expect(run(log, frozen(whole))).toBe(whole);
			expect(replayed(whole, "T", log).messages).toEqual(live.messages);
		}
	});
});

describe("an event", () => {
	it("may leave numbers out before it, for unknown ones are", () => {
		const [one, , three] = numbered([{ type: "token", text: "a" }, { type: "token", text: "b" }, { type: "token", text: "c" }]);
		if (one && three) expect(latest(run([one, three]))).toMatchObject({ text: "ac", seq: 3 });
		expect.assertions(1);
	});

	it("queues, and begins", () => {
		expect(after({ type: "queued", position: 2 })).toMatchObject({ state: "queued", position: 2 });
		expect(after({ type: "queued", position: 2 }, retrieved())).toMatchObject({ state: "answering", position: 0 });
	});

	it("brings what was found", () => {
		const message = after(retrieved({ behind: 2, withheld: ["B"], notices: ["N"], local: false, private: true }));
		expect(message).toMatchObject({ behind: 2, withheld: ["B"], notices: ["N"], modelIsLocal: false, private: true });
		expect(message.model).toBe("ollama:small");
		expect(message.sources.map((one) => one.n)).toEqual([1, 2]);
	});

	it("tells near misses apart, which come without numbers", () => {
		const closest = [source(0, { path: "A.md" }), source(0, { path: "B.md" })];
		expect(after(retrieved({ sources: [], closest })).closest.map((one) => [one.n, one.path])).toEqual([[1, "A.md"], [2, "B.md"]]);
	});

	it("says why nothing comes, until something does", () => {
		expect(after(retrieved(), { type: "waiting", text: "Busy." }).waiting).toBe("Busy.");
		expect(after({ type: "waiting", text: "Busy." }, { type: "token", text: "a" }).waiting).toBe("");
		expect(after({ type: "waiting", text: "Busy." }, { type: "thinking", text: "a" }).waiting).toBe("");
	});

	it("takes back what was no answer, and keeps what earlier rounds said", () => {
		const events: Loose[] = [{ type: "token", text: "one" }, { type: "token", text: "hmm" }, { type: "retract" }];
		expect(after(...events).text).toBe("");
		expect(after(...events, { type: "token", text: "one" }, { type: "token", text: "two" }).text).toBe("onetwo");
	});

	it("shows a call from its beginning to its end in one place, with what it found", () => {
		const message = after(
			retrieved(),
			{ type: "tool", call: "t1", name: "search", state: "running", arguments: { query: "x" } },
			{ type: "tool", call: "t2", name: "read", state: "running", arguments: {} },
			{ type: "tool", call: "t1", name: "search", state: "done", text: "found", sources: [source(2), source(3)] },
		);
		expect(message.tools.map((tool) => [tool.call, tool.state])).toEqual([["t1", "done"], ["t2", "running"]]);
		expect(message.tools[0]).toMatchObject({ arguments: { query: "x" }, text: "found" });
		expect(message.sources.map((one) => one.n)).toEqual([1, 2, 3]);
	});

	it("asks for a yes, and tells what became of it", () => {
		const asks: Loose = { type: "approval", call: "t1", name: "edit", title: "Edit A", diff: "+a", arguments: {} };
		const told = (state: "done" | "failed" | "refused"): Loose => ({ type: "tool", call: "t1", name: "edit", state });
		expect(after(asks).approvals).toMatchObject([{ call: "t1", title: "Edit A", state: "asked" }]);
		expect(after(asks, told("done")).approvals[0]?.state).toBe("allowed");
		expect(after(asks, told("failed")).approvals[0]?.state).toBe("allowed");
		expect(after(asks, told("refused")).approvals[0]?.state).toBe("refused");
		expect(after(asks, { type: "done", text: "", citations: [], notices: [], stopped: true }).approvals[0]?.state).toBe("lapsed");
		const clicked = answered(run(numbered([asks])), "T", "t1");
		expect(latest(clicked)?.approvals[0]?.state).toBe("answered");
		expect(latest(run(numbered([asks, told("refused")]), clicked))?.approvals[0]?.state).toBe("refused");
	});

	it("shows a change of a note, whoever made it, and that it was taken back", () => {
		const write: Loose = { type: "write", id: "w", path: "A.md", op: "create", content: "x", if_hash: null, kind: "session" };
		const written: Loose = { type: "written", id: "w", path: "A.md", op: "create", hash: "1", by: "daemon" };
		expect(after(write).writes).toMatchObject([{ state: "asked", kind: "session" }]);
		expect(after(write, written).writes).toMatchObject([{ state: "written", kind: "session", hash: "1", by: "daemon" }]);
		expect(after(written).writes).toMatchObject([{ state: "written", kind: "" }]);
		const error = { code: "conflict", message: "m", hint: "" };
		expect(after(write, { ...written, error }).writes).toMatchObject([{ state: "failed", error }]);
		const back = undone(run(numbered([write, written])), "T", "w");
		expect(latest(back)?.writes[0]?.state).toBe("undone");
	});

	it("ends the answer in one of four ways, and keeps what was said", () => {
		const said: Loose = { type: "token", text: "half" };
		const done: Extract<Loose, { type: "done" }> = { type: "done", text: "whole", citations: [], notices: ["N"] };
		expect(after(said, done)).toMatchObject({ state: "done", text: "whole", notices: ["N"] });
		expect(after(said, { ...done, stopped: true }).state).toBe("stopped");
		const error = { code: "interrupted", message: "m", hint: "h" };
		expect(after(said, { type: "failed", error, text: "half" })).toMatchObject({ state: "interrupted", error });
		const other = { ...error, code: "provider_unreachable" };
		expect(after(said, { type: "failed", error: other, text: "" })).toMatchObject({ state: "failed", text: "half" });
		expect(after(retrieved({ notices: ["N"] }), { type: "failed", error, text: "" }).notices).toEqual(["N"]);
	});

	it("is nothing but counted after the end", () => {
		const done: Loose = { type: "done", text: "whole", citations: [], notices: [] };
		expect(after(done, { type: "token", text: "more" })).toMatchObject({ text: "whole", state: "done", seq: 2 });
	});

	it("of a turn that nobody asked here appears at the end", () => {
		const state = run(numbered([{ type: "token", text: "a" }]), START, "other");
		expect(state.messages.map((message) => message.id)).toEqual(["T", "other"]);
	});
});

describe("the person's part", () => {
	it("asks at once, and once", () => {
		const state = asked(empty("c"), "r", { question: "  Where\nis Otto? ", selection: "Otto", at: 7 });
		expect(state.title).toBe("Where is Otto?");
		expect(latest(state)).toMatchObject({ local: true, state: "retrieving", selection: "Otto", at: 7, seq: 0 });
		expect(asked(state, "r", { question: "again", at: 8 })).toBe(state);
		expect(asked(state, "s", { question: "More?", at: 8 }).title).toBe("Where is Otto?");
	});

	it("keeps its place when the turn has a name, and what came under that name before", () => {
		const question = asked(empty("c"), "r", { question: "Where?", notes: ["A.md"], at: 7 });
		const early = run(numbered([{ type: "token", text: "a" }]), question, "T");
		const state = accepted(early, "r", "T");
		expect(state.messages).toHaveLength(1);
		expect(latest(state)).toMatchObject({ id: "T", local: false, question: "Where?", notes: ["A.md"], text: "a", seq: 1 });
		expect(accepted(state, "nothing", "T")).toBe(state);
		expect(latest(accepted(question, "r", "r"))).toMatchObject({ id: "r", local: false });
	});

	it("shows a question that never arrived as failed, and may take it out", () => {
		const question = asked(empty("c"), "r", { question: "Where?", at: 7 });
		const error = { code: "not-running", message: "m", hint: "h" };
		expect(latest(rejected(question, "r", error))).toMatchObject({ state: "failed", error });
		expect(unfinished(rejected(question, "r", error))).toEqual([]);
		expect(removed(question, "r").messages).toEqual([]);
		expect(removed(question, "s")).toBe(question);
	});

	it("knows what is still to be followed", () => {
		expect(unfinished(START).map((message) => message.id)).toEqual(["T"]);
		expect(unfinished(asked(START, "r2", { question: "q", at: 1 })).map((message) => message.id)).toEqual(["T"]);
		expect(unfinished(run(numbered([{ type: "done", text: "", citations: [], notices: [] }])))).toEqual([]);
	});

	it("names nothing that is not there without harm", () => {
		expect(answered(START, "none", "t1")).toBe(START);
		expect(undone(START, "none", "w")).toBe(START);
		expect(rejected(START, "none", { code: "", message: "", hint: "" })).toBe(START);
	});
});

describe("a reopened conversation", () => {
	it("has the ended turns whole", () => {
		const error = { code: "busy", message: "m", hint: "h" };
		const state = fromConversation(
			reply({
				id: "T",
				message: "Where?",
				notes: [],
				at: 5,
				state: "failed",
				text: "half",
				sources: [source(1)],
				citations: [],
				error,
				model: "m",
				private: true,
				usage: "9 tokens",
				tools: [
					{ name: "search", state: "done" },
					{ name: "edit", state: "running" },
				],
			}),
		);
		expect(state).toMatchObject({ conversation: "c", title: "Title", note: "Sessions/Title.md" });
		expect(latest(state)).toMatchObject({ state: "failed", text: "half", error, model: "m", private: true, usage: "9 tokens" });
		expect(latest(state)?.tools.map((tool) => [tool.call, tool.state])).toEqual([["t1", "done"], ["t2", "stopped"]]);
	});
});

describe("titleOf", () => {
	it("is one line, cut at a word", () => {
		expect(titleOf("a\n b")).toBe("a b");
		expect(titleOf("word ".repeat(30))).toBe("word ".repeat(16).trim() + "…");
		expect(titleOf("x".repeat(100))).toBe("x".repeat(80) + "…");
		expect(titleOf("🙂".repeat(90))).toBe("🙂".repeat(80) + "…");
	});
});

function reply(turn: ConversationReply["history"][number]): ConversationReply {
	const summary = { id: "c", title: "Title", created: 1, updated: 2, turns: 1 };
	return { ...summary, note: "Sessions/Title.md", history: [turn] };
}
