import type { Client } from "../src/daemon/client";
import type { Json } from "../src/protocol/values";

/** A request of the plugin: the golden file that holds the daemon's reply, and the part of it that is given back. */
export interface ClientCall {
	golden: string;
	send(client: Client): Promise<unknown>;
	/** The reply as the client gives it back; without it, nothing of the reply is read. */
	reply?(golden: Json): unknown;
}

const same = (golden: Json): Json => golden;

/** Every method of the client, with every field that it can send. */
export const CALLS: Record<Exclude<keyof Client, "transport">, ClientCall> = {
	hello: { golden: "hello", send: (client) => client.hello(), reply: same },
	status: { golden: "status", send: (client) => client.status(), reply: same },
	startTurn: {
		golden: "start_turn",
		send: (client) =>
			client.startTurn({ conversation: "c1", message: "m", request_id: "r1", notes: ["N.md"], selection: "s", writer: "client", approvals: true }),
		reply: ({ turn }) => turn,
	},
	follow: {
		golden: "turn_events",
		send: async (client) => {
			const events: unknown[] = [];
			for await (const event of client.follow("t1", 3, new AbortController().signal)) events.push(event);
			return events;
		},
		reply: ({ events }) => events,
	},
	stop: { golden: "stop_turn", send: (client) => client.stop("t1") },
	approve: { golden: "approve", send: (client) => client.approve("t1", "call", { allow: true, always: false }) },
	prompts: { golden: "prompts", send: (client) => client.prompts(), reply: ({ prompts }) => prompts },
	claim: { golden: "claim_write", send: (client) => client.claim("w1"), reply: same },
	report: { golden: "report_write", send: (client) => client.report("w1", { ok: false, hash: "ab", error: "no" }) },
	undo: { golden: "undo_write", send: (client) => client.undo("w1"), reply: same },
	conversations: { golden: "conversations", send: (client) => client.conversations(), reply: ({ conversations }) => conversations },
	conversation: {
		golden: "conversation",
		send: (client) => client.conversation("c1"),
		// the list has the number of turns under this name, and so has the client
		reply: ({ turns, ...rest }) => ({ ...rest, turns: Array.isArray(turns) ? turns.length : turns, history: turns }),
	},
	save: { golden: "save_conversation", send: (client) => client.save("c1"), reply: (golden) => (golden as { note: string }).note },
	rename: { golden: "rename_conversation", send: (client) => client.rename("c1", "Title") },
	remove: { golden: "delete_conversation", send: (client) => client.remove("c1") },
	search: { golden: "search", send: (client) => client.search("q", { mode: "fts", limit: 3 }), reply: same },
	related: { golden: "related", send: (client) => client.related("N.md", 3), reply: same },
	memory: { golden: "memory", send: (client) => client.memory(), reply: same },
	remember: { golden: "remember", send: (client) => client.remember("t", "procedural"), reply: same },
	forget: { golden: "forget", send: (client) => client.forget("t"), reply: same },
	undoMemory: { golden: "undo_memory", send: (client) => client.undoMemory(), reply: same },
	feedback: { golden: "feedback", send: (client) => client.feedback("t1", "wrong", "why"), reply: same },
	review: { golden: "review", send: (client) => client.review(), reply: same },
	applyReview: {
		golden: "apply_review",
		send: (client) => client.applyReview("review-1", [{ id: "p1", action: "edit", text: "t" }]),
		reply: same,
	},
};
