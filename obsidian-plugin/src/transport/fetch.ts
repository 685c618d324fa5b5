import { addressText, type Address } from "./address";
import { Guard } from "./guard";
import { headers, payload, readJson, readLines, replyError } from "./reply";
import { aborted, isAbort, REPLY_MS, SILENCE_MS, TransportError, type Call, type Transport } from "./transport";

/** Over the web's own `fetch`: streams on phones, where the daemon allows the app's origin (CORS). */
export class FetchTransport implements Transport {
	readonly kind = "fetch";
	readonly streams = true;

	constructor(
		private readonly address: Address,
		private readonly token: string,
	) {}

	json(call: Call): Promise<unknown> {
		return readJson(this.exchange(call, "application/json", call.timeout ?? REPLY_MS, 0));
	}

	stream(call: Call): AsyncIterable<unknown> {
		return readLines(this.exchange(call, "application/x-ndjson", 0, SILENCE_MS));
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
			const response = await guard.step(
				window.fetch(addressText(this.address) + call.path, {
					method: call.method,
					headers: headers(call, this.token, accept),
					signal: controller.signal,
					cache: "no-store",
					credentials: "omit",
					redirect: "error",
					...(call.body === undefined ? {} : { body: payload(call) }),
				}),
			);
			begun = true;
			if (!response.ok) throw replyError(response.status, await guard.step(response.text()));
			const reader = response.body?.getReader();
			if (reader === undefined) return;
			for (;;) {
				const next = await guard.step(reader.read());
				if (next.done) return;
				yield next.value;
			}
		} catch (error) {
			if (error instanceof TransportError || isAbort(error)) throw error;
			// the web tells pages no more than "Failed to fetch"
			throw new TransportError(begun ? "cut" : "unreachable", String(error), { cause: error });
		} finally {
			guard.release();
			stop();
		}
	}
}
