import type * as Real from "obsidian";

/** The app's own way over the network: no page origin, no stream, no abort. Here it is Node's fetch. */
export const requestUrl: typeof Real.requestUrl = (request) => {
	const answer = send(typeof request === "string" ? { url: request } : request);
	return Object.assign(answer, {
		arrayBuffer: lazily(answer, (response) => response.arrayBuffer),
		json: lazily(answer, (response) => response.json as unknown),
		text: lazily(answer, (response) => response.text),
	});
};

export const request: typeof Real.request = async (options) => (await requestUrl(options)).text;

/** A part of the answer that may be left alone: its failure is the failure of the whole, told once. */
function lazily<T>(answer: Promise<Real.RequestUrlResponse>, pick: (response: Real.RequestUrlResponse) => T): Promise<T> {
	const part = answer.then(pick);
	part.catch(() => undefined);
	return part;
}

async function send(wanted: Real.RequestUrlParam): Promise<Real.RequestUrlResponse> {
	const headers = new Headers(wanted.headers);
	if (wanted.contentType !== undefined) headers.set("content-type", wanted.contentType);
	let response: Response;
	try {
		response = await fetch(wanted.url, { method: wanted.method ?? "GET", headers, body: wanted.body ?? null });
	} catch {
		throw new Error("net::ERR_CONNECTION_REFUSED");
	}
	const bytes = await response.arrayBuffer();
	if (response.status >= 400 && wanted.throw !== false) {
		throw Object.assign(new Error(`Request failed, status ${response.status}`), { status: response.status });
	}
	const text = new TextDecoder().decode(bytes);
	return {
		status: response.status,
		headers: Object.fromEntries(response.headers.entries()),
		arrayBuffer: bytes,
		text,
		/** Read only when asked, and throws then, as in the app. */
		get json(): unknown {
			return JSON.parse(text) as unknown;
		},
	};
}
