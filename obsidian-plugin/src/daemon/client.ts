import * as protocol from "../protocol/events";
import { eventNumber, isLast, parseEvent, type TurnEvent } from "../protocol/events";
import { object, text } from "../protocol/values";
import { aborted, isAbort, TransportError, type Call, type Transport } from "../transport/transport";
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
/** Models may take their time over a review. */
const SLOW_MS = 180_000;

/**
 * The daemon's routes as methods. All of them reject with a `TransportError`; a daemon that refuses in its own words
 * is one of kind "http" with `body`. `wait` is the pause between two tries.
 */
export class Client {
	constructor(
		readonly transport: Transport,
		private readonly wait: Wait = pause,
	) {}

	hello(signal?: AbortSignal): Promise<protocol.Hello> {
		return this.get(at("hello"), signal).then(sound(protocol.parseHello));
	}

	status(signal?: AbortSignal): Promise<protocol.Status> {
		return this.get(at("status"), signal).then(protocol.parseStatus);
	}

	// ------------------------------------------------------------------------------------------ turns

	/** Begin an answer; resolves with the turn's id at once. */
	startTurn(request: TurnRequest, signal?: AbortSignal): Promise<string> {
		return this.post(at("turns"), request, { signal }).then(sound((reply) => text(object(reply)["turn"]) || null));
	}

