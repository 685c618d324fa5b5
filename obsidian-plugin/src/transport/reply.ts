import { CutLine, NdjsonDecoder } from "../protocol/ndjson";
import { parseFault } from "../protocol/parts";
import { isObject, object } from "../protocol/values";
import { TransportError, type Call } from "./transport";

/** Longest JSON reply in bytes. */
const LONGEST = 64 * 1024 * 1024;

/** The headers of a call; `token` is "" where none is needed. */
export function headers(call: Call, token: string, accept: string): Record<string, string> {
	return {
		accept,
		...(call.body === undefined ? {} : { "content-type": "application/json" }),
		...(token === "" ? {} : { authorization: `Bearer ${token}` }),
	};
}

/** The JSON value of a reply that comes in pieces. */
export async function readJson(pieces: AsyncIterable<Uint8Array>): Promise<unknown> {
	const decoder = new TextDecoder();
	const parts: string[] = [];
	let size = 0;
	for await (const piece of pieces) {
		size += piece.byteLength;
		if (size > LONGEST) throw new TransportError("malformed", "the reply is too long");
		parts.push(decoder.decode(piece, { stream: true }));
	}
	parts.push(decoder.decode());
	return parse(parts.join(""));
}

/**
 * The lines of a stream, heartbeats left out. It has ended when the daemon says so, and is cut when the bytes end
 * before that, so that a part is never taken for the whole.
 */
export async function* readLines(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<unknown> {
	const decoder = new NdjsonDecoder();
	for await (const piece of pieces) {
		for (const value of decode(() => decoder.push(piece))) {
			const type = object(value)["type"];
			if (type === "end") return;
			if (type === "error") throw httpError(500, value);
			if (type !== "heartbeat") yield value;
		}
	}
	decode(() => {
		decoder.end();
		return [];
	});
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
	const fault = isObject(value) ? parseFault(value["error"]) : null;
	const message = fault?.message || `status ${status}`;
	return new TransportError(status === 401 ? "unauthorized" : "http", message, { status, ...(fault ? { body: fault } : {}) });
}

function parse(text: string): unknown {
	try {
		return JSON.parse(text) as unknown;
	} catch (cause) {
		throw new TransportError("malformed", "the reply is not JSON", { cause });
	}
}

function decode(read: () => unknown[]): unknown[] {
	try {
		return read();
	} catch (cause) {
		if (cause instanceof CutLine) throw new TransportError("cut", cause.message, { cause });
		throw new TransportError("malformed", "a line of the stream is not JSON", { cause });
	}
}
