import { addressText, type Address } from "./address";
import { HttpTransport, type Incoming, type Outgoing } from "./http";
import type { Trouble } from "./transport";

/** Over the web's own `fetch`: streams on phones, where the daemon allows the app's origin (CORS). */
export class FetchTransport extends HttpTransport {
	readonly kind = "fetch";
	readonly streams = true;

	constructor(
		private readonly address: Address,
		token: string,
	) {
		super(token);
	}

	protected async send({ path, body, ...request }: Outgoing, signal: AbortSignal): Promise<Incoming> {
		const response = await window.fetch(addressText(this.address) + path, {
			...request,
			body: body ?? null,
			signal,
			cache: "no-store",
			credentials: "omit",
			redirect: "error",
		});
		const reader = response.body?.getReader();
		return {
			status: response.status,
			// not every web view can iterate over a body
			pieces: { next: async () => (await reader?.read()) ?? { done: true, value: undefined } },
		};
	}

	protected told(_: unknown, begun: boolean): Trouble {
		// the web tells pages no more than "Failed to fetch"
		return begun ? "cut" : "unreachable";
	}
}
