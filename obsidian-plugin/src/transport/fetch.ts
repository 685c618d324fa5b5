import { addressText, type Address } from "./address";
import { overHttp } from "./http";
import type { Transport } from "./transport";

/** Over the web's own `fetch`: streams on phones, where the daemon allows the app's origin (CORS). */
export function fetchTransport(address: Address, token: string): Transport {
	return overHttp({
		kind: "fetch",
		streams: true,
		token,
		async send({ path, ...request }, signal) {
			const { status, body } = await window.fetch(addressText(address) + path, {
				...request,
				signal,
				cache: "no-store",
				credentials: "omit",
				redirect: "error",
			});
			const reader = body?.getReader();
			// not every web view can iterate over a body
			return { status, pieces: { next: async () => (await reader?.read()) ?? { done: true, value: undefined } } };
		},
		// the web tells pages no more than "Failed to fetch"
		told: (_, begun) => (begun ? "cut" : "unreachable"),
	});
}
