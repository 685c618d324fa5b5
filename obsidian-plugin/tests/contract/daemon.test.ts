import { readFileSync, realpathSync } from "node:fs";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { daemonClient, type Client } from "../../src/daemon/client";
import { keepConnected, type ConnectionState, type Way } from "../../src/daemon/connection";
import { TransportError } from "../../src/transport/transport";
import type { TurnEvent } from "../../src/protocol/events";
import { judge } from "../../src/protocol/version";
import { hasNode, nodeTransport, places } from "../../src/transport/node-http";
import { socketPath, vaultId } from "../../src/transport/socket-path";
import { Model } from "./model";
import { tarsd, type Tarsd } from "./tarsd";

const NOTES = {
	"House/Boiler.md": "# Boiler\n\nThe gauge should read 1.2 bar when cold. See [[Plumber]].\n",
	"House/Plumber.md": "# Plumber\n\nOlla Brandt repairs the boiler and its gauge.\n",
	"Tee/Grün.md": "---\ntags: [tea]\n---\n# Grüner Tee\n\nGyokuro wants water of 60 degrees, 日本語 🍵.\n",
};

describe("a real daemon", () => {
	const model = new Model();
	let daemon: Tarsd;
	let client: Client;
	let asked = 0;

	beforeAll(async () => {
		Object.assign(window, { require: (await import("node:module")).createRequire(import.meta.url) });
		daemon = tarsd(NOTES, await model.config());
		await daemon.start();
		client = daemonClient(nodeTransport({ socketPath: daemon.socket }));
	});

	afterAll(async () => {
		await daemon.remove();
		await model.close();
	});

	afterEach(() => {
		model.release();
	});

	function ask(message: string, conversation = "c1"): Promise<string> {
		asked += 1;
		return client.startTurn({ conversation, message, request_id: `r${asked}`, writer: "client", approvals: true });
	}

	async function follow(turn: string, on: (event: TurnEvent) => Promise<void> | void = () => undefined, after = 0): Promise<TurnEvent[]> {
		const events: TurnEvent[] = [];
		for await (const event of client.follow(turn, after, new AbortController().signal)) {
			events.push(event);
			await on(event);
		}
		return events;
	}

	it("is found by the vault's own path, and is the right one", async () => {
		const found = places(daemon.vault);
		expect(hasNode()).toBe(true);
		expect(found.realPath).toBe(realpathSync(daemon.vault));
		const hello = await client.hello();
		const id = await vaultId(found.realPath);
		expect(hello.vault.id).toBe(id);
		expect(judge(hello, id)).toBe("ok");
		expect(socketPath(id, { ...found, tarsdHome: daemon.home })).toBe(daemon.socket);
		expect(hello.features).toContain("long-poll");
	});

	it("tells its state", async () => {
		const status = await client.status();
		expect(status.counts.notes).toBe(3);
		expect(status.chat.model).toBe("openai:scripted");
		expect(status.problems).toEqual([]);
	});

	it("searches and finds related notes", async () => {
		const found = await client.search("gauge bar", { mode: "hybrid", limit: 3 });
		expect(found.hits[0]).toMatchObject({ path: "House/Boiler.md", title: "Boiler", link: "House/Boiler#Boiler" });
		expect((await client.search("gyokuro 日本語", { mode: "fts" })).hits[0]?.path).toBe("Tee/Grün.md");
		expect((await client.related("House/Boiler.md", 5)).hits.map((hit) => hit.path)).toContain("House/Plumber.md");
		await expect(client.related("Nowhere.md", 5)).rejects.toMatchObject({ kind: "http", status: 404, body: { code: "not_found" } });
	});

	it("streams an answer, and gives it again from any number", async () => {
		model.replies.push({ text: ["The gauge ", "reads 1.2 bar ", "— 🍵 [1]."] });
		const turn = await ask("What should the gauge read?");
		const events = await follow(turn, write(turn));
		expect(events.map((event) => event.seq)).toEqual(events.map((_, at) => at + 1));
		const last = events.at(-1);
		expect(last).toMatchObject({ type: "done", text: "The gauge reads 1.2 bar — 🍵 [1]." });
		if (last?.type === "done") expect(last.citations[0]).toMatchObject({ n: 1, path: "House/Boiler.md" });
		for (let after = 0; after <= events.length; after += 1) expect(await follow(turn, undefined, after)).toEqual(events.slice(after));
	});

	it("goes on with a turn while nobody listens", async () => {
		model.replies.push({ text: ["first ", "second ", "third"], hold: true });
		const turn = await ask("Say three words.");
		for await (const event of client.follow(turn, 0, new AbortController().signal)) if (event.type === "token") break;
		const rest = follow(turn, write(turn), 0);
		model.release();
		const events = await rest;
		expect(events.at(-1)).toMatchObject({ type: "done", text: "first second third" });
	});

	it("is followed by long polls as well", async () => {
		const unix = client.transport;
		const polled = daemonClient({ kind: "poll", streams: false, json: (call) => unix.json(call), stream: (call) => unix.stream(call) });
		model.replies.push({ text: ["slowly ", "said"], hold: true });
		const turn = await ask("Say it slowly.");
		const events: TurnEvent[] = [];
		for await (const event of polled.follow(turn, 0, new AbortController().signal)) {
			events.push(event);
			await write(turn)(event);
			if (event.type === "token") model.release();
		}
		expect(events).toEqual(await follow(turn));
		expect(events.at(-1)).toMatchObject({ type: "done", text: "slowly said" });
	});

	it("stops a turn and keeps what was said", async () => {
		model.replies.push({ text: ["kept ", "never said"], hold: true });
		const turn = await ask("Say something long.");
		const events = await follow(turn, async (event) => {
			if (event.type === "token") await client.stop(turn);
		});
		expect(events.at(-1)).toMatchObject({ type: "done", stopped: true, text: "kept " });
	});

	it("asks before it changes a note, and lets this client make the change", async () => {
		model.replies.push({ call: { name: "note_append", arguments: { name: "House/Boiler.md", text: "Checked in November." } } }, { text: ["Done."] });
		const turn = await ask("Add that it was checked.", "c2");
		const before = readFileSync(join(daemon.vault, "House/Boiler.md"));
		let claimed = "";
		const events = await follow(turn, async (event) => {
			if (event.type === "approval") {
				expect(event.diff).toContain("+Checked in November.");
				await client.approve(turn, event.call, { allow: true, always: false });
			}
			if (event.type === "write" && event.kind === "note") {
				expect(event.if_hash).toBe(hash(before));
				claimed = event.id;
			}
			await write(turn)(event);
		});
		const done = events.find((event) => event.type === "written" && event.id === claimed);
		expect(done).toMatchObject({ by: "client", path: "House/Boiler.md" });
		expect(readFileSync(join(daemon.vault, "House/Boiler.md"), "utf8")).toContain("Checked in November.");
		await expect(client.claim(claimed)).rejects.toMatchObject({ kind: "http", status: 409 });
		const undone = await client.undo(claimed);
		expect(undone).toMatchObject({ path: "House/Boiler.md", hash: hash(before) });
		expect(readFileSync(join(daemon.vault, "House/Boiler.md"))).toEqual(before);
	});

	it("takes a no", async () => {
		model.replies.push({ call: { name: "note_append", arguments: { name: "House/Boiler.md", text: "No." } } }, { text: ["Then not."] });
		const turn = await ask("Add something.", "c2");
		const events = await follow(turn, async (event) => {
			if (event.type === "approval") await client.approve(turn, event.call, { allow: false, always: false });
			await write(turn)(event);
		});
		expect(events.filter((event) => event.type === "tool").map((event) => event.state)).toEqual(["running", "refused"]);
		await expect(client.approve(turn, "t1", { allow: true, always: false })).rejects.toMatchObject({ status: 409 });
	});

	it("keeps, renames and removes conversations", async () => {
		const all = await client.conversations();
		expect(all.map((one) => one.id).sort()).toEqual(["c1", "c2"]);
		const one = await client.conversation("c1");
		expect(one.history.map((turn) => turn.state)).toEqual(["done", "done", "done", "stopped"]);
		expect(one.turns).toBe(4);
		await client.rename("c1", "Der Kessel");
		expect((await client.conversations()).find((found) => found.id === "c1")?.title).toBe("Der Kessel");
		await client.remove("c2");
		await expect(client.conversation("c2")).rejects.toMatchObject({ status: 404 });
	});

	it("remembers, forgets and takes that back", async () => {
		await client.remember("The boiler is in the cellar.");
		await client.remember("Answer in one sentence.", "procedural");
		const memory = await client.memory();
		expect(memory.facts.map((line) => line.line)).toEqual(["The boiler is in the cellar."]);
		expect(memory.rules.map((line) => line.line)).toEqual(["Answer in one sentence."]);
		await client.forget("The boiler is in the cellar.");
		expect((await client.memory()).facts).toEqual([]);
		await client.undoMemory();
		expect((await client.memory()).facts).toHaveLength(1);
		const turn = (await client.conversation("c1")).history[0]?.id ?? "";
		expect((await client.feedback(turn, "wrong", "It was 1.3 bar.")).diff).toContain("1.3 bar");
		model.replies.push({ text: ["nothing"] });
		const review = await client.review();
		expect(review.review).not.toBe("");
		await expect(client.applyReview(review.review, [])).resolves.toMatchObject({ written: [] });
		await expect(client.applyReview("another", [])).rejects.toMatchObject({ status: 409 });
	});

	it("is lost and found again: a turn cut by a crash ends as interrupted", async () => {
		model.replies.push({ text: ["half ", "never"], hold: true });
		const turn = await ask("Say something while you crash.");
		const crashes: Promise<void>[] = [];
		const events = await follow(turn, (event) => {
			if (event.type === "token" && crashes.length === 0) crashes.push(daemon.stop("SIGKILL").then(() => daemon.start()));
		});
		await Promise.all(crashes);
		expect(events.map((event) => event.seq)).toEqual(events.map((_, at) => at + 1));
		expect(events.at(-1)).toMatchObject({ type: "failed", text: "half ", error: { code: "interrupted" } });
		expect((await client.conversation("c1")).history.at(-1)?.state).toBe("interrupted");
	});

	it("is seen to go and to come by a connection", async () => {
		const { socket } = daemon;
		const id = await vaultId(realpathSync(daemon.vault));
		const way = (vault: string): Way => ({
			transport: nodeTransport({ socketPath: socket }),
			vaultId: vault,
			where: { kind: "unix", place: socket, vault: daemon.vault },
		});
		const connection = keepConnected(() => Promise.resolve([way(id)]));
		const become = async (name: ConnectionState["name"]): Promise<ConnectionState> =>
			connection.state.name === name
				? connection.state
				: new Promise((resolve) => {
						const end = connection.onChange((state) => {
							if (state.name !== name) return;
							end();
							resolve(state);
						});
					});
		connection.start();
		await become("connected");
		const before = connection.client;
		await daemon.stop();
		await expect(before?.status()).rejects.toBeInstanceOf(TransportError);
		expect(await become("offline")).toMatchObject({ failure: { kind: "not-running", command: `tarsd run --vault ${daemon.vault}` } });
		expect(connection.client).toBeNull();
		await daemon.start();
		await become("connected");
		await connection.client?.status();
		connection.close();

		const other = keepConnected(() => Promise.resolve([way("0123456789ab")]));
		const attention = new Promise((resolve) => other.onChange(resolve));
		other.start();
		expect(await attention).toMatchObject({ name: "attention", failure: { kind: "wrong-vault" } });
		other.close();
	});

	/** What the plugin does with a write event, on disk instead of through the app. */
	function write(turn: string): (event: TurnEvent) => Promise<void> {
		return async (event) => {
			if (event.type !== "write") return;
			const { mkdirSync, writeFileSync } = await import("node:fs");
			const order = await client.claim(event.id);
			expect(order).toEqual({ id: event.id, path: event.path, op: event.op, content: event.content, if_hash: event.if_hash, kind: event.kind });
			const file = join(daemon.vault, order.path);
			mkdirSync(join(file, ".."), { recursive: true });
			const text = order.op === "append" ? readFileSync(file, "utf8") + order.content : order.content;
			writeFileSync(file, text);
			await client.report(order.id, { ok: true, hash: hash(text) });
			expect(turn).not.toBe("");
		};
	}
});

function hash(content: string | Uint8Array): string {
	return createHash("sha256").update(content).digest("hex");
}
