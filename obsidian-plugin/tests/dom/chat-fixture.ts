import type { App } from "obsidian";
import { afterEach } from "vitest";
import type { Selection } from "../../src/chat/context";
import type { Source, WriteOrder } from "../../src/protocol/events";
import { DEFAULTS, type Settings } from "../../src/settings";
import { TransportError, type Call, type Transport } from "../../src/transport/transport";
import { CHAT_VIEW, ChatView } from "../../src/ui/chat-view";
import { lastEditor } from "../../src/ui/last-editor";
import { openChat } from "../../src/ui/open-chat";
import type { Services } from "../../src/ui/services";
import { creatorsOf } from "../../mocks/obsidian/view";
import { makeApp } from "../../mocks/obsidian/testing";
import { HELLO, servicesOver } from "./stage";

/** A line of a turn, without its number. */
export type Line = { type: string } & Record<string, unknown>;

/** A daemon of which a test is the other half: it sends what the test says, and remembers what it was asked. */
export class FakeDaemon implements Transport {
	readonly kind = "unix";
	readonly streams = true;
	readonly asked: Call[] = [];
	/** Replies by "METHOD /path"; a function is called, an error is thrown. */
	readonly replies = new Map<string, unknown>();
	reachable: TransportError | null = null;
	private readonly turns = new Map<string, { lines: Line[]; wake: (() => void)[] }>();
	private count = 0;

	/** Send the next lines of a turn. */
	send(turn: string, ...lines: Line[]): void {
		const log = this.log(turn);
		log.lines.push(...lines);
		for (const wake of log.wake.splice(0)) wake();
	}

	/** The bodies that a path was asked with. */
	bodies(path: string): Record<string, unknown>[] {
		return this.asked.filter((call) => call.path === path).map((call) => (call.body ?? {}) as Record<string, unknown>);
	}

	async json(call: Call): Promise<unknown> {
		await Promise.resolve();
		if (this.reachable) throw this.reachable;
		this.asked.push(call);
		const key = `${call.method} ${call.path}`;
		if (this.replies.has(key)) {
			const reply = this.replies.get(key);
			if (reply instanceof Error) throw reply;
			return typeof reply === "function" ? (reply as () => unknown)() : reply;
		}
		if (key === "GET /v1/hello") return HELLO;
		if (key === "POST /v1/turns") return { turn: `turn${++this.count}` };
		if (key.startsWith("GET /v1/conversations/")) throw notFound();
		return {};
	}

	async *stream({ path, signal }: Call): AsyncGenerator<unknown> {
		const [, turn = "", after = "0"] = /turns\/([^/]+)\/events\?after=(\d+)/.exec(path) ?? [];
		const log = this.log(turn);
		for (let at = Number(after); ; at++) {
			while (at >= log.lines.length) {
				if (signal?.aborted) return;
				await new Promise<void>((resolve) => {
					log.wake.push(resolve);
					signal?.addEventListener("abort", () => {
						resolve();
					});
				});
				if (signal?.aborted) return;
			}
			const line = log.lines[at];
			yield { seq: at + 1, ...line };
			if (line?.type === "done" || line?.type === "failed") return;
		}
	}

	private log(turn: string): { lines: Line[]; wake: (() => void)[] } {
		const known = this.turns.get(turn) ?? { lines: [], wake: [] };
		this.turns.set(turn, known);
		return known;
	}
}

export function notFound(): TransportError {
	return new TransportError("http", "status 404", { status: 404, body: { code: "not_found", message: "There is none.", hint: "" } });
}

