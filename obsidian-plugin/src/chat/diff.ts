/** A unified diff as lines to draw, with the words that differ within changed lines. */

/** A stretch of a line; `changed` where it is not in the line's counterpart. */
export interface Segment {
	readonly text: string;
	readonly changed: boolean;
}

/** `text` has no `+`, `-` or space. */
export interface DiffLine {
	readonly kind: "file" | "hunk" | "context" | "add" | "remove" | "note";
	readonly text: string;
	/** Only for a changed line that has a counterpart; joined they are the text. */
	readonly segments?: readonly Segment[];
}

const HUNK = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/;
const MOST_TOKENS = 400;
/** Lines with less in common than this are two different lines, and nobody is helped by a mosaic. */
const ALIKE = 0.4;

/**
 * The lines of a diff, of several files if it has them. What is no diff comes back as lines of kind "note", empty ones
 * left out.
 */
export function parseDiff(diff: string): DiffLine[] {
	const found: DiffLine[] = [];
	const add = (kind: DiffLine["kind"], text: string): void => {
		if (text) found.push({ kind, text });
	};
	let [olds, news] = [0, 0];
	for (const row of diff.replace(/\r\n?/g, "\n").replace(/\n$/, "").split("\n")) {
		const hunk = HUNK.exec(row);
		const sign = row[0];
		const text = row.slice(1);
		if (hunk) {
			[olds, news] = [Number(hunk[1] ?? 1), Number(hunk[2] ?? 1)];
			add("hunk", row);
		} else if (sign === "\\") add("note", text.trim());
		// only the counts of its hunk tell a removed "-- x" from the head of a file
		else if (olds <= 0 && news <= 0) add(/^(---|\+\+\+) /.test(row) ? "file" : "note", row);
		else {
			if (sign !== "+") olds--;
			if (sign !== "-") news--;
			found.push({ kind: sign === "+" ? "add" : sign === "-" ? "remove" : "context", text });
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
function withWords(lines: DiffLine[]): DiffLine[] {
	/** The end of the run of lines of a kind. */
	const run = (start: number, kind: DiffLine["kind"]): number => {
		while (lines[start]?.kind === kind) start++;
		return start;
	};
	for (let start = 0; start < lines.length; ) {
		const removed = run(start, "remove");
		// between them it may say that the last line had no end
		const first = removed > start && lines[removed]?.kind === "note" ? removed + 1 : removed;
		const added = run(first, "add");
		for (let n = 0; n < Math.min(removed - start, added - first); n++) {
			const [one, other] = [lines[start + n], lines[first + n]];
			const words = one && other && compare(one.text, other.text);
			if (!words) continue;
			lines[start + n] = { ...one, segments: words[0] };
			lines[first + n] = { ...other, segments: words[1] };
		}
		start = Math.max(added, start + 1);
	}
	return lines;
}

/** Both texts with what is not in the other one marked; null when they have too little in common. */
export function compare(one: string, other: string): [Segment[], Segment[]] | null {
	const [a, b] = [tokens(one), tokens(other)];
	if (a.length > MOST_TOKENS || b.length > MOST_TOKENS || one === other) return null;
	const [inA, inB] = common(a, b);
	const shared = solid(a.filter((_, index) => inA[index]).join(""));
	const whole = Math.max(solid(one), solid(other));
	if (!whole || shared / whole < ALIKE) return null;
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
	const inA: boolean[] = [];
	const inB: boolean[] = [];
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
