/** A unified diff as lines to draw, with the words that differ within changed lines. */

/** A stretch of a line; `changed` where it is not in the line's counterpart. */
export interface Segment {
	readonly text: string;
	readonly changed: boolean;
}

/** Numbers of lines count from 1 and are null where the line is not on that side. `text` has no `+`, `-` or space. */
export interface DiffLine {
	readonly kind: "file" | "hunk" | "context" | "add" | "remove" | "note";
	readonly text: string;
	readonly before: number | null;
	readonly after: number | null;
	/** Only for a changed line that has a counterpart; joined they are the text. */
	readonly segments?: readonly Segment[];
}

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$/;
const MOST_TOKENS = 400;
/** Lines with less in common than this are two different lines, and nobody is helped by a mosaic. */
const ALIKE = 0.4;

/**
 * The lines of a diff, of several files if it has them. What is no diff comes back as lines of kind "note", empty ones
 * left out.
 */
export function parseDiff(diff: string): DiffLine[] {
	const found: DiffLine[] = [];
	let [before, after, olds, news] = [0, 0, 0, 0];
	const rows = diff.replace(/\r\n?/g, "\n").split("\n");
	if (rows[rows.length - 1] === "") rows.pop();
	for (const row of rows) {
		const hunk = HUNK.exec(row);
		if (hunk) {
			[before, after] = [Number(hunk[1]), Number(hunk[3])];
			[olds, news] = [Number(hunk[2] ?? 1), Number(hunk[4] ?? 1)];
			found.push({ kind: "hunk", text: row, before: null, after: null });
		} else if (row.startsWith("\\")) {
			found.push({ kind: "note", text: row.slice(1).trim(), before: null, after: null });
		} else if (olds <= 0 && news <= 0) {
			// only the counts of its hunk tell a removed "-- x" from the head of a file
			const file = row.startsWith("--- ") || row.startsWith("+++ ");
			if (row) found.push({ kind: file ? "file" : "note", text: row, before: null, after: null });
		} else if (row.startsWith("+")) {
			found.push({ kind: "add", text: row.slice(1), before: null, after: after++ });
			news--;
		} else if (row.startsWith("-")) {
			found.push({ kind: "remove", text: row.slice(1), before: before++, after: null });
			olds--;
		} else {
			found.push({ kind: "context", text: row.slice(1), before: before++, after: after++ });
			olds--;
			news--;
		}
	}
	return withWords(found);
}

/** How many lines come and go, for the line above a folded diff. */
export function countChanges(lines: readonly DiffLine[]): { added: number; removed: number } {
	const of = (kind: DiffLine["kind"]): number => lines.filter((line) => line.kind === kind).length;
	return { added: of("add"), removed: of("remove") };
}

/** The path of a "file" line without `a/` or `b/`; "" for /dev/null, which stands for a note that is not there. */
export function pathOf(line: DiffLine): string {
	const name = line.text.slice(4).replace(/\t.*$/, "");
	return name === "/dev/null" ? "" : name.replace(/^[ab]\//, "");
}

/** Removed lines and the added ones right after them are counterparts, in their order. */
function withWords(lines: readonly DiffLine[]): DiffLine[] {
	const result = [...lines];
	for (let start = 0; start < lines.length; ) {
		const removed = run(lines, start, "remove");
		// between them it may say that the last line had no end
		const first = removed > start && lines[removed]?.kind === "note" ? removed + 1 : removed;
		const added = run(lines, first, "add");
		for (let n = 0; n < Math.min(removed - start, added - first); n++) {
			const [one, other] = [lines[start + n], lines[first + n]];
			const words = one && other ? compare(one.text, other.text) : null;
			if (!one || !other || !words) continue;
			result[start + n] = { ...one, segments: words[0] };
			result[first + n] = { ...other, segments: words[1] };
		}
		start = Math.max(added, start + 1);
	}
	return result;
}

/** The end of the run of lines of a kind. */
function run(lines: readonly DiffLine[], start: number, kind: DiffLine["kind"]): number {
	let end = start;
	while (lines[end]?.kind === kind) end++;
	return end;
}

/** Both texts with what is not in the other one marked; null when they have too little in common. */
export function compare(one: string, other: string): [Segment[], Segment[]] | null {
	const [a, b] = [tokens(one), tokens(other)];
	if (a.length > MOST_TOKENS || b.length > MOST_TOKENS || one === other) return null;
	const [inA, inB] = common(a, b);
	const shared = a.reduce((sum, token, index) => sum + (inA[index] && token.trim() ? token.length : 0), 0);
	const whole = Math.max(solid(one), solid(other));
	if (whole === 0 || shared / whole < ALIKE) return null;
	return [segments(a, inA), segments(b, inB)];
}

function solid(text: string): number {
	return text.replace(/\s+/g, "").length;
}

function tokens(text: string): string[] {
	return text.match(/[\p{L}\p{N}\p{M}_]+|\s+|[^\p{L}\p{N}\p{M}_\s]/gu) ?? [];
}

/** Which tokens of each belong to their longest common subsequence. */
function common(a: readonly string[], b: readonly string[]): [boolean[], boolean[]] {
	const width = b.length + 1;
	const table = new Uint16Array((a.length + 1) * width);
	const cell = (i: number, j: number): number => table[i * width + j] ?? 0;
	for (let i = a.length - 1; i >= 0; i--) {
		for (let j = b.length - 1; j >= 0; j--) {
			table[i * width + j] = a[i] === b[j] ? cell(i + 1, j + 1) + 1 : Math.max(cell(i + 1, j), cell(i, j + 1));
		}
	}
	const [inA, inB] = [a.map(() => false), b.map(() => false)];
	for (let i = 0, j = 0; i < a.length && j < b.length; ) {
		if (a[i] === b[j]) inA[i++] = inB[j++] = true;
		else if (cell(i + 1, j) >= cell(i, j + 1)) i++;
		else j++;
	}
	return [inA, inB];
}

function segments(parts: readonly string[], shared: readonly boolean[]): Segment[] {
	const found: { text: string; changed: boolean }[] = [];
	parts.forEach((text, index) => {
		const changed = !shared[index];
		const last = found[found.length - 1];
		if (last && last.changed === changed) last.text += text;
		else found.push({ text, changed });
	});
	return found;
}