	/**
	 * The events of a turn after number `after`, each once and in order, until it has ended. A lost connection is
	 * picked up again at the last number for as long as it takes. Returns quietly when `signal` is aborted; throws only
	 * what trying again cannot mend: an unknown turn, a wrong token.
	 */
	async *follow(turn: string, after: number, signal: AbortSignal): AsyncGenerator<TurnEvent> {
		let seen = after;
		let tries = 0;
		let gapAt = -1;
		while (!signal.aborted) {
			try {
				for await (const value of this.read(turn, seen, signal)) {
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
				if (isAbort(error) || !passes(error)) throw error;
			}
			try {
				await this.wait(retryDelay(tries++), signal);
			} catch (error) {
				if (!isAbort(error)) throw error;
			}
		}
	}

	/** The events after a number as the daemon sends them, until the turn has ended. */
	private async *read(turn: string, after: number, signal: AbortSignal): AsyncGenerator<unknown> {
		const path = at("turns", turn, "events");
		if (this.transport.streams) {
			yield* this.transport.stream({ method: "GET", path: `${path}?after=${after}`, signal });
			return;
		}
		for (let seen = after; ; ) {
			if (signal.aborted) throw aborted();
			const page = protocol.parsePage(await this.get(`${path}?after=${seen}&wait=${POLL_S}`, signal));
			yield* page.events;
			if (page.ended) return;
			seen = Math.max(seen, ...page.events.map(eventNumber));
		}
	}

	/** End a turn and keep what it has said. */
	async stop(turn: string): Promise<void> {
		await this.post(at("turns", turn, "stop"));
	}

	/** Answer a call that waits for a yes; `always` is for this tool and the rest of the conversation. */
	async approve(turn: string, call: string, answer: { allow: boolean; always: boolean }): Promise<void> {
		await this.post(at("turns", turn, "approvals", call), answer);
	}

	// ------------------------------------------------------------------------------------------ writes

	/** Take a change; what is to be written is in the reply. A 409 means that it is somebody else's: leave it. */
	claim(id: string): Promise<protocol.WriteOrder> {
		return this.post(at("writes", id, "claim")).then(sound(protocol.parseWriteOrder));
	}

	/** Tell what became of a change that was claimed; `hash` is the SHA-256 of the note's bytes now. */
	async report(id: string, report: { ok: boolean; hash?: string; error?: string }): Promise<void> {
		await this.post(at("writes", id), report);
	}

	/** Take a change back; a 409 says that the note was changed since. */
	undo(id: string): Promise<protocol.Undone> {
		return this.post(at("writes", id, "undo")).then(protocol.parseUndone);
	}

	// ------------------------------------------------------------------------------------------ conversations

	conversations(signal?: AbortSignal): Promise<protocol.ConversationSummary[]> {
		return this.get(at("conversations"), signal).then(protocol.parseConversations);
	}

	conversation(id: string, signal?: AbortSignal): Promise<protocol.ConversationReply> {
		return this.get(at("conversations", id), signal).then(sound(protocol.parseConversation));
	}

	async rename(id: string, title: string): Promise<void> {
		await this.transport.json({ method: "PATCH", path: at("conversations", id), body: { title } });
	}

	/** Remove a conversation from the list; its note stays. */
	async remove(id: string): Promise<void> {
		await this.transport.json({ method: "DELETE", path: at("conversations", id) });
	}

	// ------------------------------------------------------------------------------------------ search

	search(query: string, about: { mode?: SearchMode; limit?: number } = {}, signal?: AbortSignal): Promise<protocol.Hits> {
		return this.post(at("search"), { query, ...about }, { signal }).then(protocol.parseHits);
	}

	/** Notes like the one at `path`; a 404 says that it is not indexed. */
	related(path: string, limit: number, signal?: AbortSignal): Promise<protocol.Hits> {
		return this.post(at("related"), { path, limit }, { signal }).then(protocol.parseHits);
	}

	// ------------------------------------------------------------------------------------------ memory and review

	memory(): Promise<protocol.Memory> {
		return this.get(at("memory")).then(protocol.parseMemory);
	}

	/** Keep a fact ("semantic") or a rule ("procedural"). */
	remember(text: string, kind: "semantic" | "procedural" = "semantic"): Promise<protocol.MemoryChange> {
		return this.post(at("memory"), { text, kind }).then(protocol.parseMemoryChange);
	}

	/** Forget exactly this line. */
	forget(line: string): Promise<protocol.MemoryChange> {
		return this.post(at("memory", "forget"), { line }).then(protocol.parseMemoryChange);
	}

	undoMemory(): Promise<protocol.Undone> {
		return this.post(at("memory", "undo")).then(protocol.parseUndone);
	}

	/** Keep a reply as good or wrong. */
	feedback(turn: string, verdict: "good" | "wrong", note = ""): Promise<protocol.MemoryChange> {
		return this.post(at("feedback"), { turn, verdict, note }).then(protocol.parseMemoryChange);
	}

	review(): Promise<protocol.Review> {
		return this.post(at("review"), {}, { timeout: SLOW_MS }).then(protocol.parseReview);
	}

	applyReview(review: string, decisions: ReviewDecision[]): Promise<{ written: string[]; diff: string }> {
		return this.post(at("review", "apply"), { review, decisions }).then(protocol.parseApplied);
	}

	private get(path: string, signal?: AbortSignal): Promise<unknown> {
		return this.transport.json({ method: "GET", path, signal });
	}

	private post(path: string, body: unknown = {}, more: Pick<Call, "signal" | "timeout"> = {}): Promise<unknown> {
		return this.transport.json({ method: "POST", path, body, ...more });
	}
}

/** The path of a route; what a person or the daemon named is one part of it, whatever is in it. */
function at(...parts: string[]): string {
	return `/v1/${parts.map(encodeURIComponent).join("/")}`;
}

/** As `read`, for a reply that has to be whole. */
function sound<T>(read: (value: unknown) => T | null): (value: unknown) => T {
	return (value) => {
		const found = read(value);
		if (found === null) throw new TransportError("malformed", "this is no reply of tarsd");
		return found;
	};
}

/** Whether an error may be gone at the next try. */
function passes(error: unknown): boolean {
	if (!(error instanceof TransportError)) return false;
	if (error.kind === "http") return (error.status ?? 0) >= 500;
	return !["unauthorized", "not-allowed", "malformed"].includes(error.kind);
}
