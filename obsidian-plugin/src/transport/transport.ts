import type { Fault } from "../protocol/parts";

export type Kind = "unix" | "tcp" | "fetch" | "poll";

/** One request. `timeout` bounds a whole JSON reply in milliseconds, 0 for none; streams end by the signal. */
export interface Call {
	method: "GET" | "POST" | "PATCH" | "DELETE";
	path: string;
	body?: unknown;
	signal?: AbortSignal | undefined;
	timeout?: number;
}

/**
 * A way to the daemon. Every failure is a `TransportError`, except that an aborted call rejects with an `AbortError`.
 * `stream` gives the lines of an NDJSON reply without heartbeats, and returns only when the daemon said that this was
 * the end; leaving the loop early closes the connection. Without `streams` the lines come all at once, at the end.
 */
export interface Transport {
	readonly kind: Kind;
	readonly streams: boolean;
	json(call: Call): Promise<unknown>;
	stream(call: Call): AsyncIterable<unknown>;
}

/**
 * not-running: no socket there. refused: nobody listens. not-allowed: the system, or the folder's rights, forbid it.
 * unauthorized: a token is missing or wrong. unreachable: no way to that host. cut: the connection broke off.
 * http: the daemon answered with an error (`status`, `body`). malformed: this is not how the daemon talks.
 */
export type Trouble =
	| "not-running" | "refused" | "not-allowed" | "unauthorized" | "unreachable" | "timeout" | "cut" | "http" | "malformed";

/** What keeps a call from being answered; the message is for logs, `daemon/failures.ts` has the words for people. */
export class TransportError extends Error {
	readonly status?: number;
	readonly body?: Fault;

	constructor(readonly kind: Trouble, message: string, more: { status?: number; body?: Fault; cause?: unknown } = {}) {
		super(message, { cause: more.cause });
		this.name = "TransportError";
		if (more.status !== undefined) this.status = more.status;
		if (more.body !== undefined) this.body = more.body;
	}
}

/** How long a JSON reply may take when the call says nothing else. */
export const REPLY_MS = 30_000;

/** How long a stream may be silent; the daemon sends a heartbeat every 15 seconds. */
export const SILENCE_MS = 45_000;

/** What an aborted call rejects with. */
export function aborted(): DOMException {
	return new DOMException("Stopped", "AbortError");
}

/** Whether an error only says that the caller itself gave up; by name, as it may come from another window. */
export function isAbort(error: unknown): boolean {
	return typeof error === "object" && error !== null && "name" in error && error.name === "AbortError";
}
