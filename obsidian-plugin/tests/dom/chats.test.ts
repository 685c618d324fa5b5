import { expect, it, vi } from "vitest";
import { until } from "../../mocks/obsidian/testing";
import { TransportError } from "../../src/transport/transport";
import { done, retrieved, stages } from "./chat-fixture";

const set = stages();

const WRITE = { type: "write", id: "w1", path: "Tea.md", op: "append", content: "x", if_hash: "h", kind: "session" };

it("makes each change once, though its event is read again after a reconnection", async () => {
	const one = await set();
	const { chats, connection } = one.services;
	const id = chats.create();
	await chats.send(id, { message: "Tea?" });
	one.daemon.send("turn1", WRITE);
	await until(() => one.performed.length === 1);
	one.daemon.replies.set(`GET /v1/conversations/${id}`, { id, title: "Tea?", turns: [{ id: "turn1", message: "Tea?", state: "running" }] });
	connection.retry();
	await until(() => one.daemon.asked.filter((call) => call.path.includes("/v1/conversations/")).length === 1);
	one.daemon.send("turn1", { type: "token", text: "Yes." }, done("Yes."));
	await until(() => chats.running(id) === undefined);
	expect(one.performed).toHaveLength(1);
	expect(chats.state(id).messages.map((message) => [message.id, message.text])).toEqual([["turn1", "Yes."]]);
});

it("stops a question as soon as the daemon has taken it", async () => {
	const one = await set();
	const { chats } = one.services;
	const id = chats.create();
	const sending = chats.send(id, { message: "Tea?" });
	await chats.stop(id);
	expect(one.daemon.bodies("/v1/turns/turn1/stop")).toEqual([]);
	await sending;
	await until(() => one.daemon.bodies("/v1/turns/turn1/stop").length === 1);
});

it("ends a turn as interrupted that the daemon does not know any more, without its record", async () => {
	const one = await set();
	const { chats } = one.services;
	const id = chats.create();
	await chats.send(id, { message: "Tea?" });
	one.daemon.send("turn1", retrieved([]), { type: "token", text: "Half" });
	await until(() => chats.state(id).messages[0]?.text === "Half");
	const gone = { status: 404, body: { code: "not_found", message: "Gone.", hint: "" } };
	one.daemon.stream = () => {
		throw new TransportError("http", "gone", gone);
	};
	one.services.connection.retry();
	await until(() => chats.running(id) === undefined);
	expect(chats.state(id).messages[0]).toMatchObject({ state: "interrupted", text: "Half" });
});

it("asks again for an answer that is said to be over and has no end, and then takes its record or calls it broken off", async () => {
	const one = await set();
	const { chats } = one.services;
	const streams: string[] = [];
	one.daemon.stream = async function* ({ path }) {
		streams.push(path);
		await Promise.resolve();
		yield { seq: 1, type: "token", text: "Half" };
	};
	const id = chats.create();
	await chats.send(id, { message: "Tea?" });
	await until(() => chats.running(id) === undefined);
	expect(chats.state(id).messages[0]).toMatchObject({ state: "interrupted", text: "Half" });
	expect(streams).toEqual([0, 1, 1].map((after) => `/v1/turns/turn1/events?after=${after}`));
	one.daemon.replies.set(`GET /v1/conversations/${id}`, { id, title: "Tea?", turns: [{ id: "turn2", message: "More?", state: "done", text: "Whole" }] });
	await chats.send(id, { message: "More?" });
	await until(() => chats.running(id) === undefined);
	expect(chats.state(id).messages.find((message) => message.id === "turn2")).toMatchObject({ state: "done", text: "Whole" });
});

it("goes on though one who listens fails", async () => {
	const told = vi.spyOn(console, "error").mockImplementation(() => undefined);
	const one = await set();
	const { chats } = one.services;
	const id = chats.create();
	chats.onChange(() => {
		throw new Error("a pane is broken");
	});
	await chats.send(id, { message: "Tea?" });
	one.daemon.send("turn1", retrieved([]), done("Yes."));
	await until(() => chats.running(id) === undefined);
	expect(chats.state(id).messages[0]).toMatchObject({ state: "done", text: "Yes." });
	expect(told).toHaveBeenCalled();
	told.mockRestore();
});

it("says nothing of a yes that came too late, for the card does", async () => {
	const one = await set();
	const { chats } = one.services;
	const id = chats.create();
	await chats.send(id, { message: "Tea?" });
	one.daemon.send("turn1", { type: "approval", call: "c1", name: "note_append", title: "Add", diff: "", arguments: {} });
	await until(() => chats.state(id).messages[0]?.approvals.length === 1);
	const path = "/v1/turns/turn1/approvals/c1";
	const body = { code: "conflict", message: "This turn has ended.", hint: "" };
	one.daemon.replies.set(`POST ${path}`, new TransportError("http", "ended", { status: 409, body }));
	await chats.approve(id, "turn1", "c1", { allow: true, always: false });
	one.daemon.send("turn1", done("", [], { stopped: true }));
	await until(() => chats.running(id) === undefined);
	expect(chats.state(id).messages[0]?.approvals[0]?.state).toBe("lapsed");
});

it("tries to load a conversation again once there is a daemon", async () => {
	const one = await set();
	const { chats } = one.services;
	one.daemon.replies.set("GET /v1/conversations/old", new TransportError("timeout", "slow"));
	await chats.load("old");
	expect(chats.problem("old")?.message).toBe("The daemon does not answer");
	expect(chats.pending("old")).toBe(true);
	one.daemon.replies.set("GET /v1/conversations/old", { id: "old", title: "Old", turns: [] });
	one.services.connection.retry();
	await until(() => !chats.pending("old"));
	expect(chats.problem("old")).toBeNull();
	expect(chats.state("old").title).toBe("Old");
});

it("forgets a conversation that was removed, and stops following it", async () => {
	const one = await set();
	const { chats } = one.services;
	const id = chats.create();
	await chats.send(id, { message: "Tea?" });
	chats.keepDraft(id, { ...chats.draft(id), text: "more" });
	const changes: string[] = [];
	chats.onChange((change) => changes.push(change.conversation));
	chats.forget(id);
	expect(changes).toEqual([id]);
	one.daemon.send("turn1", { type: "token", text: "Late" });
	await new Promise((resolve) => window.setTimeout(resolve, 0));
	expect(chats.state(id).messages).toEqual([]);
	expect(chats.draft(id).text).toBe("");
});

it("takes all changes of a turn back, the last first, but not the conversation's own note", async () => {
	const one = await set();
	const { chats } = one.services;
	const id = chats.create();
	await chats.send(id, { message: "Tea?" });
	const write = (name: string, kind: string): void => {
		const order = { ...WRITE, id: name, kind };
		one.daemon.send("turn1", order, { ...order, type: "written", hash: "h", by: "client" });
	};
	write("w1", "note");
	write("w2", "note");
	write("w3", "session");
	one.daemon.send("turn1", done("Done."));
	await until(() => chats.running(id) === undefined);
	await chats.undoAll(id, "turn1");
	expect(one.daemon.asked.map((call) => call.path).filter((path) => path.endsWith("/undo"))).toEqual(["/v1/writes/w2/undo", "/v1/writes/w1/undo"]);
	expect(chats.state(id).messages[0]?.writes.map((one_) => one_.state)).toEqual(["undone", "undone", "written"]);
});
