/** The daemon over fetch: its routes, its refusals as sentences, and a connection that comes back by itself. */

const REPLY_MS = 30_000;
/** A heartbeat comes every 15 seconds; a stream without one is dead. */
const QUIET_MS = 25_000;
const POLL_S = 20;
const CHECK_MS = 20_000;
const BUSY_MS = 3_000;

/** What went wrong, and what to do. `kind`: "offline" (trying again may help), "token", "tries" (too many), "refused". */
export class Failure extends Error {
	constructor(kind, message, hint = "", status = 0) {
		super(message);
		Object.assign(this, { kind, hint, status, sentence: `${message} ${hint}`.trim() });
	}
}

const away = (message) => new Failure("offline", message, "Trying again. Is the daemon running (tarsd status), and this device online?");

export class Daemon extends EventTarget {
	token = "";
	/** "idle" without a token, else "connecting", "connected", "offline" or "refused". */
	state = "idle";
	failure = null;
	hello = null;
	status = null;
	/** Whether no stream gets through, so that turns are followed by long polls. */
	polls = !("body" in Response.prototype);
	#run = 0;

	constructor() {
		super();
		for (const name of ["online", "offline"]) addEventListener(name, () => this.check());
		document.addEventListener("visibilitychange", () => document.hidden || this.check());
	}

	/** Begin anew with this token; "" ends it. */
	connect(token) {
		Object.assign(this, { token, hello: null });
		this.#set(token ? "connecting" : "idle");
		this.#run++;
		this.check();
		if (token) void this.#keep(this.#run);
	}

	/** Look now. */
	check() {
		this.dispatchEvent(new Event("wake"));
	}

	async #keep(run) {
		for (let tries = 0; run === this.#run; ) {
			let pause = CHECK_MS;
			try {
				const hello = await this.json("GET", "v1/hello");
				const status = await this.json("GET", "v1/status");
				if (run !== this.#run) return;
				[this.hello, this.status, tries] = [hello, status, 0];
				if (status.behind) pause = BUSY_MS;
				this.#set("connected");
			} catch (error) {
				if (run !== this.#run) return;
				this.#set(error.kind === "offline" ? "offline" : "refused", error);
				if (["token", "tries"].includes(error.kind)) return; // it stays wrong, and every try counts
				pause = delay(tries++);
			}
			await this.#pause(pause);
		}
	}

	#set(state, failure = null) {
		Object.assign(this, { state, failure });
		this.dispatchEvent(new Event("change"));
	}

	/** A pause that `check` ends. */
	#pause(ms, signal) {
		const over = new AbortController();
		return new Promise((resolve) => {
			setTimeout(resolve, ms);
			for (const [target, name] of [[this, "wake"], [signal, "abort"]]) target?.addEventListener(name, resolve, { signal: over.signal });
		}).finally(() => over.abort());
	}

	// ---- requests ----

	/** The JSON of a reply. Throws a `Failure`, or what `signal` says. */
	async json(method, path, body, signal) {
		const limits = [AbortSignal.timeout(REPLY_MS), signal].filter(Boolean);
		try {
			return await (await this.#send(method, path, body, AbortSignal.any(limits))).json();
		} catch (error) {
			if (error instanceof Failure || signal?.aborted) throw error;
			throw away(error instanceof SyntaxError ? "Something else answers at this address." : "The daemon took too long.");
		}
	}

	async #send(method, path, body, signal) {
		const headers = { Authorization: `Bearer ${this.token}`, ...(body && { "Content-Type": "application/json" }) };
		let response;
		try {
			response = await fetch(path, { method, headers, signal, body: body && JSON.stringify(body), cache: "no-store", redirect: "error" });
		} catch (error) {
			if (signal.aborted) throw error;
			if (this.state === "connected") this.check();
			throw away("Cannot reach the daemon.");
		}
		if (response.ok) return response;
		const { status } = response;
		const told = (await response.json().catch(() => ({}))).error;
		// a proxy in front of a daemon that is gone
		if (status >= 500 && !told) throw away(`Cannot reach the daemon (${status}).`);
		const kind = { 401: "token", 429: "tries" }[status] ?? "refused";
		if (kind === "token" && this.state === "connected") this.check();
		throw new Failure(kind, told?.message || `The daemon refused this (${status}).`, told?.hint, status);
	}

	// ---- turns ----

	/** Call until it works or is refused: what is called must do nothing twice. */
	async persist(call, signal, waits = () => {}) {
		for (let tries = 0; ; await this.#pause(delay(tries++), signal)) {
			signal.throwIfAborted();
			try {
				return await call();
			} catch (error) {
				if (signal.aborted || error.kind !== "offline") throw error;
				waits(error);
			}
		}
	}

	/** The events of a turn after number `after`, each once, over however many connections it takes. */
	async *follow(turn, after, signal) {
		let seen = after;
		for (let tries = 0; !signal.aborted; await this.#pause(delay(tries++), signal)) {
			try {
				for await (const event of this.polls ? this.#pages(turn, seen, signal) : this.#lines(turn, seen, signal)) {
					if (!(event.seq > seen)) continue; // a heartbeat, or one that came before
					[seen, tries] = [event.seq, 0];
					yield event;
				}
				return;
			} catch (error) {
				if (signal.aborted) return;
				if (error.kind !== "offline") throw error;
			}
		}
	}

	async *#pages(turn, after, signal) {
		for (let seen = after; ; ) {
			const { events, ended } = await this.json("GET", `${eventsOf(turn, seen)}&wait=${POLL_S}`, undefined, signal);
			yield* events;
			if (ended) return;
			seen = events.at(-1)?.seq ?? seen;
		}
	}

	async *#lines(turn, after, signal) {
		const quiet = new AbortController();
		const limit = AbortSignal.any([signal, quiet.signal]);
		let timer = setTimeout(() => quiet.abort(), QUIET_MS);
		let heard = false;
		try {
			const reader = (await this.#send("GET", eventsOf(turn, after), undefined, limit)).body.pipeThrough(new TextDecoderStream()).getReader();
			for (let rest = ""; ; ) {
				const { done, value } = await reader.read();
				if (done) break;
				heard = true;
				clearTimeout(timer);
				timer = setTimeout(() => quiet.abort(), QUIET_MS);
				const lines = (rest + value).split("\n");
				rest = lines.pop();
				for (const line of lines.map((text) => JSON.parse(text))) {
					if (line.type === "end") return;
					if (line.type === "error") throw new Failure("refused", line.error.message, line.error.hint);
					yield line;
				}
			}
		} catch (error) {
			if (error instanceof Failure || signal.aborted) throw error;
			// what stands between may hold a stream back until its end
			if (quiet.signal.aborted && !heard) this.polls = true;
		} finally {
			clearTimeout(timer);
			quiet.abort();
		}
		throw away("The connection broke off.");
	}
}

const eventsOf = (turn, after) => `v1/turns/${turn}/events?after=${after}`;

/** Milliseconds, after so many tries in vain. */
const delay = (tries) => Math.min(300 * 2 ** Math.min(tries, 10), 10_000);
