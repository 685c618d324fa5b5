import type { Fault } from "../protocol/parts";
import { object } from "../protocol/values";

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
	readonly status: number | undefined;
	readonly body: Fault | undefined;

	constructor(readonly kind: Trouble, message: string, more: { status?: number; body?: Fault | undefined; cause?: unknown } = {}) {
		super(message, more);
		this.status = more.status;
		this.body = more.body;
	}
}

/** What an aborted call rejects with. */
export function aborted(): DOMException {
	return new DOMException("Stopped", "AbortError");
}

/** Whether an error only says that the caller itself gave up; by name, as it may come from another window. */
export function isAbort(error: unknown): boolean {
	return object(error)["name"] === "AbortError";
}

/** Takes an error that only says so, and throws every other. */
export function unlessAborted(error: unknown): void {
	if (!isAbort(error)) throw error;
}
