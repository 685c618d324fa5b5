import { flag, listOf, needed, shape, strict, text, texts, type Reader } from "./values";

/** A line of the memory; `line` is exactly what `forget` wants. */
export interface MemoryLine {
	line: string;
	section: string;
	date: string;
	session: string;
	private: boolean;
}

/** Everything that is remembered. */
export interface Memory {
	enabled: boolean;
	facts: MemoryLine[];
	rules: MemoryLine[];
	noticed: MemoryLine[];
	problem: string;
}

/** A change of the memory that was made. */
export interface MemoryChange {
	path: string;
	diff: string;
}

/** A change that was taken back; the undo is a change itself, by `id`. */
export interface Undone {
	id: string;
	path: string;
	/** Of the note as it is again; null when it is gone. */
	hash: string | null;
}

/** A fact or rule that a review proposes; `replaces` is the line whose place it would take. */
export interface ReviewProposal {
	id: string;
	kind: string;
	text: string;
	why: string;
	replaces: string;
	private: boolean;
	/** Whether it is what the person said of a reply, and not a rule yet. */
	remark: boolean;
}

/** The proposals of a review, and what they would change. */
export interface Review {
	review: string;
	model: string;
	proposals: ReviewProposal[];
	diff: string;
}

const lines: Reader<MemoryLine[]> = listOf(
	strict({ line: needed(text), section: text, date: text, session: text, private: flag }),
);

/** What is remembered. */
export const parseMemory: Reader<Memory> = shape({
	enabled: (enabled) => enabled !== false,
	facts: lines,
	rules: lines,
	noticed: lines,
	problem: text,
});

/** What became of a change of the memory. */
export const parseMemoryChange: Reader<MemoryChange> = shape({ path: text, diff: text });

/** What was taken back. */
export const parseUndone: Reader<Undone> = shape({ id: text, path: text, hash: (hash) => text(hash) || null });

/** The proposals of a review. */
export const parseReview: Reader<Review> = shape({
	review: text,
	model: text,
	proposals: listOf(strict({ id: needed(text), kind: text, text, why: text, replaces: text, private: flag, remark: flag })),
	diff: text,
});

/** What applying a review wrote. */
export interface Applied {
	written: string[];
	diff: string;
}

/** What applying a review wrote. */
export const parseApplied: Reader<Applied> = shape({ written: texts, diff: text });
