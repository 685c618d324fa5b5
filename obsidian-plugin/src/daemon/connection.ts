import { listeners, type Listeners } from "../listeners";
import type { Hello } from "../protocol/events";
import { judge } from "../protocol/version";
import { TransportError, unlessAborted, type Kind, type Transport } from "../transport/transport";
import { pause, retryDelay, type Wait } from "./backoff";
import { daemonClient, type Client } from "./client";
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

/** A connection as screens see it. */
export interface Connection {
	readonly state: ConnectionState;
	/** The client while connected, else null. */
	readonly client: Client | null;
	/** Where the daemon was reached last. */
	readonly where: Where;
	/** Be told of every change; returns how to end that. */
	onChange: Listeners<ConnectionState>["add"];
	/** Begin; returns at once. */
	start(): void;
	/** Begin anew, after the settings changed or because a person asks for it. */
	retry(): void;
	/** Look now, whatever the pause: a call failed, the network is back, the app came to the front. */
	check(): void;
	/** End everything; nothing is told any more. */
	close(): void;
}

/** How often a connection that seems well is looked at, and one is tried that waits for a person. */
const CHECK_MS = 30_000;

const NOWHERE: Where = { kind: "none", place: "", vault: "" };

/**
 * Keeps a client connected. `ways` are asked for at every try, so that changed settings need no more than `retry`. The
 * client's own failures make it look again at once; what a screen has to do is to draw the state.
 */
export function keepConnected(ways: () => Promise<Way[]>, wait: Wait = pause): Connection {
	const { add, tell } = listeners<ConnectionState>();
	let state: ConnectionState = { name: "connecting" };
	let client: Client | null = null;
	let where = NOWHERE;
	let running: AbortController | null = null;
	let pausing = new AbortController();
	let due = false;

	function set(next: ConnectionState, found: Client | null): void {
		const same = JSON.stringify(state) === JSON.stringify(next);
		state = next;
		client = found;
		if (!same) tell(next);
	}

	async function run(signal: AbortSignal): Promise<void> {
		for (let tries = 0; !signal.aborted; ) {
			due = false;
			const reached = await attempt(signal);
			if (signal.aborted) return;
			const ms = reached || state.name === "attention" ? CHECK_MS : retryDelay(tries);
			tries = reached ? 0 : tries + 1;
			// what asked for a look while it was looked at is answered at once
			if (due) continue;
			pausing = new AbortController();
			await wait(ms, pausing.signal).catch(unlessAborted);
		}
	}

	/** Try each way until one answers rightly; what is in use is tried like any other, and stays if it is well. */
	async function attempt(signal: AbortSignal): Promise<boolean> {
		let failure = null as Failure | null;
		const failed = (error: unknown, at: Where, elsewhere = false): void => {
			const told = explain(error, at);
			// that there is no daemon here is no news to one who gave another machine's address
			if (!failure || (needsPerson(told) && !needsPerson(failure)) || (failure.kind === "not-running" && elsewhere)) failure = told;
		};
		try {
			const found = await ways();
			if (!found.length) throw new NoWay();
			for (const way of found) {
				try {
					const hello = await daemonClient(way.transport).hello(signal);
					const verdict = judge(hello, way.vaultId);
					if (verdict !== "ok") throw new WrongDaemon(verdict, hello);
					if (!signal.aborted) connected(way, hello);
					return true;
				} catch (error) {
					failed(error, way.where, way.vaultId === "");
				}
			}
		} catch (error) {
			failed(error, NOWHERE);
		}
		if (failure && !signal.aborted) set({ name: needsPerson(failure) ? "attention" : "offline", failure }, null);
		return false;
	}

	function connected({ transport, where: at }: Way, hello: Hello): void {
		where = at;
		const { kind } = transport;
		const now: ConnectionState = { name: "connected", hello, kind };
		// a daemon that was started again, or came with another model, is news though nothing failed meanwhile
		if (JSON.stringify(state) !== JSON.stringify(now)) set(now, daemonClient(watched(transport, check)));
	}

	function start(): void {
		if (running) return;
		running = new AbortController();
		void run(running.signal);
	}

	function check(): void {
		due = true;
		pausing.abort();
	}

	function close(): void {
		running?.abort();
		pausing.abort();
		running = null;
		client = null;
	}

	return {
		get state() {
			return state;
		},
		get client() {
			return client;
		},
		get where() {
			return where;
		},
		onChange: add,
		start,
		retry() {
			close();
			set({ name: "connecting" }, null);
			start();
		},
		check,
		close,
	};
}

/** The same transport; `suspect` is called when a call fails because of the connection, not of what was asked. */
function watched(transport: Transport, suspect: () => void): Transport {
	const look = (error: unknown): never => {
		if (error instanceof TransportError && error.kind !== "http" && error.kind !== "timeout") suspect();
		throw error;
	};
	return {
		...transport,
		json: (call) => transport.json(call).catch(look),
		async *stream(call) {
			try {
				yield* transport.stream(call);
			} catch (error) {
				look(error);
			}
		},
	};
}
