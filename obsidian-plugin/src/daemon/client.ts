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
/** Models may take their time over reviews, summaries and lists. */
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

	async hello(signal?: AbortSignal): Promise<protocol.Hello> {
		const found = protocol.parseHello(await this.get("/v1/hello", signal));
		if (found === null) throw new TransportError("malformed", "no tarsd answers there");
		return found;
	}

	async status(signal?: AbortSignal): Promise<protocol.Status> {
		return protocol.parseStatus(await this.get("/v1/status", signal));
	}

	// ------------------------------------------------------------------------------------------ turns

	/** Begin an answer; resolves with the turn's id at once. */
	async startTurn(request: TurnRequest, signal?: AbortSignal): Promise<string> {
		const turn = text(object(await this.post("/v1/turns", request, { signal }))["turn"]);
		if (turn === "") throw new TransportError("malformed", "the reply names no turn");
		return turn;
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
		const path = `/v1/turns/${encodeURIComponent(turn)}/events`;
		if (this.transport.streams) {
			yield* this.transport.stream({ method: "GET", path: `${path}?after=${after}`, signal });
			return;
		}
		for (let seen = after; ; ) {
			if (signal.aborted) throw aborted();
			const page = protocol.parsePage(
				await this.transport.json({ method: "GET", path: `${path}?after=${seen}&wait=${POLL_S}`, signal }),
			);
			yield* page.events;
			if (page.ended) return;
			seen = Math.max(seen, ...page.events.map(eventNumber));
		}
	}

	/** End a turn and keep what it has said. */
	async stop(turn: string): Promise<void> {
		await this.post(`/v1/turns/${encodeURIComponent(turn)}/stop`);
	}

	/** Answer a call that waits for a yes; `always` is for this tool and the rest of the conversation. */
	async approve(turn: string, call: string, answer: { allow: boolean; always: boolean }): Promise<void> {
		await this.post(`/v1/turns/${encodeURIComponent(turn)}/approvals/${encodeURIComponent(call)}`, answer);
	}

	// ------------------------------------------------------------------------------------------ writes

	/** Take a change; what is to be written is in the reply. A 409 means that it is somebody else's: leave it. */
	async claim(id: string): Promise<protocol.WriteOrder> {
		const order = protocol.parseWriteOrder(await this.post(`/v1/writes/${encodeURIComponent(id)}/claim`));
		if (order === null) throw new TransportError("malformed", "the reply is no change");
		return order;
	}

	/** Tell what became of a change that was claimed; `hash` is the SHA-256 of the note's bytes now. */
	async report(id: string, report: { ok: boolean; hash?: string; error?: string }): Promise<void> {
		await this.post(`/v1/writes/${encodeURIComponent(id)}`, report);
	}

	/** Take a change back; a 409 says that the note was changed since. */
	async undo(id: string): Promise<protocol.Undone> {
		return protocol.parseUndone(await this.post(`/v1/writes/${encodeURIComponent(id)}/undo`));
	}

	// ------------------------------------------------------------------------------------------ conversations

	async conversations(signal?: AbortSignal): Promise<protocol.ConversationSummary[]> {
		return protocol.parseConversations(await this.get("/v1/conversations", signal));
	}

	async conversation(id: string, signal?: AbortSignal): Promise<protocol.ConversationReply> {
		const found = protocol.parseConversation(await this.get(conversationPath(id), signal));
		if (found === null) throw new TransportError("malformed", "the reply is no conversation");
		return found;
	}

	async rename(id: string, title: string): Promise<void> {
		await this.transport.json({ method: "PATCH", path: conversationPath(id), body: { title } });
	}

	/** Remove a conversation from the list; its note stays. */
	async remove(id: string): Promise<void> {
		await this.transport.json({ method: "DELETE", path: conversationPath(id) });
	}

	/** A conversation is over for now: its summary is made. */
	async close(id: string): Promise<void> {
		await this.post(`${conversationPath(id)}/close`, {}, { timeout: SLOW_MS });
	}

	// ------------------------------------------------------------------------------------------ search and notes

	async search(query: string, about: { mode?: SearchMode; limit?: number } = {}, signal?: AbortSignal): Promise<protocol.Hits> {
		return protocol.parseHits(await this.post("/v1/search", { query, ...about }, { signal }));
	}

	/** Notes like the one at `path`; a 404 says that it is not indexed. */
	async related(path: string, limit: number, signal?: AbortSignal): Promise<protocol.Hits> {
		return protocol.parseHits(await this.post("/v1/related", { path, limit }, { signal }));
	}

	async notes(filters: { folder?: string; tag?: string; recent?: number } = {}): Promise<protocol.NoteRow[]> {
		const query = new URLSearchParams();
		if (filters.folder) query.set("folder", filters.folder);
		if (filters.tag) query.set("tag", filters.tag);
		if (filters.recent) query.set("recent", String(filters.recent));
		const asked = query.toString();
		return protocol.parseNotes(await this.get(`/v1/notes${asked ? `?${asked}` : ""}`)).notes;
	}

	// ------------------------------------------------------------------------------------------ memory and review

	async memory(): Promise<protocol.Memory> {
		return protocol.parseMemory(await this.get("/v1/memory"));
	}

	/** Keep a fact ("semantic") or a rule ("procedural"). */
	async remember(note: string, kind: "semantic" | "procedural" = "semantic"): Promise<protocol.MemoryChange> {
		return protocol.parseMemoryChange(await this.post("/v1/memory", { text: note, kind }));
	}

	/** Forget exactly this line. */
	async forget(line: string): Promise<protocol.MemoryChange> {
		return protocol.parseMemoryChange(await this.post("/v1/memory/forget", { line }));
	}

	async undoMemory(): Promise<protocol.Undone> {
		return protocol.parseUndone(await this.post("/v1/memory/undo"));
	}

	/** Keep a reply as good or wrong. */
	async feedback(turn: string, verdict: "good" | "wrong", note = ""): Promise<protocol.MemoryChange> {
		return protocol.parseMemoryChange(await this.post("/v1/feedback", { turn, verdict, note }));
	}

	async review(): Promise<protocol.Review> {
		return protocol.parseReview(await this.post("/v1/review", {}, { timeout: SLOW_MS }));
	}

	async applyReview(review: string, decisions: ReviewDecision[]): Promise<{ written: string[]; diff: string }> {
		return protocol.parseApplied(await this.post("/v1/review/apply", { review, decisions }));
	}

	async models(): Promise<protocol.Models> {
		return protocol.parseModels(await this.transport.json({ method: "GET", path: "/v1/models", timeout: SLOW_MS }));
	}

	private get(path: string, signal?: AbortSignal): Promise<unknown> {
		return this.transport.json({ method: "GET", path, ...(signal ? { signal } : {}) });
	}

	private post(path: string, body: unknown = {}, more: { signal?: AbortSignal | undefined; timeout?: number } = {}): Promise<unknown> {
		const call: Call = { method: "POST", path, body };
		if (more.signal) call.signal = more.signal;
		if (more.timeout !== undefined) call.timeout = more.timeout;
		return this.transport.json(call);
	}
}

function conversationPath(id: string): string {
	return `/v1/conversations/${encodeURIComponent(id)}`;
}

/** Whether an error may be gone at the next try. */
function passes(error: unknown): boolean {
	if (!(error instanceof TransportError)) return false;
	if (error.kind === "http") return (error.status ?? 0) >= 500;
	return error.kind !== "unauthorized" && error.kind !== "not-allowed" && error.kind !== "malformed";
}
