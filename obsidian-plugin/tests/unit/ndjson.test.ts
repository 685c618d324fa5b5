import { describe, expect, it } from "vitest";
import { CutLine, NdjsonDecoder } from "../../src/protocol/ndjson";

const VALUES = [{ text: "Grüße — 日本語 🍵" }, [1, "\n", null], "line\u2028separator", { nested: { "🗝": "\\\"" } }];
const BYTES = new TextEncoder().encode(VALUES.map((value) => `${JSON.stringify(value)}\n`).join(""));

describe("NdjsonDecoder", () => {
	it("gives the same values wherever the stream is cut in two", () => {
		for (let at = 0; at <= BYTES.length; at += 1) {
			const decoder = new NdjsonDecoder();
			const found = [...decoder.push(BYTES.subarray(0, at)), ...decoder.push(BYTES.subarray(at))];
			decoder.end();
			expect(found).toEqual(VALUES);
		}
	});

	it("gives the same values in chunks of any size", () => {
		for (let size = 1; size <= BYTES.length; size += 1) {
			const decoder = new NdjsonDecoder();
			const found: unknown[] = [];
			for (let at = 0; at < BYTES.length; at += size) found.push(...decoder.push(BYTES.subarray(at, at + size)));
			decoder.end();
			expect(found).toEqual(VALUES);
		}
	});

	it("passes over empty lines and takes CRLF", () => {
		const decoder = new NdjsonDecoder();
		expect(decoder.push(new TextEncoder().encode('\n\r\n{"a":1}\r\n  \n2\n'))).toEqual([{ a: 1 }, 2]);
		decoder.end();
	});

	it("throws when the stream stops inside a line or a character", () => {
		for (const rest of ['{"a":', '{"a":1}']) {
			const decoder = new NdjsonDecoder();
			decoder.push(new TextEncoder().encode(`1\n${rest}`));
			expect(() => {
				decoder.end();
			}).toThrow(CutLine);
		}
		const decoder = new NdjsonDecoder();
		decoder.push(new Uint8Array([0xf0, 0x9f]));
		expect(() => {
			decoder.end();
		}).toThrow(CutLine);
	});

	it("throws at a line that is no JSON", () => {
		expect(() => new NdjsonDecoder().push(new TextEncoder().encode("<html>\n"))).toThrow(SyntaxError);
	});

	it("takes a line of 16 megabytes in small chunks", () => {
		const text = "x".repeat(16 * 1024 * 1024);
		const bytes = new TextEncoder().encode(`${JSON.stringify({ text })}\n`);
		const decoder = new NdjsonDecoder();
		const found: unknown[] = [];
		for (let at = 0; at < bytes.length; at += 4096) found.push(...decoder.push(bytes.subarray(at, at + 4096)));
		expect(found).toEqual([{ text }]);
	});
});
