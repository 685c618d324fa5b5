import type { RequestUrlParam, RequestUrlResponse } from "obsidian";
import { addressText, type Address } from "./address";
import { overHttp } from "./http";
import type { Transport } from "./transport";

/** The slice of `requestUrl` that is needed; given, so that this file runs without the app. */
export type RequestUrl = (request: RequestUrlParam) => Promise<Pick<RequestUrlResponse, "status" | "arrayBuffer">>;

/**
 * Over the app's native requests, for where `fetch` may not go: no streams, so turns are followed by long polls. A
 * request cannot be withdrawn either: an aborted one is only waited for no longer.
 */
export function pollTransport(address: Address, token: string, request: RequestUrl): Transport {
	return overHttp({
		kind: "poll",
		streams: false,
		token,
		async send({ path, ...call }) {
			const { status, arrayBuffer } = await request({ url: addressText(address) + path, ...call, throw: false });
			const whole = [new Uint8Array(arrayBuffer)].values();
			return { status, pieces: { next: () => Promise.resolve(whole.next()) } };
		},
		told: () => "unreachable",
	});
}
