import { guard } from "./guard";
import { readJson, readLines, replyError } from "./reply";
import { aborted, isAbort, TransportError, type Call, type Transport, type Trouble } from "./transport";

/** A call as it goes out; `path` is still below the address. */
export interface Outgoing {
	method: string;
	path: string;
	headers: Record<string, string>;
	body?: string;
}

/** The beginning of a reply, and its bytes as they come. */
export interface Incoming {
	status: number;
	pieces: Pick<AsyncIterator<Uint8Array>, "next">;
}

/** What is different between the ways of speaking HTTP; `token` is "" where none is needed. */
export interface HttpWay extends Pick<Transport, "kind" | "streams"> {
	token: string;
	/** Send, and resolve with the beginning of the reply. The signal ends request and reply. */
	send: (request: Outgoing, signal: AbortSignal) => Promise<Incoming>;
	/** What an error of this way means; `begun` when the reply had. */
	told: (error: unknown, begun: boolean) => Trouble;
}

/** How long a JSON reply may take when the call says nothing else. */
const REPLY_MS = 30_000;
/** How long a stream may be silent; the daemon sends a heartbeat every 15 seconds. */
const SILENCE_MS = 45_000;

/** What all ways of speaking HTTP have in common: bounds, errors of the daemon, JSON and lines. */
export function overHttp({ kind, streams, token, send, told }: HttpWay): Transport {
	async function* exchange(call: Call, accept: string, total: number, silence: number): AsyncGenerator<Uint8Array> {
		const { method, path, body, signal } = call;
		if (signal?.aborted) throw aborted();
		const controller = new AbortController();
		const stop = (): void => {
			controller.abort();
		};
		const { step, release } = guard(signal, total, silence, stop);
		let begun = false;
		try {
			const headers = { accept: `application/${accept}`, ...(token && { authorization: `Bearer ${token}` }) };
			const request: Outgoing = { method, path, headers };
			if (body !== undefined) {
				request.headers["content-type"] = "application/json";
				request.body = JSON.stringify(body);
			}
			const { status, pieces } = await step(send(request, controller.signal));
			begun = true;
			const failed = status >= 300;
			const decoder = new TextDecoder();
			let error = "";
			for (;;) {
				const next = await step(pieces.next());
				if (next.done) break;
				if (failed) error += decoder.decode(next.value, { stream: true });
				else yield next.value;
			}
			if (failed) throw replyError(status, error);
		} catch (error) {
			if (error instanceof TransportError || isAbort(error)) throw error;
			throw new TransportError(told(error, begun), String(error), { cause: error });
		} finally {
			release();
			stop();
		}
	}
	return {
		kind,
		streams,
		json: (call) => readJson(exchange(call, "json", call.timeout ?? REPLY_MS, 0)),
		stream: (call) => readLines(exchange(call, "x-ndjson", 0, streams ? SILENCE_MS : 0)),
	};
}
