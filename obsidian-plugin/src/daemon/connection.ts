import type { Hello } from "../protocol/events";
import { judge } from "../protocol/version";
import { isAbort, TransportError, type Call, type Kind, type Transport } from "../transport/transport";
import { pause, retryDelay, type Wait } from "./backoff";
import { Client } from "./client";
import { explain, needsPerson, NoWay, WrongDaemon, type Failure, type Where } from "./failures";

/** One way to try. `vaultId` is the id the daemon's vault must have, "" when it cannot be known. */
export interface Way {
	transport: Transport;
	vaultId: string;
	where: Where;
}

/**
 * connecting: not known yet. offline: nobody answers; it is tried again and again. attention: somebody answers and a
 * person has to do something; it is tried again more rarely.
 */
export type ConnectionState =
	| { name: "connecting" }
	| { name: "connected"; hello: Hello; kind: Kind }
	| { name: "offline" | "attention"; failure: Failure };

/** How often a connection that seems well is looked at. */
const CHECK_MS = 30_000;
/** How often one is tried that waits for a person. */
const ATTENTION_MS = 30_000;
const HELLO_MS = 5_000;

/**
 * Keeps a client connected. `ways` are asked for at every try, so that changed settings need no more than `retry`. The
 * client's own failures make it look again at once; what a screen has to do is to draw the state.
 */
export class Connection {
	private current: ConnectionState = { name: "connecting" };
	private found: Client | null = null;
	private at: Where = { kind: "none", place: "", vault: "" };
	private readonly listeners = new Set<(state: ConnectionState) => void>();
	private running: AbortController | null = null;
	private due = false;
	private wake: () => void = () => undefined;

	constructor(
		private readonly ways: () => Promise<Way[]>,
		private readonly wait: Wait = pause,
	) {}

	get state(): ConnectionState {
		return this.current;
	}

	/** The client while connected, else null. */
	get client(): Client | null {
		return this.found;
	}

	/** Where the daemon was reached last. */
	get where(): Where {
		return this.at;
	}

	/** Be told of every change; returns how to end that. */
	onChange(listener: (state: ConnectionState) => void): () => void {
		this.listeners.add(listener);
		return () => {
			this.listeners.delete(listener);
		};
	}

	/** Begin; returns at once. */
	start(): void {
		if (this.running !== null) return;
		this.running = new AbortController();
		void this.run(this.running.signal);
	}

	/** Begin anew, after the settings changed or because a person asks for it. */
	retry(): void {
		this.close();
		this.set({ name: "connecting" }, null);
		this.start();
	}

	/** Look now, whatever the pause: a call failed, the network is back, the app came to the front. */
	check(): void {
		this.due = true;
		this.wake();
	}

	/** End everything; nothing is told any more. */
	close(): void {
		this.running?.abort();
		this.running = null;
		this.found = null;
	}

	private async run(signal: AbortSignal): Promise<void> {
		for (let tries = 0; !signal.aborted; ) {
			this.due = false;
			const reached = await this.attempt(signal);
			if (signal.aborted) return;
			tries = reached ? 0 : tries + 1;
			const waiting = this.current.name === "attention" ? ATTENTION_MS : retryDelay(tries - 1);
			await this.rest(reached ? CHECK_MS : waiting, signal);
		}
	}

	/** A pause that `check` cuts short, and skips when it was called since the last try began. */
	private async rest(ms: number, signal: AbortSignal): Promise<void> {
		if (this.due) return;
		const pausing = new AbortController();
		const end = (): void => {
			pausing.abort();
		};
		this.wake = end;
		signal.addEventListener("abort", end, { once: true });
		try {
			await this.wait(ms, pausing.signal);
		} catch (error) {
			if (!isAbort(error)) throw error;
		} finally {
			signal.removeEventListener("abort", end);
		}
	}

	/** Try each way until one answers rightly; what is in use is tried like any other, and stays if it is well. */
	private async attempt(signal: AbortSignal): Promise<boolean> {
		let failure: Failure | null = null;
		for (const way of await this.candidates()) {
			try {
				if (way instanceof Error) throw way;
				const hello = await ask(way, signal);
				if (signal.aborted) return false;
				this.connected(way, hello);
				return true;
			} catch (error) {
				if (signal.aborted) return false;
				const where: Where = way instanceof Error ? { kind: "none", place: "", vault: "" } : way.where;
				const told = explain(error, where);
				if (failure === null || (needsPerson(told) && !needsPerson(failure))) failure = told;
			}
		}
		if (failure !== null) this.set({ name: needsPerson(failure) ? "attention" : "offline", failure }, null);
		return false;
	}

	private async candidates(): Promise<(Way | Error)[]> {
		try {
			const ways = await this.ways();
			return ways.length > 0 ? ways : [new NoWay()];
		} catch (error) {
			return [error instanceof Error ? error : new Error(String(error))];
		}
	}

	private connected(way: Way, hello: Hello): void {
		this.at = way.where;
		const state = this.current;
		const same = state.name === "connected" && state.kind === way.transport.kind;
		// a daemon that was started again, or came with another model, is news though nothing failed meanwhile
		if (same && JSON.stringify(state.hello) === JSON.stringify(hello)) return;
		const client = new Client(watched(way.transport, () => {
			this.check();
		}));
		this.set({ name: "connected", hello, kind: way.transport.kind }, client);
	}

	private set(state: ConnectionState, client: Client | null): void {
		const before = this.current;
		this.current = state;
		this.found = client;
		if (JSON.stringify(before) === JSON.stringify(state) && state.name !== "connected") return;
		for (const listener of [...this.listeners]) {
			try {
				listener(state);
			} catch (error) {
				console.error(error); // a screen that cannot be drawn must not end the connection
			}
		}
	}
}

async function ask(way: Way, signal: AbortSignal): Promise<Hello> {
	const { transport } = way;
	const limited: Transport = {
		...bare(transport),
		json: (call) => transport.json({ timeout: HELLO_MS, ...call }),
	};
	const hello = await new Client(limited).hello(signal);
	const verdict = judge(hello, way.vaultId);
	if (verdict !== "ok") throw new WrongDaemon(verdict, hello);
	return hello;
}

/** A transport that does the same. */
function bare(transport: Transport): Transport {
	return {
		kind: transport.kind,
		streams: transport.streams,
		json: (call) => transport.json(call),
		stream: (call) => transport.stream(call),
	};
}

/** The same transport; `suspect` is called when a call fails because of the connection, not of what was asked. */
function watched(transport: Transport, suspect: () => void): Transport {
	const look = (error: unknown): never => {
		if (error instanceof TransportError && error.kind !== "http" && error.kind !== "timeout") suspect();
		throw error;
	};
	return {
		...bare(transport),
		json: (call) => transport.json(call).catch(look),
		async *stream(call: Call): AsyncGenerator<unknown> {
			try {
				yield* transport.stream(call);
			} catch (error) {
				look(error);
			}
		},
	};
}
