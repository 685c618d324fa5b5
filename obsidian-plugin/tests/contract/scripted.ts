import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export const TOKEN = "a-token-of-the-test";
export const ORIGIN = "app://obsidian.md";

/** How the next replies to "events" are given: in one piece, byte by byte, cut, in pages that skip, or left open. */
export interface Manner {
	bytes?: boolean;
	/** Break the connection inside the line after this many. */
	cutAfter?: number;
	/** Leave the connection open after this many lines. */
	hangAfter?: number;
	/** Break the connection between two lines, after this many. */
	shortAfter?: number;
	/** Begin this many events too early. */
	repeat?: number;
	/** Leave out this event, as a broken proxy might. */
	skip?: number;
}

/** The events of the scripted turn; every character class that a chunk may cut is in them. */
export const EVENTS: Record<string, unknown>[] = [
	{ seq: 1, type: "retrieved", sources: [source(1)], closest: [], relevance: 0.9, behind: 0, query: "tea", notices: [], withheld: [], model: "fake", local: true },
	{ seq: 2, type: "token", text: "Grüße — " },
	{ seq: 3, type: "token", text: "日本語の茶 🍵" },
	{ seq: 4, type: "from-the-future", text: "nobody knows this type" },
	{ seq: 5, type: "token", text: " and a line\nbreak  " },
	{ seq: 6, type: "usage", input_tokens: 10, output_tokens: 4 },
	{ seq: 7, type: "done", text: "Grüße — 日本語の茶 🍵 and a line\nbreak", citations: [source(1)], notices: [] },
];

function source(n: number): Record<string, unknown> {
	return {
		n, path: "Tee/Grün.md", title: "Grün", heading: "", link: "[[Tee/Grün]]", start_line: 1, end_line: 3, relevance: 0.9,
		collection: "", attached: false,
	};
}

/** A daemon that does as it is told. `manners` are used up one by one; `closed` counts connections left by the reader. */
export class Scripted {
	readonly manners: Manner[] = [];
	readonly asked: { method: string; url: string; body: string; headers: IncomingMessage["headers"] }[] = [];
	closed = 0;
	/** The long poll holds its breath for as long as this is set. */
	pollHeld = false;
	private readonly server: Server;
	private readonly waiting: (() => void)[] = [];

	constructor(private readonly token: string) {
		this.server = createServer((request, response) => {
			const chunks: Buffer[] = [];
			request.on("data", (chunk: Buffer) => chunks.push(chunk));
			request.on("end", () => {
				this.answer(request, response, Buffer.concat(chunks).toString());
			});
		});
	}

	/** Listen on a socket file, or on a free port of this machine; resolves with the address. */
	listen(socketPath?: string): Promise<string> {
		return new Promise((resolve) => {
			const ready = (): void => {
				resolve(socketPath ?? `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`);
			};
			if (socketPath === undefined) this.server.listen(0, "127.0.0.1", ready);
			else this.server.listen(socketPath, ready);
		});
	}

	close(): Promise<void> {
		return new Promise((resolve) => {
			this.server.closeAllConnections();
			this.server.close(() => {
				resolve();
			});
		});
	}

	/** Resolves when a reader has left a connection that was left open. */
	left(): Promise<void> {
		return this.closed > 0 ? Promise.resolve() : new Promise((resolve) => this.waiting.push(resolve));
	}

