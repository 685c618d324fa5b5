import { describe, expect, it } from "vitest";
import { addressText, isLoopback, parseAddress } from "../../src/transport/address";
import { plan } from "../../src/transport/choose";
import { retryDelay } from "../../src/daemon/backoff";

const DESKTOP = { node: true, windows: false, ios: false };

describe("plan", () => {
	it.each([
		["a desktop", DESKTOP, "", ["unix"]],
		["a desktop with an address", DESKTOP, "127.0.0.1:8620", ["unix", "tcp"]],
		["Windows", { ...DESKTOP, windows: true }, "127.0.0.1:8620", ["tcp"]],
		["Windows without an address", { ...DESKTOP, windows: true }, "", []],
		["a phone without an address", { node: false, windows: false, ios: true }, "", []],
		["an iPhone over https", { node: false, windows: false, ios: true }, "https://notes.example", ["fetch", "poll"]],
		["an iPhone over http", { node: false, windows: false, ios: true }, "http://10.0.0.2:8620", ["poll"]],
		["Android over http", { node: false, windows: false, ios: false }, "http://10.0.0.2:8620", ["fetch", "poll"]],
		["an address that is none", { node: false, windows: false, ios: false }, "ftp://x", []],
	] as const)("on %s", (_, host, address, kinds) => {
		expect(plan(host, { address })).toEqual(kinds);
	});
});

describe("parseAddress", () => {
	it.each([
		["127.0.0.1:8620", "http://127.0.0.1:8620"],
		["  https://Notes.Example/tarsd/ ", "https://notes.example/tarsd"],
		["[::1]:8620", "http://[::1]:8620"],
		["https://x:443", "https://x"],
		["HTTP://x//", "http://x"],
	])("reads %s", (typed, shown) => {
		const address = parseAddress(typed);
		expect(address === null ? null : addressText(address)).toBe(shown);
	});

	it.each(["", " ", "ftp://x", "file:///etc/passwd", "javascript:alert(1)", "https://user:pass@x", "http://x?q=1", "http://x#f", "http://", "http://:80", "a b"])(
		"refuses “%s”",
		(typed) => {
			expect(parseAddress(typed)).toBeNull();
		},
	);

	it("knows what stays on this machine", () => {
		const loopback = (typed: string): boolean => {
			const address = parseAddress(typed);
			return address !== null && isLoopback(address);
		};
		expect(["localhost", "127.0.0.1:1", "127.1.2.3", "[::1]"].map(loopback)).toEqual([true, true, true, true]);
		expect(["localhost.example", "127.0.0.1.example", "10.0.0.1", "[::2]"].map(loopback)).toEqual([false, false, false, false]);
	});
});

describe("retryDelay", () => {
	it("doubles up to fifteen seconds, for ever", () => {
		expect([0, 1, 2, 5, 6, 7, 50, 5000].map(retryDelay)).toEqual([250, 500, 1000, 8000, 15_000, 15_000, 15_000, 15_000]);
	});
});
