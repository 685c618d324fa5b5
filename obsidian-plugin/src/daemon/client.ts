import * as protocol from "../protocol/events";
import { eventNumber, isLast, parseEvent, type TurnEvent } from "../protocol/events";
import { object, text } from "../protocol/values";
import { aborted, TransportError, unlessAborted, type Call, type Transport } from "../transport/transport";
import { pause, retryDelay, type Wait } from "./backoff";

/** A question. `request_id` is chosen once per question, so that sending it again starts nothing twice. */
export interface TurnRequest {
	conversation: string;
	message: string;
	request_id: string;
	notes?: string[];
	selection?: string;
	writer: "client";
	approvals: true;
}

export type SearchMode = "hybrid" | "fts" | "vec";

/** What is to become of a proposal of a review. */
export interface ReviewDecision {
	id: string;
	action: "apply" | "edit" | "drop";
	text?: string;
}

/** Seconds that a long poll may wait in the daemon. */
const POLL_S = 20;
/** A daemon that is well says at once who it is; a model may take its time over a review. */
const HELLO_MS = 5_000;
const REVIEW_MS = 180_000;

/** A fact, or a rule for answers. */
export type MemoryKind = "semantic" | "procedural";

/**
 * The daemon's routes as functions. All of them reject with a `TransportError`; a daemon that refuses in its own words
 * is one of kind "http" with `body`.
 */
export interface Client {
	readonly transport: Transport;
	hello(signal?: AbortSignal): Promise<protocol.Hello>;
	status(signal?: AbortSignal): Promise<protocol.Status>;

	// ------------------------------------------------------------------------------------------ turns

	/** Begin an answer; resolves with the turn's id at once. */
	startTurn(request: TurnRequest, signal?: AbortSignal): Promise<string>;
	/**
	 * The events of a turn after number `after`, each once and in order, until it has ended. A lost connection is
	 * picked up again at the last number for as long as it takes. Returns quietly when `signal` is aborted; throws
	 * only what trying again cannot mend: an unknown turn, a wrong token.
	 */
	follow(turn: string, after: number, signal: AbortSignal): AsyncGenerator<TurnEvent>;
	/** End a turn and keep what it has said. */
	stop(turn: string): Promise<void>;
	/** Answer a call that waits for a yes; `always` is for this tool and the rest of the conversation. */
	approve(turn: string, call: string, answer: { allow: boolean; always: boolean }): Promise<void>;

	/** The person's own prompts: notes that are commands. */
	prompts(): Promise<protocol.Prompt[]>;

	// ------------------------------------------------------------------------------------------ writes

	/** Take a change; what is to be written is in the reply. A 409 means that it is somebody else's: leave it. */
	claim(id: string): Promise<protocol.WriteOrder>;
	/** Tell what became of a change that was claimed; `hash` is the SHA-256 of the note's bytes now. */
	report(id: string, report: { ok: boolean; hash?: string; error?: string }): Promise<void>;
	/** Take a change back; a 409 says that the note was changed since. */
	undo(id: string): Promise<protocol.Undone>;

	// ------------------------------------------------------------------------------------------ conversations

	conversations(signal?: AbortSignal): Promise<protocol.ConversationSummary[]>;
	conversation(id: string, signal?: AbortSignal): Promise<protocol.ConversationReply>;
	rename(id: string, title: string): Promise<void>;
	/** Make a note of it, also of one question that was answered without a model; its path, "" where none is made. */
	save(id: string): Promise<string>;
	/** Remove a conversation from the list; its note stays. */
	remove(id: string): Promise<void>;

	// ------------------------------------------------------------------------------------------ search

	search(query: string, about?: { mode?: SearchMode; limit?: number }, signal?: AbortSignal): Promise<protocol.Hits>;
	/** Notes like the one at `path`; a 404 says that it is not indexed. */
	related(path: string, limit: number, signal?: AbortSignal): Promise<protocol.Hits>;

	// ------------------------------------------------------------------------------------------ memory and review

	memory(): Promise<protocol.Memory>;
	/** Keep a fact, or a rule. */
	remember(text: string, kind?: MemoryKind): Promise<protocol.MemoryChange>;
	/** Forget exactly this line. */
	forget(line: string): Promise<protocol.MemoryChange>;
	undoMemory(): Promise<protocol.Undone>;
	/** Keep a reply as good or wrong. */
	feedback(turn: string, verdict: "good" | "wrong", note?: string): Promise<protocol.MemoryChange>;
	review(): Promise<protocol.Review>;
	applyReview(review: string, decisions: ReviewDecision[]): Promise<protocol.Applied>;
}