export function source(n: number, path: string, more: Partial<Source> = {}): Source {
	const title = path.replace(/^.*\//, "").replace(/\.md$/, "");
	const link = `[[${path.replace(/\.md$/, "")}]]`;
	return { n, path, title, heading: "", link, start_line: 1, end_line: 2, relevance: 0.9, collection: "", attached: false, ...more };
}

export function retrieved(sources: Source[], more: Record<string, unknown> = {}): Line {
	const rest = { closest: [], relevance: 0.9, behind: 0, query: "q", notices: [], withheld: [], model: "fake", local: true };
	return { type: "retrieved", sources, ...rest, ...more };
}

export function done(text: string, citations: Source[] = [], more: Record<string, unknown> = {}): Line {
	return { type: "done", text, citations, notices: [], ...more };
}

/** A vault with a chat pane that is connected to a daemon in the test's hands. */
export interface Stage {
	readonly app: App;
	readonly daemon: FakeDaemon;
	readonly services: Services;
	readonly settings: Settings;
	readonly performed: WriteOrder[];
	readonly view: ChatView;
	readonly el: HTMLElement;
	readonly opened: string[];
	/** What `markedText` says. */
	marked: Selection | null;
	close(): Promise<void>;
}

export interface StageOptions {
	files?: Record<string, string>;
	settings?: Partial<Settings>;
	connected?: boolean;
	conversation?: string;
	prepare?: (daemon: FakeDaemon, app: App) => Promise<void> | void;
	/** Stays where it is, as from one opening of the app to the next. */
	daemon?: FakeDaemon;
	app?: App;
}

export async function stage(options: StageOptions = {}): Promise<Stage> {
	const { files = { "Tea.md": "# Tea\n\nGreen tea." }, connected = true, conversation } = options;
	const app = options.app ?? makeApp({ files });
	const daemon = options.daemon ?? new FakeDaemon();
	await options.prepare?.(daemon, app);
	const forever = (_: number, signal: AbortSignal): Promise<void> =>
		new Promise((_resolve, reject) => {
			signal.addEventListener("abort", () => {
				reject(new DOMException("Stopped", "AbortError"));
			});
		});
	const performed: WriteOrder[] = [];
	let ids = 0;
	const perform = (_client: unknown, order: WriteOrder): Promise<void> => {
		performed.push(order);
		return Promise.resolve();
	};
	const settings: Settings = { ...DEFAULTS, ...options.settings };
	const opened: string[] = [];
	const held: { marked: Stage["marked"] } = { marked: null };
	const { services, close } = await servicesOver(app, daemon, settings, {
		wait: forever,
		chats: { perform, id: () => `id${++ids}`, now: () => 1_000 },
		parts: (owner) => ({
			openChat: (one) => openChat(app, one),
			insertAtCursor: lastEditor(app, owner).insert,
			markedText: () => held.marked,
			openHistory: () => {
				opened.push("history");
			},
			openConnection: () => {
				opened.push("connection");
			},
		}),
	});
	const { connection } = services;
	creatorsOf(app).set(CHAT_VIEW, (leaf) => new ChatView(leaf, services));
	if (connected !== (connection.state.name === "connected")) throw new Error(`It is ${connection.state.name}`);
	await openChat(app, conversation === undefined ? {} : { conversation });
	const view = app.workspace.getLeavesOfType(CHAT_VIEW)[0]?.view;
	if (!(view instanceof ChatView)) throw new Error("There is no pane.");
	return {
		app,
		daemon,
		services,
		settings,
		performed,
		view,
		el: view.contentEl,
		opened,
		get marked() {
			return held.marked;
		},
		set marked(value) {
			held.marked = value;
		},
		close: async () => {
			close();
			await view.leaf.setViewState({ type: "empty" });
		},
	};
}

/** What sets up the stage of a test, which is put away after it. */
export function stages(): (options?: StageOptions) => Promise<Stage> {
	let there: Stage | null = null;
	afterEach(async () => {
		await there?.close();
		there = null;
	});
	return async (options) => {
		there = await stage(options);
		return there;
	};
}

/** The box. */
export function box(el: HTMLElement): HTMLTextAreaElement {
	const found = el.querySelector("textarea.tarsd-box");
	if (!(found instanceof HTMLTextAreaElement)) throw new Error("There is no box.");
	return found;
}

/** The button of this name, as assistive technology finds it. */
export function button(el: HTMLElement, name: string): HTMLButtonElement {
	const found = Array.from(el.querySelectorAll("button")).filter((one) => nameOf(one) === name && visible(one));
	const last = found[found.length - 1];
	if (!last) {
		const names = Array.from(el.querySelectorAll("button")).filter(visible).map(nameOf);
		throw new Error(`No button “${name}”; there are: ${names.join(", ")}`);
	}
	return last;
}

export function has(el: HTMLElement, name: string): boolean {
	return Array.from(el.querySelectorAll("button")).some((one) => nameOf(one) === name && visible(one));
}

export function nameOf(el: Element): string {
	return el.getAttribute("aria-label") ?? el.textContent ?? "";
}

export function visible(el: Element): boolean {
	return el.closest("[hidden]") === null;
}

/** What is on the screen in these elements. */
export function texts(el: HTMLElement, selector: string): string[] {
	return Array.from(el.querySelectorAll(selector)).filter(visible).map((one) => one.textContent ?? "");
}
