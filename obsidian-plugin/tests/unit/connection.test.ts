import { afterEach, describe, expect, it } from "vitest";
import { keepConnected, type Connection, type Way } from "../../src/daemon/connection";
import { aborted, TransportError, type Call, type Transport, type Trouble } from "../../src/transport/transport";

const HELLO = { name: "tarsd", version: "0.1.0", protocol: 1, vault: { id: "0123456789ab", name: "Notes", path: "/n" }, features: [] };

/** A transport that answers as it is told to, and pauses that pass when the test says so. */
class Bench {
	readonly calls: Call[] = [];
	readonly pauses: number[] = [];
	readonly seen: string[] = [];
	answer: (call: Call) => unknown = () => HELLO;
	vaultId = "0123456789ab";
	private passes: (() => void)[] = [];
	readonly connection: Connection;

	constructor(ways?: () => Promise<Way[]>) {
		this.connection = keepConnected(ways ?? ((): Promise<Way[]> => Promise.resolve([this.way()])), (ms, signal) => {
			this.pauses.push(ms);
			return new Promise((resolve, reject) => {
				if (signal.aborted) reject(aborted());
				signal.addEventListener("abort", () => {
					reject(aborted());
				});
				this.passes.push(resolve);
			});
		});
		this.connection.onChange((state) => this.seen.push(state.name === "connected" || state.name === "connecting" ? state.name : state.failure.kind));
	}

	way(kind: Transport["kind"] = "unix"): Way {
		const json = (call: Call): Promise<unknown> => {
			this.calls.push(call);
			return Promise.resolve().then(() => this.answer(call));
		};
		const transport: Transport = {
			kind,
			streams: true,
			json,
			async *stream(call) {
				yield await json(call);
			},
		};
		return { transport, vaultId: this.vaultId, where: { kind, place: "/s.sock", vault: "/n" } };
	}

	/** Let everything happen that is not held by a pause. */
	async settle(): Promise<void> {
		await new Promise((resolve) => setTimeout(resolve, 0));
	}

	/** Let the pauses pass. */
	async pass(): Promise<void> {
		for (const pass of this.passes.splice(0)) pass();
		await this.settle();
	}
}

function fails(kind: Trouble): () => never {
	return () => {
		throw new TransportError(kind, "x");
	};
}

