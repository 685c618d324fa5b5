import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { daemonClient, type Client } from "../../src/daemon/client";
import type { TurnEvent } from "../../src/protocol/events";
import { parseAddress, type Address } from "../../src/transport/address";
import { fetchTransport } from "../../src/transport/fetch";
import { nodeTransport } from "../../src/transport/node-http";
import { pollTransport } from "../../src/transport/poll";
import { isAbort, TransportError, type Kind, type Transport } from "../../src/transport/transport";
import { nativeRequest } from "./native-request";
import { EVENTS, HELLO, Scripted, TOKEN } from "./scripted";

const KINDS: Kind[] = ["unix", "tcp", "fetch", "poll"];
const KNOWN = EVENTS.filter((event) => event["type"] !== "from-the-future").map((event) => event["seq"]);

function address(text: string): Address {
	const found = parseAddress(text);
	if (found === null) throw new Error(text);
	return found;
}

function made(kind: Kind, place: string, token = TOKEN): Transport {
	if (kind === "unix") return nodeTransport({ socketPath: place });
	if (kind === "tcp") return nodeTransport({ address: address(place), token });
	if (kind === "fetch") return fetchTransport(address(place), token);
	return pollTransport(address(place), token, nativeRequest);
}

async function failure(work: Promise<unknown>): Promise<TransportError> {
	const error = await work.then(
		() => null,
		(thrown: unknown) => thrown,
	);
	if (!(error instanceof TransportError)) throw new Error(`not a TransportError: ${String(error)}`);
	return error;
}

async function all(values: AsyncIterable<unknown>): Promise<unknown[]> {
	const found: unknown[] = [];
	for await (const value of values) found.push(value);
	return found;
}

