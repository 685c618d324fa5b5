/** Longest line in characters; nothing the daemon sends comes near, so that more is something else than NDJSON. */
export const LONGEST = 64 * 1024 * 1024;

/**
 * Makes values of the bytes of an NDJSON stream, wherever chunks cut its lines and characters: a function that gives
 * the values of the lines that a chunk completes. It throws a `SyntaxError` at a line that is no JSON.
 */
export function ndjson(): (chunk: Uint8Array) => unknown[] {
	const decoder = new TextDecoder();
	let rest = "";
	return (chunk) => {
		// only what is new is looked through: a long line comes in many chunks
		const [first = "", ...lines] = decoder.decode(chunk, { stream: true }).split("\n");
		lines.unshift(rest + first);
		rest = lines.pop() ?? "";
		if (rest.length > LONGEST) throw new SyntaxError("a line is too long");
		return lines.filter((line) => line.trim()).map((line) => JSON.parse(line) as unknown);
	};
}
