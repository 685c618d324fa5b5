import { Guard } from "./guard";
import { headers, readJson, readLines, replyError } from "./reply";
import { aborted, isAbort, REPLY_MS, SILENCE_MS, TransportError, type Call, type Kind, type Transport } from "./transport";

/** A call as it goes out; `path` is still below the address. */
export interface Outgoing {
	method: string;
	path: string;
	headers: Record<string, string>;
	body: string | undefined;
}

/** The beginning of a reply, and its bytes as they come. */
export interface Incoming {
	status: number;
	pieces: Pick<AsyncIterator<Uint8Array>, "next">;
}

/** What the three ways of speaking HTTP have in common: bounds, errors of the daemon, JSON and lines. */
export abstract class HttpTransport implements Transport {
	abstract readonly kind: Kind;
	abstract readonly streams: boolean;

	constructor(private readonly token: string) {}

	/** Send, and resolve with the beginning of the reply. The signal ends request and reply. */
	protected abstract send(request: Outgoing, signal: AbortSignal): Promise<Incoming>;

	/** What an error of this way means; `begun` when the reply had. */
	protected abstract told(error: unknown, begun: boolean): TransportError["kind"];

	json(call: Call): Promise<unknown> {
		return readJson(this.exchange(call, "application/json", call.timeout ?? REPLY_MS, 0));
	}

	stream(call: Call): AsyncIterable<unknown> {
		return readLines(this.exchange(call, "application/x-ndjson", 0, this.streams ? SILENCE_MS : 0));
	}

	private async *exchange(call: Call, accept: string, total: number, silence: number): AsyncGenerator<Uint8Array> {
		if (call.signal?.aborted) throw aborted();
		const controller = new AbortController();
		const stop = (): void => {
			controller.abort();
		};
		const guard = new Guard(call.signal, total, silence, stop);
		let begun = false;
		try {
			const { method, path } = call;
			const body = call.body === undefined ? undefined : JSON.stringify(call.body);
			const request = { method, path, headers: headers(call, this.token, accept), body };
			const { status, pieces } = await guard.step(this.send(request, controller.signal));
			begun = true;
			const failed = status >= 300;
			const decoder = new TextDecoder();
			let error = "";
			for (;;) {
				const next = await guard.step(pieces.next());
				if (next.done) break;
				if (failed) error += decoder.decode(next.value, { stream: true });
				else yield next.value;
			}
			if (failed) throw replyError(status, error + decoder.decode());
		} catch (error) {
			if (error instanceof TransportError || isAbort(error)) throw error;
			throw new TransportError(this.told(error, begun), String(error), { cause: error });
		} finally {
			guard.release();
			stop();
		}
	}
}
