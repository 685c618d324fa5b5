import { describe, expect, it } from "vitest";
import { explain, needsPerson, NoWay, WrongDaemon, type Where } from "../../src/daemon/failures";
import { parseHello } from "../../src/protocol/events";
import { TransportError, type Trouble } from "../../src/transport/transport";

const SOCKET: Where = { kind: "unix", place: "/home/ada/.tarsd/0123456789ab.sock", vault: "/home/ada/Notes" };
const FAR: Where = { kind: "tcp", place: "http://10.0.0.2:8620", vault: "/home/ada/Notes" };
const PHONE: Where = { kind: "poll", place: "http://10.0.0.2:8620", vault: "Notes" };

const error = (kind: Trouble): TransportError => new TransportError(kind, "for logs only");
const hello = parseHello({ name: "tarsd", version: "9.9", protocol: 1, vault: { id: "x", name: "Other", path: "/home/ada/Other" } });

describe("explain", () => {
	it("tells every kind of failure in words of its own", () => {
		const kinds: Trouble[] = ["not-running", "refused", "not-allowed", "unauthorized", "unreachable", "timeout", "cut", "malformed"];
		for (const where of [SOCKET, FAR, PHONE]) {
			const told = kinds.map((kind) => explain(error(kind), where));
			expect(new Set(told.map((failure) => failure.text)).size).toBe(kinds.length);
			for (const failure of told) {
				expect(failure.text).not.toContain("for logs only");
				expect(failure.title).toMatch(/^[A-Z]/);
				expect(failure.text).toMatch(/\.$/);
			}
		}
	});

	it.each([
		["not-running", SOCKET, "not-running", "tarsd run --vault /home/ada/Notes"],
		["refused", SOCKET, "not-running", "tarsd run --vault /home/ada/Notes"],
		["refused", FAR, "unreachable", undefined],
		["not-allowed", SOCKET, "refused", "ls -ld /home/ada/.tarsd/0123456789ab.sock"],
		["unauthorized", FAR, "unauthorized", "tarsd token --rotate"],
		["unreachable", PHONE, "unreachable", undefined],
		["timeout", FAR, "unreachable", "tarsd status"],
		["malformed", FAR, "other", undefined],
	] as const)("%s over %o", (kind, where, expected, command) => {
		const failure = explain(error(kind), where);
		expect(failure.kind).toBe(expected);
		expect(failure.command).toBe(command);
	});

	it("gives commands that a shell takes as they are meant", () => {
		const run = (vault: string): string | undefined => explain(error("not-running"), { ...SOCKET, vault }).command;
		expect(run("/home/ada/My notes")).toBe("tarsd run --vault '/home/ada/My notes'");
		expect(run("/x/it's; rm -rf ~ $(id) `id`")).toBe("tarsd run --vault '/x/it'\\''s; rm -rf ~ $(id) `id`'");
		expect(run("")).toBe("tarsd run");
	});

	it("names both vaults, and versions, when the wrong daemon answers", () => {
		if (hello === null) throw new Error("no hello");
		const wrong = explain(new WrongDaemon("wrong-vault", hello), SOCKET);
		expect(wrong).toMatchObject({ kind: "wrong-vault", command: "tarsd run --vault /home/ada/Notes" });
		expect(wrong.text).toContain("/home/ada/Other");
		expect(wrong.text).toContain("/home/ada/Notes");
		const old = explain(new WrongDaemon("too-old", hello), SOCKET);
		const late = explain(new WrongDaemon("too-new", hello), SOCKET);
		expect([old.kind, late.kind]).toEqual(["too-old", "too-new"]);
		expect(old.text).not.toBe(late.text);
		expect(old.text).toContain("9.9");
	});

	it("passes on what the daemon says itself", () => {
		const body = { code: "conflict", message: "It changed.", hint: "Look again." };
		expect(explain(new TransportError("http", "x", { status: 409, body }), SOCKET)).toMatchObject({ kind: "other", text: "It changed. Look again." });
		expect(explain(new TransportError("http", "x", { status: 403, body }), SOCKET).kind).toBe("refused");
	});

	it("tells a proxy from the daemon behind it", () => {
		const came = (status: number, where = FAR) => explain(new TransportError("http", `status ${status}`, { status }), where);
		expect(came(302)).toMatchObject({ kind: "other", title: "This is not the daemon", text: "Something else answers at http://10.0.0.2:8620. Check the address in the settings." });
		expect(came(404).title).toBe("This is not the daemon");
		for (const status of [500, 502, 504]) {
			const failure = came(status);
			expect(failure).toMatchObject({ kind: "unreachable", title: "No connection to the daemon" });
			expect(failure.text).toBe(`Only the status ${status} came from http://10.0.0.2:8620. Check that the daemon is running behind its proxy.`);
			expect(needsPerson(failure)).toBe(false);
		}
		expect(came(502, { kind: "none", place: "", vault: "" }).text).not.toMatch(/from/);
	});

	it("tells a phone what it needs, and what is no failure of the connection at all", () => {
		expect(explain(error("unreachable"), PHONE).text).toContain("HTTPS");
		expect(explain(error("unreachable"), FAR).text).not.toContain("HTTPS");
		expect(explain(new NoWay(), { kind: "none", place: "", vault: "" }).title).toBe("No address yet");
		expect(explain(new Error("boom"), SOCKET)).toMatchObject({ kind: "other", text: "boom" });
		expect(explain("text", SOCKET).text).toBe("text");
	});

	it("leaves the place out where none is known", () => {
		for (const kind of ["refused", "unreachable", "malformed"] as const) {
			expect(explain(error(kind), { kind: "none", place: "", vault: "" }).text).not.toMatch(/ at [.,]| {2}/);
		}
	});

	it("knows what passes by itself", () => {
		const alone = (["not-running", "refused", "timeout", "cut", "unreachable"] as const).map((kind) => explain(error(kind), FAR));
		expect(alone.some(needsPerson)).toBe(false);
		expect(needsPerson(explain(error("unauthorized"), FAR))).toBe(true);
	});
});
