import type { RequestUrlParam, RequestUrlResponse } from "obsidian";
import { addressText, type Address } from "./address";
import { HttpTransport, type Incoming, type Outgoing } from "./http";
import type { Trouble } from "./transport";

/** The slice of `requestUrl` that is needed; given, so that this file runs without the app. */
export type RequestUrl = (request: RequestUrlParam) => Promise<Pick<RequestUrlResponse, "status" | "arrayBuffer">>;

/**
 * Over the app's native requests, for where `fetch` may not go: no streams, so turns are followed by long polls. A
 * request cannot be withdrawn either: an aborted one is only waited for no longer.
 */
export class PollTransport extends HttpTransport {
	readonly kind = "poll";
	readonly streams = false;

	constructor(
		private readonly address: Address,
		token: string,
		private readonly request: RequestUrl,
	) {
		super(token);
	}

	protected async send({ path, method, headers, body }: Outgoing): Promise<Incoming> {
		const { status, arrayBuffer } = await this.request({
			url: addressText(this.address) + path,
			method,
			headers,
			throw: false,
			...(body === undefined ? {} : { body }),
		});
		const whole = [new Uint8Array(arrayBuffer)].values();
		return { status, pieces: { next: () => Promise.resolve(whole.next()) } };
	}

	protected told(): Trouble {
		return "unreachable";
	}
}
