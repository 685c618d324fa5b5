/** Longest line in characters; nothing the daemon sends comes near, so that more is something else than NDJSON. */
const LONGEST = 64 * 1024 * 1024;

/** A stream that stopped inside a line. */
export class CutLine extends Error {
	constructor() {
		super("the stream stopped inside a line");
		this.name = "CutLine";
	}
}

/** Makes values of the bytes of an NDJSON stream, wherever chunks cut its lines and characters. */
export class NdjsonDecoder {
	private readonly decoder = new TextDecoder();
	private pieces: string[] = [];
	private length = 0;

	/** The values of the lines that this chunk completes. Throws a `SyntaxError` at a line that is no JSON. */
	push(chunk: Uint8Array): unknown[] {
		const values: unknown[] = [];
		const rest = this.decoder.decode(chunk, { stream: true }).split("\n");
		const last = rest.pop() ?? "";
		for (const piece of rest) {
			this.keep(piece);
			const line = this.pieces.join("").trim();
			this.pieces = [];
			this.length = 0;
			if (line !== "") values.push(JSON.parse(line) as unknown);
		}
		this.keep(last);
		return values;
	}

	/** To be called when the stream is over; throws a `CutLine` when something is left. */
	end(): void {
		this.keep(this.decoder.decode());
		if (this.pieces.join("").trim() !== "") throw new CutLine();
	}

	private keep(piece: string): void {
		if (piece === "") return;
		this.length += piece.length;
		if (this.length > LONGEST) throw new SyntaxError("a line is too long");
		this.pieces.push(piece);
	}
}
