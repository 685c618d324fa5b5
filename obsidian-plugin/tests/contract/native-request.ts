import { request } from "node:http";
import type { RequestUrl } from "../../src/transport/poll";

/** What `requestUrl` does on a phone, with Node: no CORS, no streams, the whole reply or an error. */
export const nativeRequest: RequestUrl = (asked) =>
	new Promise((resolve, reject) => {
		const body = typeof asked.body === "string" ? Buffer.from(asked.body) : null;
		const headers = { ...asked.headers, ...(body === null ? {} : { "content-length": String(body.length) }) };
		const options = { method: asked.method ?? "GET", headers, agent: false };
		const sent = request(asked.url, options, (response) => {
			const chunks: Buffer[] = [];
			response.on("data", (chunk: Buffer) => chunks.push(chunk));
			response.on("error", reject);
			response.on("end", () => {
				const all = Buffer.concat(chunks);
				const copy = new Uint8Array(all.length);
				copy.set(all);
				resolve({ status: response.statusCode ?? 0, arrayBuffer: copy.buffer });
			});
		});
		sent.on("error", reject);
		sent.end(body ?? undefined);
	});
