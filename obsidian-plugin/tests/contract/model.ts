import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** A step of a scripted model: words, or a call of a tool; with `hold` it pauses after the first until `release`. */
export interface Said {
	text?: string[];
	call?: { name: string; arguments: Record<string, unknown> };
	hold?: boolean;
}

/** A model behind an OpenAI-like address that says what it was told, one entry of `replies` per request. */
export class Model {
	readonly replies: Said[] = [];
	/** The bodies of what it was asked, as they came. */
	readonly requests: string[] = [];
	private readonly server: Server;
	private waiting: (() => void)[] = [];
	private released = false;

	constructor() {
		this.server = createServer((request, response) => {
			let body = "";
			request.setEncoding("utf8");
			request.on("data", (piece: string) => (body += piece));
			request.on("end", () => {
				if (!(request.url ?? "").endsWith("/chat/completions")) {
					response.writeHead(200, { "content-type": "application/json" });
					response.end(JSON.stringify({ object: "list", data: [{ id: "scripted", object: "model" }] }));
					return;
				}
				this.requests.push(body);
				void this.say(this.replies.shift() ?? { text: ["ok"] }, (piece) => response.write(piece)).then(() => response.end());
				response.writeHead(200, { "content-type": "text/event-stream" });
			});
		});
	}

	/** Listen; resolves with the lines of a config that make this the chat model. */
	async config(): Promise<string> {
		await new Promise<void>((resolve) => {
			this.server.listen(0, "127.0.0.1", resolve);
		});
		const { port } = this.server.address() as AddressInfo;
		return `[chat]\nmodel = "openai:scripted"\n\n[openai]\nbase_url = "http://127.0.0.1:${port}/v1"\n`;
	}

	/** Let the held reply go on to its end. */
	release(): void {
		this.released = true;
		for (const go of this.waiting.splice(0)) go();
	}

	close(): Promise<void> {
		return new Promise((resolve) => {
			this.server.closeAllConnections();
			this.server.close(() => {
				resolve();
			});
		});
	}

	private async say(said: Said, write: (piece: string) => void): Promise<void> {
		await Promise.resolve();
		const chunk = (delta: unknown, reason: string | null = null): void => {
			const choice = { index: 0, delta, finish_reason: reason };
			write(`data: ${JSON.stringify({ id: "c1", object: "chat.completion.chunk", created: 1, model: "scripted", choices: [choice] })}\n\n`);
		};
		chunk({ role: "assistant", content: "" });
		this.released = !said.hold;
		for (const [at, text] of (said.text ?? []).entries()) {
			if (at > 0 && !this.released) await new Promise<void>((resolve) => this.waiting.push(resolve));
			chunk({ content: text });
		}
		if (said.call) {
			const called = { name: said.call.name, arguments: JSON.stringify(said.call.arguments) };
			chunk({ tool_calls: [{ index: 0, id: "call-1", type: "function", function: called }] });
		}
		chunk({}, said.call ? "tool_calls" : "stop");
		write("data: [DONE]\n\n");
	}
}