describe("Connection", () => {
	let bench: Bench;

	afterEach(() => {
		bench.connection.close();
	});

	it("connects, is looked at now and then, and says nothing while all is well", async () => {
		bench = new Bench();
		expect(bench.connection.state.name).toBe("connecting");
		bench.connection.start();
		bench.connection.start();
		await bench.settle();
		const client = bench.connection.client;
		expect(client).not.toBeNull();
		await bench.pass();
		await bench.pass();
		expect(bench.calls.map((call) => call.path)).toEqual(["/v1/hello", "/v1/hello", "/v1/hello"]);
		expect(bench.pauses).toEqual([30_000, 30_000, 30_000]);
		expect(bench.seen).toEqual(["connected"]);
		expect(bench.connection.client).toBe(client);
	});

	it("tries again with growing pauses, says so once, and connects when the daemon comes", async () => {
		bench = new Bench();
		bench.answer = fails("not-running");
		bench.connection.start();
		await bench.settle();
		for (let n = 0; n < 8; n += 1) await bench.pass();
		expect(bench.pauses).toEqual([250, 500, 1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]);
		expect(bench.seen).toEqual(["not-running"]);
		expect(bench.connection.client).toBeNull();
		bench.answer = () => HELLO;
		await bench.pass();
		expect(bench.seen).toEqual(["not-running", "connected"]);
	});

	it("looks at once when a call fails because nobody is there", async () => {
		bench = new Bench();
		bench.connection.start();
		await bench.settle();
		const client = bench.connection.client;
		bench.answer = fails("refused");
		await expect(client?.status()).rejects.toThrow();
		await bench.settle();
		expect(bench.seen).toEqual(["connected", "not-running"]);
		expect(bench.connection.client).toBeNull();
	});

	it("notices a stream that is cut, and stays connected when only that was cut", async () => {
		bench = new Bench();
		bench.connection.start();
		await bench.settle();
		bench.answer = (call) => (call.path === "/v1/hello" ? HELLO : fails("cut")());
		const stream = bench.connection.client?.transport.stream({ method: "GET", path: "/v1/turns/t/events" });
		await expect(stream?.[Symbol.asyncIterator]().next()).rejects.toThrow();
		await bench.settle();
		expect(bench.calls.map((call) => call.path)).toEqual(["/v1/hello", "/v1/turns/t/events", "/v1/hello"]);
		expect(bench.seen).toEqual(["connected"]);
	});

	it("does not mind what the daemon refuses in its own words", async () => {
		bench = new Bench();
		bench.connection.start();
		await bench.settle();
		bench.answer = () => {
			throw new TransportError("http", "x", { status: 409 });
		};
		await expect(bench.connection.client?.status()).rejects.toThrow();
		await bench.settle();
		expect(bench.calls).toHaveLength(2);
	});

	it.each([
		["the wrong vault", () => ({ ...HELLO, vault: { id: "x" } }), "wrong-vault"],
		["an old daemon", () => ({ ...HELLO, protocol: 0 }), "too-old"],
		["a new daemon", () => ({ ...HELLO, protocol: 2 }), "too-new"],
		["a wrong token", fails("unauthorized"), "unauthorized"],
		["somebody else", () => ({ hello: "world" }), "other"],
		["a folder of others", fails("not-allowed"), "refused"],
	] as const)("asks a person to look at %s", async (_, answer, kind) => {
		bench = new Bench();
		bench.answer = answer;
		bench.connection.start();
		await bench.settle();
		expect(bench.connection.state).toMatchObject({ name: "attention", failure: { kind } });
		expect(bench.pauses).toEqual([30_000]);
	});

	it("takes the first way that answers, and tells of the failure that a person can mend", async () => {
		const ways: Way[] = [];
		bench = new Bench(() => Promise.resolve(ways));
		const unix = bench.way("unix");
		const tcp = bench.way("tcp");
		const over = (way: Way, json: Transport["json"]): Way => ({ ...way, transport: { ...way.transport, json } });
		ways.push(over(unix, () => Promise.reject(new TransportError("not-running", "x"))), over(tcp, () => Promise.reject(new TransportError("unauthorized", "x"))));
		bench.connection.start();
		await bench.settle();
		expect(bench.connection.state).toMatchObject({ name: "attention", failure: { kind: "unauthorized" } });
		ways[1] = tcp;
		bench.connection.check();
		await bench.settle();
		expect(bench.connection.state).toMatchObject({ name: "connected", kind: "tcp" });
		ways[0] = unix;
		await bench.pass();
		expect(bench.connection.state).toMatchObject({ name: "connected", kind: "unix" });
	});

	it("names the address on another machine rather than a socket that is not here", async () => {
		const ways: Way[] = [];
		bench = new Bench(() => Promise.resolve(ways));
		const broken = (kind: Trouble, way: Way): Way => ({ ...way, transport: { ...way.transport, json: () => Promise.reject(new TransportError(kind, "x")) } });
		const far: Way = { ...bench.way("tcp"), vaultId: "", where: { kind: "tcp", place: "http://10.0.0.2:8620", vault: "/n" } };
		ways.push(broken("not-running", bench.way("unix")), broken("unreachable", far));
		bench.connection.start();
		await bench.settle();
		expect(bench.connection.state).toMatchObject({ name: "offline", failure: { kind: "unreachable" } });
		expect(JSON.stringify(bench.connection.state)).toContain("http://10.0.0.2:8620");
		// an address of this machine is another way to the same daemon, which has to be started
		ways[1] = broken("refused", bench.way("tcp"));
		bench.connection.check();
		await bench.settle();
		expect(bench.connection.state).toMatchObject({ failure: { kind: "not-running" } });
	});

	it("says when there is no way, or it cannot be worked out, and begins anew when asked", async () => {
		let ways: () => Promise<Way[]> = () => Promise.resolve([]);
		bench = new Bench(() => ways());
		bench.connection.start();
		await bench.settle();
		expect(bench.connection.state).toMatchObject({ name: "attention", failure: { title: "No address yet" } });
		ways = () => Promise.reject(new Error("the vault has no folder"));
		bench.connection.retry();
		await bench.settle();
		expect(bench.connection.state).toMatchObject({ name: "attention", failure: { text: "the vault has no folder" } });
		ways = () => Promise.resolve([bench.way()]);
		bench.connection.retry();
		await bench.settle();
		expect(bench.seen).toEqual(["other", "connecting", "other", "connecting", "connected"]);
	});

	it("is told of a daemon that was started anew with another model", async () => {
		bench = new Bench();
		bench.connection.start();
		await bench.settle();
		bench.answer = () => ({ ...HELLO, chat_model: "ollama:other" });
		await bench.pass();
		expect(bench.seen).toEqual(["connected", "connected"]);
		expect(bench.connection.state).toMatchObject({ hello: { chat_model: "ollama:other" } });
	});

	it("is silent after it was closed, even by what comes late", async () => {
		bench = new Bench();
		let late: (value: unknown) => void = () => undefined;
		bench.answer = () =>
			new Promise((resolve) => {
				late = resolve;
			});
		bench.connection.start();
		await bench.settle();
		bench.connection.close();
		late(HELLO);
		await bench.settle();
		expect(bench.seen).toEqual([]);
		expect(bench.pauses).toEqual([]);
	});
});
