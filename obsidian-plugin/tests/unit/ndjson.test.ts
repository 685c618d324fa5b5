import { describe, expect, it } from "vitest";
import { ndjson } from "../../src/protocol/ndjson";

const VALUES = [{ text: "Grüße — 日本語 🍵" }, [1, "\n", null], "line\u2028separator", { nested: { "🗝": "\\\"" } }];
const BYTES = new TextEncoder().encode(VALUES.map((value) => `${JSON.stringify(value)}\n`).join(""));

describe("ndjson", () => {
	it("gives the same values wherever the stream is cut in two", () => {
		for (let at = 0; at <= BYTES.length; at += 1) {
			const push = ndjson();
			const found = [...push(BYTES.subarray(0, at)), ...push(BYTES.subarray(at))];
			expect(found).toEqual(VALUES);
		}
	});

	it("gives the same values in chunks of any size", () => {
		for (let size = 1; size <= BYTES.length; size += 1) {
			const push = ndjson();
			const found: unknown[] = [];
			for (let at = 0; at < BYTES.length; at += size) found.push(...push(BYTES.subarray(at, at + size)));
			expect(found).toEqual(VALUES);
		}
	});

	it("passes over empty lines and takes CRLF", () => {
		const push = ndjson();
		expect(push(new TextEncoder().encode('\n\r\n{"a":1}\r\n  \n2\n'))).toEqual([{ a: 1 }, 2]);
	});

	it("gives nothing for a line without its end", () => {
		for (const rest of ['{"a":', '{"a":1}']) expect(ndjson()(new TextEncoder().encode(`1\n${rest}`))).toEqual([1]);
		expect(ndjson()(new Uint8Array([0xf0, 0x9f]))).toEqual([]);
	});

	it("throws at a line that is no JSON", () => {
		expect(() => ndjson()(new TextEncoder().encode("<html>\n"))).toThrow(SyntaxError);
	});

	it("takes a line of 16 megabytes in small chunks", () => {
		const text = "x".repeat(16 * 1024 * 1024);
		const bytes = new TextEncoder().encode(`${JSON.stringify({ text })}\n`);
		const push = ndjson();
		const found: unknown[] = [];
		for (let at = 0; at < bytes.length; at += 4096) found.push(...push(bytes.subarray(at, at + 4096)));
		expect(found).toEqual([{ text }]);
	});
});
