import type { RequestUrlParam, RequestUrlResponse } from "obsidian";
import { addressText, type Address } from "./address";
import { Guard } from "./guard";
import { headers, payload, readJson, readLines, replyError } from "./reply";
import { aborted, isAbort, REPLY_MS, TransportError, type Call, type Transport } from "./transport";

/** The slice of `requestUrl` that is needed; given, so that this file runs without the app. */
export type RequestUrl = (request: RequestUrlParam) => Promise<Pick<RequestUrlResponse, "status" | "arrayBuffer">>;

/**
 * Over the app's native requests, for where `fetch` may not go: no streams, so turns are followed by long polls. A
 * request cannot be withdrawn either: an aborted one is only waited for no longer.
 */
export class PollTransport implements Transport {
	readonly kind = "poll";
	readonly streams = false;

	constructor(
		private readonly address: Address,
		private readonly token: string,
		private readonly request: RequestUrl,
	) {}

	json(call: Call): Promise<unknown> {
		return readJson(this.exchange(call, "application/json", call.timeout ?? REPLY_MS));
	}

	stream(call: Call): AsyncIterable<unknown> {
		return readLines(this.exchange(call, "application/x-ndjson", call.timeout ?? 0));
	}

	private async *exchange(call: Call, accept: string, total: number): AsyncGenerator<Uint8Array> {
		if (call.signal?.aborted) throw aborted();
		const guard = new Guard(call.signal, total, 0, () => undefined);
		try {
			const body = payload(call);
			const response = await guard.step(
				this.request({
					url: addressText(this.address) + call.path,
					method: call.method,
					headers: headers(call, this.token, accept),
					throw: false,
					...(body === undefined ? {} : { body }),
				}),
			);
			const bytes = new Uint8Array(response.arrayBuffer);
			if (response.status >= 300) throw replyError(response.status, new TextDecoder().decode(bytes));
			yield bytes;
		} catch (error) {
			if (error instanceof TransportError || isAbort(error)) throw error;
			throw new TransportError("unreachable", String(error), { cause: error });
		} finally {
			guard.release();
		}
	}
}