describe.each(KINDS)("over %s", (kind) => {
	let folder: string;
	let daemon: Scripted;
	let place: string;
	let transport: Transport;
	let pauses: number[];
	let client: Client;
	const signal = (): AbortSignal => new AbortController().signal;

	beforeEach(async () => {
		folder = mkdtempSync(join(tmpdir(), "tarsd-"));
		daemon = new Scripted(kind === "unix" ? "" : TOKEN);
		place = await daemon.listen(kind === "unix" ? join(folder, "s.sock") : undefined);
		transport = made(kind, place);
		pauses = [];
		client = daemonClient(transport, (ms) => {
			pauses.push(ms);
			return Promise.resolve();
		});
	});

	afterEach(async () => {
		await daemon.close();
		rmSync(folder, { recursive: true });
	});

	async function followed(after = 0): Promise<TurnEvent[]> {
		const found: TurnEvent[] = [];
		for await (const event of client.follow("t1", after, signal())) found.push(event);
		return found;
	}

	it("gets a whole JSON reply, and sends bodies of every method as they are", async () => {
		await expect(client.hello()).resolves.toEqual(HELLO);
		for (const method of ["POST", "PATCH", "DELETE"] as const) {
			const body = { text: "Grüße 🍵", list: [1, null] };
			await expect(transport.json({ method, path: "/v1/echo", body })).resolves.toEqual({ method, body });
		}
		const sent = daemon.asked.at(-1);
		expect(sent?.headers["content-type"]).toBe("application/json");
		expect(sent?.headers.authorization).toBe(kind === "unix" ? undefined : `Bearer ${TOKEN}`);
	});

	it("makes many calls one after another and at once", async () => {
		for (let n = 0; n < 5; n += 1) await client.hello();
		await Promise.all(Array.from({ length: 8 }, () => client.hello()));
		expect(daemon.asked).toHaveLength(13);
	});

	it("gives the lines of a stream without heartbeats and the end line", async () => {
		expect(await all(transport.stream({ method: "GET", path: "/v1/turns/t1/events?after=0" }))).toEqual(EVENTS);
	});

	it("reads a stream that comes one byte at a time", async () => {
		daemon.manners.push({ bytes: true });
		expect(await all(transport.stream({ method: "GET", path: "/v1/turns/t1/events?after=2" }))).toEqual(EVENTS.slice(2));
	});

	it("never takes a cut stream for a whole one", async () => {
		daemon.manners.push({ cutAfter: 2 });
		const seen: unknown[] = [];
		const error = await failure(
			(async () => {
				for await (const value of transport.stream({ method: "GET", path: "/v1/turns/t1/events?after=0" })) seen.push(value);
			})(),
		);
		// native requests give a reply that broke off to nobody
		expect(error.kind).toBe(kind === "poll" ? "unreachable" : "cut");
		expect(seen).toEqual(kind === "poll" ? [] : EVENTS.slice(0, 2));
	});

	if (kind !== "poll") it("takes no stream for whole that ends without its end line", async () => {
		daemon.manners.push({ shortAfter: EVENTS.length });
		const error = await failure(all(transport.stream({ method: "GET", path: "/v1/turns/t1/events?after=0" })));
		expect(error.kind).toBe("cut");
		daemon.manners.push({ shortAfter: 3 });
		expect((await followed()).map((event) => event.seq)).toEqual(KNOWN);
	});

	it("gives an event once that comes twice", async () => {
		daemon.manners.push({ repeat: 3 });
		expect((await followed(3)).map((event) => event.seq)).toEqual([5, 6, 7]);
	});

	it("never takes a cut reply for a whole one", async () => {
		const error = await failure(transport.json({ method: "GET", path: "/v1/cut" }));
		expect(error.kind).toBe(kind === "poll" ? "unreachable" : "cut");
	});

	it("tells errors with code, message and hint", async () => {
		const error = await failure(transport.json({ method: "GET", path: "/v1/turns/none" }));
		expect(error).toMatchObject({ kind: "http", status: 404 });
		expect(error.body).toEqual({ code: "not_found", message: "There is no such turn.", hint: "Ask for another." });
		const streamed = await failure(all(transport.stream({ method: "GET", path: "/v1/turns/none/events" })));
		expect(streamed).toMatchObject({ kind: "http", status: 404, body: { code: "not_found" } });
		const within = await failure(all(transport.stream({ method: "GET", path: "/v1/turns/fails/events" })));
		expect(within).toMatchObject({ kind: "http", status: 500, body: { code: "index_unavailable", hint: "Wait." } });
	});

	it("is not confused by what is no daemon", async () => {
		expect(await failure(transport.json({ method: "GET", path: "/v1/page" }))).toMatchObject({ kind: "http", status: 502 });
		expect(await failure(transport.json({ method: "GET", path: "/v1/notjson" }))).toMatchObject({ kind: "malformed" });
		const lines = all(transport.stream({ method: "GET", path: "/v1/turns/broken/events" }));
		expect(await failure(lines)).toMatchObject({ kind: "malformed" });
	});

	it("gives up a call after its time", async () => {
		const error = await failure(transport.json({ method: "GET", path: "/v1/slow", timeout: 20 }));
		expect(error.kind).toBe("timeout");
	});

	it("rejects an aborted call with an AbortError, before it is sent and while it waits", async () => {
		const controller = new AbortController();
		const waiting = transport.json({ method: "GET", path: "/v1/slow", signal: controller.signal });
		controller.abort();
		await expect(waiting).rejects.toSatisfy(isAbort);
		const asked = daemon.asked.length;
		await expect(transport.json({ method: "GET", path: "/v1/hello", signal: controller.signal })).rejects.toSatisfy(isAbort);
		expect(daemon.asked.slice(asked).filter((one) => one.url === "/v1/hello")).toEqual([]);
	});

	it("says when nobody is there", async () => {
		await daemon.close();
		const gone = await failure(client.hello());
		expect(gone.kind).toBe({ unix: "not-running", tcp: "refused", fetch: "unreachable", poll: "unreachable" }[kind]);
		await daemon.listen(kind === "unix" ? place : undefined);
	});

	it("follows a turn to its end, and passes over what it does not know", async () => {
		expect((await followed()).map((event) => event.seq)).toEqual(KNOWN);
		expect(pauses).toEqual([]);
		expect(await followed(5)).toHaveLength(2);
	});

	it("ends when there is nothing after the number", async () => {
		expect(await followed(EVENTS.length)).toEqual([]);
		expect(pauses).toEqual([]);
	});

	it("goes on after cuts at the number it has, without a gap or a repeat", async () => {
		daemon.manners.push({ cutAfter: 2 }, { cutAfter: 0 }, { cutAfter: 0 }, { cutAfter: 1 });
		expect((await followed()).map((event) => event.seq)).toEqual(KNOWN);
		expect(pauses).toEqual(kind === "poll" ? [250, 500, 1000, 2000] : [250, 500, 1000, 250]);
	});

	it("asks again for an event that is missing, and accepts that it is gone", async () => {
		daemon.manners.push({ skip: 3 });
		expect((await followed()).map((event) => event.seq)).toEqual(KNOWN);
		daemon.manners.push({ skip: 3 }, { skip: 3 });
		expect((await followed()).map((event) => event.seq)).toEqual(KNOWN.filter((seq) => seq !== 3));
	});

	it("does not try again what cannot be mended", async () => {
		const error = await failure(all(client.follow("none", 0, signal())));
		expect(error).toMatchObject({ kind: "http", status: 404 });
		expect(pauses).toEqual([]);
	});

	if (kind !== "poll") it("closes the connection when it is aborted, and when the loop is left", async () => {
		daemon.manners.push({ hangAfter: 2 });
		const controller = new AbortController();
		const seen: number[] = [];
		for await (const event of client.follow("t1", 0, controller.signal)) {
			seen.push(event.seq);
			if (seen.length === 2) controller.abort();
		}
		expect(seen).toEqual([1, 2]);
		await daemon.left();
		expect(daemon.closed).toBe(1);

		// also while the reader is busy with something else
		daemon.manners.push({ hangAfter: 2 });
		daemon.closed = 0;
		const other = new AbortController();
		const lines = transport.stream({ method: "GET", path: "/v1/turns/t1/events?after=0", signal: other.signal })[Symbol.asyncIterator]();
		await lines.next();
		other.abort();
		await daemon.left();
		await expect(lines.next().then(() => lines.next()).then(() => lines.next())).rejects.toSatisfy(isAbort);

		daemon.manners.push({ hangAfter: 2 });
		daemon.closed = 1;
		for await (const event of client.follow("t1", 0, signal())) if (event.seq === 1) break;
		await new Promise<void>((resolve) => {
			const look = (): void => {
				if (daemon.closed === 2) resolve();
				else setTimeout(look, 5);
			};
			look();
		});
	});

	if (kind === "poll") it("polls in pages, and stops waiting when it is aborted", async () => {
		daemon.manners.push({ hangAfter: 2 }, { hangAfter: 0 }, { hangAfter: 3 });
		expect((await followed()).map((event) => event.seq)).toEqual(KNOWN);
		expect(daemon.asked.map((one) => one.url.split("?")[1])).toEqual(["after=0&wait=20", "after=2&wait=20", "after=2&wait=20", "after=5&wait=20"]);

		daemon.pollHeld = true;
		const controller = new AbortController();
		const waiting = all(client.follow("t1", 0, controller.signal));
		controller.abort();
		await expect(waiting).resolves.toEqual([]);
	});

	if (kind !== "unix") it("says that a token is missing or wrong, and does not insist", async () => {
		const stranger = daemonClient(made(kind, place, "wrong"));
		expect(await failure(stranger.hello())).toMatchObject({ kind: "unauthorized", status: 401, body: { code: "unauthorized" } });
		expect((await failure(all(stranger.follow("t1", 0, signal())))).kind).toBe("unauthorized");
	});
});
