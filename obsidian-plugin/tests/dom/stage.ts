import { Component, type App } from "obsidian";
import { makeApp, until } from "../../mocks/obsidian/testing";
import type { Wait } from "../../src/daemon/backoff";
import { keepConnected } from "../../src/daemon/connection";
import { DEFAULTS, type Settings } from "../../src/settings";
import { TransportError, type Call, type Transport } from "../../src/transport/transport";
import type { ChatOptions } from "../../src/ui/chat-types";
import { makeChats } from "../../src/ui/chats";
import type { OpenChat, Services } from "../../src/ui/services";
import { performWrite } from "../../src/vault/notes";
import { appVault } from "../../src/vault/port";

type Reply = (body: unknown, call: Call) => unknown;

/** What a daemon answers, by "METHOD /path"; a reply may be a promise, and may throw. */
export class Answers implements Transport {
	readonly kind = "unix";
	readonly streams = true;
	readonly calls: { route: string; body: unknown }[] = [];
	up = true;

	constructor(readonly routes: Record<string, Reply> = {}) {}

	async json(call: Call): Promise<unknown> {
		await Promise.resolve();
		if (!this.up) throw new TransportError("not-running", "no socket");
		const route = `${call.method} ${call.path}`;
		if (call.path !== "/v1/hello") this.calls.push({ route, body: call.body });
		const reply = this.routes[route];
		if (reply) return reply(call.body, call);
		if (call.path === "/v1/hello") return HELLO;
		throw new TransportError("http", "no such thing", { status: 404, body: { code: "not_found", message: `No ${route}.`, hint: "" } });
	}

	async *stream(_call: Call): AsyncIterable<unknown> {
		await Promise.resolve();
		yield* [];
	}

	bodies(route: string): unknown[] {
		return this.calls.filter((call) => call.route === route).map((call) => call.body);
	}
}

export const HELLO = {
	name: "tarsd",
	version: "9.9",
	protocol: 1,
	vault: { id: "v", name: "Vault", path: "/home/person/Vault" },
	collections: [],
	chat_model: "a-model",
	embedding_model: "table",
	features: [],
};

export const STATUS = {
	vault: HELLO.vault,
	counts: { notes: 7, chunks: 20, pending: 0, skipped: 0, failed: 0, excluded: 0 },
	behind: 0,
	embedding: { model: "table", state: "ready", done: 20, remaining: 0 },
	chat: { model: "a-model", state: "ready", local: true },
	problems: [],
};

/** Everything that views work with, over a daemon that answers as it is told. */
export interface Stage {
	readonly app: App;
	readonly daemon: Answers;
	readonly services: Services;
	readonly settings: Settings;
	/** What was asked of the parts that are not on this stage. */
	readonly opened: OpenChat[];
	readonly inserted: string[];
	close(): void;
}

/** What a test may have in another way. */
interface Changes {
	readonly wait?: Wait;
	readonly chats?: Partial<ChatOptions>;
	/** Parts of the services in place of those that do nothing; `owner` lives until `close`. */
	readonly parts?: (owner: Component) => Partial<Services>;
}

/** Everything that views work with, over this transport; the connection is up, or has said why not. */
export async function servicesOver(
	app: App,
	transport: Transport,
	settings: Settings,
	{ wait, chats: options, parts }: Changes = {},
): Promise<{ services: Services; close(): void }> {
	const where = { kind: "unix", place: "/x/v.sock", vault: "/home/person/Vault" } as const;
	const connection = keepConnected(() => Promise.resolve([{ transport, vaultId: "v", where }]), wait);
	const owner = new Component();
	owner.load();
	const vault = appVault(app, owner);
	const chats = makeChats({ connection, perform: (client, order) => performWrite(vault, client, order), ...options });
	const services: Services = {
		app,
		connection,
		chats,
		vault,
		settings: () => settings,
		openChat: () => Promise.resolve(),
		insertAtCursor: () => false,
		markedText: () => null,
		openHistory: () => undefined,
		openConnection: () => undefined,
		...parts?.(owner),
	};
	connection.start();
	await until(() => connection.state.name !== "connecting");
	return {
		services,
		close: () => {
			chats.close();
			connection.close();
			owner.unload();
		},
	};
}

export async function stage(routes: Record<string, Reply>, files: Record<string, string> = {}, connected = true): Promise<Stage> {
	const app = makeApp({ files });
	const daemon = new Answers(routes);
	daemon.up = connected;
	const settings = { ...DEFAULTS, relatedExclude: [] };
	const opened: OpenChat[] = [];
	const inserted: string[] = [];
	const parts = (): Partial<Services> => ({
		openChat: (options = {}) => {
			opened.push(options);
			return Promise.resolve();
		},
		insertAtCursor: (text) => {
			inserted.push(text);
			return true;
		},
	});
	return { app, daemon, settings, opened, inserted, ...(await servicesOver(app, daemon, settings, { parts })) };
}

/** A passage as the daemon sends it. */
export function hit(path: string, more: Record<string, unknown> = {}): Record<string, unknown> {
	const title = path.split("/").pop()?.replace(/\.md$/, "") ?? path;
	return {
		path, title, heading: "", start_line: 1, end_line: 2, text: `About ${title}.`, score: 1, relevance: 0.9, why: ["meaning 0.80 (table)"],
		collection: "", memory_type: null, link: path.replace(/\.md$/, ""), ...more,
	};
}

/** The text of an element on the page; "" without one. */
export function textOf(selector: string, within: ParentNode = document): string {
	return within.querySelector(selector)?.textContent ?? "";
}

/** The element that has to be there. */
export function one<T extends Element = HTMLElement>(selector: string, within: ParentNode = document): T {
	const found = within.querySelector<T>(selector);
	if (!found) throw new Error(`Nothing is ${selector}`);
	return found;
}