	private answer(request: IncomingMessage, response: ServerResponse, body: string): void {
		const url = new URL(request.url ?? "/", "http://tarsd");
		const method = request.method ?? "";
		if (request.headers.origin === ORIGIN) {
			response.setHeader("access-control-allow-origin", ORIGIN);
			response.setHeader("vary", "Origin");
			response.setHeader("access-control-allow-headers", "authorization, content-type");
			response.setHeader("access-control-allow-methods", "GET, POST, PATCH, DELETE");
		}
		if (method === "OPTIONS") {
			response.writeHead(204).end();
			return;
		}
		this.asked.push({ method, url: request.url ?? "", body, headers: request.headers });
		if (this.token !== "" && request.headers.authorization !== `Bearer ${this.token}`) {
			fault(response, 401, "unauthorized", "A token is required.", "See tarsd token.");
			return;
		}
		if (url.pathname === "/v1/hello") json(response, 200, HELLO);
		else if (url.pathname === "/v1/turns/t1/events") this.events(url, response);
		else if (url.pathname === "/v1/turns/broken/events") stream(response).end('{"seq":1,"type":"token","text":"a"}\n<html>\n');
		else if (url.pathname === "/v1/turns/fails/events") {
			stream(response).end(`${JSON.stringify({ type: "error", error: { code: "index_unavailable", message: "Gone.", hint: "Wait." } })}\n`);
		} else if (url.pathname === "/v1/echo") json(response, 200, { method, body: body === "" ? null : (JSON.parse(body) as unknown) });
		else if (url.pathname === "/v1/slow") return;
		else if (url.pathname === "/v1/cut") {
			response.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
			response.write('{"part":');
			response.socket?.destroySoon();
		} else if (url.pathname === "/v1/page") response.writeHead(502, { "content-type": "text/html" }).end("<h1>Bad gateway</h1>");
		else if (url.pathname === "/v1/notjson") response.writeHead(200).end("<html>hello</html>");
		else fault(response, 404, "not_found", "There is no such turn.", "Ask for another.");
	}

	private events(url: URL, response: ServerResponse): void {
		const after = Number(url.searchParams.get("after") ?? 0);
		const manner = this.manners.shift() ?? {};
		const events = EVENTS.slice(Math.max(0, after - (manner.repeat ?? 0))).filter((event) => event["seq"] !== manner.skip);
		if (url.searchParams.has("wait")) this.page(events, manner, response);
		else void this.lines(events, manner, response);
	}

	private page(events: Record<string, unknown>[], manner: Manner, response: ServerResponse): void {
		if (this.pollHeld) return;
		if (manner.cutAfter !== undefined) {
			response.socket?.destroy();
			return;
		}
		const shown = manner.hangAfter === undefined ? events : events.slice(0, manner.hangAfter);
		json(response, 200, { events: shown, ended: shown.length === events.length });
	}

	private async lines(events: Record<string, unknown>[], manner: Manner, response: ServerResponse): Promise<void> {
		stream(response);
		response.on("close", () => {
			if (response.writableEnded) return;
			this.closed += 1;
			for (const resolve of this.waiting.splice(0)) resolve();
		});
		const all = events.map((event) => `${JSON.stringify(event)}\n`);
		all.unshift('{"type":"heartbeat"}\n');
		let text = all.join("");
		if (manner.cutAfter !== undefined) text = `${all.slice(0, manner.cutAfter + 1).join("")}{"seq":`;
		else if (manner.shortAfter !== undefined) text = all.slice(0, manner.shortAfter + 1).join("");
		else if (manner.hangAfter !== undefined) text = all.slice(0, manner.hangAfter + 1).join("");
		else text += '{"type":"end"}\n';
		const raw = Buffer.from(text);
		if (manner.bytes) for (let at = 0; at < raw.length; at += 1) await wrote(response, raw.subarray(at, at + 1));
		else await wrote(response, raw);
		if (manner.cutAfter !== undefined) response.socket?.destroySoon();
		else if (manner.hangAfter === undefined) response.end();
	}
}

export const HELLO = {
	name: "tarsd", version: "0.1.0", protocol: 1, vault: { id: "0123456789ab", name: "Notes", path: "/home/ada/Notes" },
	collections: [], chat_model: "fake", embedding_model: "table", features: ["search"],
};

function wrote(response: ServerResponse, piece: Uint8Array): Promise<void> {
	return new Promise((resolve) => {
		response.write(piece, () => {
			resolve();
		});
	});
}

function stream(response: ServerResponse): ServerResponse {
	return response.writeHead(200, { "content-type": "application/x-ndjson" });
}

function json(response: ServerResponse, status: number, value: unknown): void {
	response.writeHead(status, { "content-type": "application/json" }).end(`${JSON.stringify(value)}\n`);
}

function fault(response: ServerResponse, status: number, code: string, message: string, hint: string): void {
	json(response, status, { error: { code, message, hint } });
}
