import { LONGEST, ndjson } from "../protocol/ndjson";
import { parseFault } from "../protocol/parts";
import { object } from "../protocol/values";
import { TransportError } from "./transport";

/** The JSON value of a reply that comes in pieces. */
export async function readJson(pieces: AsyncIterable<Uint8Array>): Promise<unknown> {
	const decoder = new TextDecoder();
	let text = "";
	for await (const piece of pieces) {
		text += decoder.decode(piece, { stream: true });
		if (text.length > LONGEST) throw new TransportError("malformed", "the reply is too long");
	}
	return decoded(() => JSON.parse(text) as unknown);
}

/**
 * The lines of a stream, heartbeats left out. It has ended when the daemon says so, and is cut when the bytes end
 * before that, so that a part is never taken for the whole.
 */
export async function* readLines(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<unknown> {
	const push = ndjson();
	for await (const piece of pieces) {
		for (const value of decoded(() => push(piece))) {
			const { type } = object(value);
			if (type === "end") return;
			if (type === "error") throw httpError(500, value);
			if (type !== "heartbeat") yield value;
		}
	}
	throw new TransportError("cut", "the stream ended before its end line");
}

/** The error that a reply with this status is. */
export function replyError(status: number, body: string): TransportError {
	let value: unknown = null;
	try {
		value = JSON.parse(body);
	} catch {
		// a proxy's page, or nothing: the status has to do
	}
	return httpError(status, value);
}

function httpError(status: number, value: unknown): TransportError {
	const body = parseFault(object(value)["error"]) ?? undefined;
	return new TransportError(status === 401 ? "unauthorized" : "http", body?.message || `status ${status}`, { status, body });
}

function decoded<T>(read: () => T): T {
	try {
		return read();
	} catch (cause) {
		throw new TransportError("malformed", "this is not JSON", { cause });
	}
}