/** A client over this transport; `wait` is the pause between two tries. */
export function daemonClient(transport: Transport, wait: Wait = pause): Client {
	type More = Pick<Call, "body" | "signal" | "timeout">;
	const call =
		(method: Call["method"]) =>
		<T>(read: (reply: unknown) => T, path: string, more?: More): Promise<T> =>
			transport.json({ method, path, ...more }).then(read);
	const get = call("GET");
	const send = call("POST");
	const post = <T>(read: (reply: unknown) => T, path: string, body: unknown = {}, more?: More): Promise<T> =>
		send(read, path, { body, ...more });

	/** The events after a number as the daemon sends them, until the turn has ended. */
	async function* read(turn: string, after: number, signal: AbortSignal): AsyncGenerator<unknown> {
		const path = at("turns", turn, "events");
		if (transport.streams) {
			yield* transport.stream({ method: "GET", path: `${path}?after=${after}`, signal });
			return;
		}
		for (let seen = after; ; ) {
			if (signal.aborted) throw aborted();
			const page = await get(protocol.parsePage, `${path}?after=${seen}&wait=${POLL_S}`, { signal });
			yield* page.events;
			if (page.ended) return;
			seen = Math.max(seen, ...page.events.map(eventNumber));
		}
	}

	return {
		transport,

		hello: (signal) => get(sound(protocol.parseHello), at("hello"), { signal, timeout: HELLO_MS }),
		status: (signal) => get(protocol.parseStatus, at("status"), { signal }),

		startTurn: (request, signal) => post(sound((reply) => text(object(reply)["turn"]) || null), at("turns"), request, { signal }),
		async *follow(turn, after, signal) {
			let seen = after;
			let tries = 0;
			let gapAt = -1;
			while (!signal.aborted) {
				try {
					for await (const value of read(turn, seen, signal)) {
						const seq = eventNumber(value);
						if (seq <= seen) continue;
						// a gap is asked for once more; if it is still there, the daemon has lost these events itself
						if (seq > seen + 1 && gapAt !== seen) {
							gapAt = seen;
							throw new TransportError("cut", `event ${seen + 1} is missing`);
						}
						seen = seq;
						tries = 0;
						const event = parseEvent(value);
						if (event === null) continue;
						yield event;
						if (isLast(event)) return;
					}
					return;
				} catch (error) {
					if (signal.aborted) return;
					if (!passes(error)) throw error;
				}
				await wait(retryDelay(tries++), signal).catch(unlessAborted);
			}
		},
		stop: (turn) => post(nothing, at("turns", turn, "stop")),
		approve: (turn, call, answer) => post(nothing, at("turns", turn, "approvals", call), answer),

		prompts: () => get(protocol.parsePrompts, at("prompts")).then((reply) => reply.prompts),

		claim: (id) => post(sound(protocol.parseWriteOrder), at("writes", id, "claim")),
		report: (id, report) => post(nothing, at("writes", id), report),
		undo: (id) => post(protocol.parseUndone, at("writes", id, "undo")),

		conversations: (signal) => get(protocol.parseConversations, at("conversations"), { signal }),
		conversation: (id, signal) => get(sound(protocol.parseConversation), at("conversations", id), { signal }),
		rename: (id, title) => call("PATCH")(nothing, at("conversations", id), { body: { title } }),
		save: (id) => post(protocol.parseSaved, at("conversations", id, "save")),
		remove: (id) => call("DELETE")(nothing, at("conversations", id)),

		search: (query, about = {}, signal) => post(protocol.parseHits, at("search"), { query, ...about }, { signal }),
		related: (path, limit, signal) => post(protocol.parseHits, at("related"), { path, limit }, { signal }),

		memory: () => get(protocol.parseMemory, at("memory")),
		remember: (text, kind = "semantic") => post(protocol.parseMemoryChange, at("memory"), { text, kind }),
		forget: (line) => post(protocol.parseMemoryChange, at("memory", "forget"), { line }),
		undoMemory: () => post(protocol.parseUndone, at("memory", "undo")),
		feedback: (turn, verdict, note = "") => post(protocol.parseMemoryChange, at("feedback"), { turn, verdict, note }),
		review: () => post(protocol.parseReview, at("review"), {}, { timeout: REVIEW_MS }),
		applyReview: (review, decisions) => post(protocol.parseApplied, at("review", "apply"), { review, decisions }),
	};
}

/** For a reply of which only its coming counts. */
function nothing(): void {
	// no more than that
}

/** The path of a route; what a person or the daemon named is one part of it, whatever is in it. */
function at(...parts: string[]): string {
	return `/v1/${parts.map(encodeURIComponent).join("/")}`;
}

/** As `read`, for a reply that has to be whole. */
function sound<T>(read: (value: unknown) => T | null): (value: unknown) => T {
	return (value) => {
		const found = read(value);
		if (found === null) throw new TransportError("malformed", "this is not a reply from tarsd");
		return found;
	};
}

/** Whether an error may be gone at the next try. */
function passes(error: unknown): boolean {
	if (!(error instanceof TransportError)) return false;
	if (error.kind === "http") return (error.status ?? 0) >= 500;
	return !["unauthorized", "not-allowed", "malformed"].includes(error.kind);
}
