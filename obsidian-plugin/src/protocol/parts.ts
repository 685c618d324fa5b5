import { flag, listOf, needed, number, strict, text, type Reader } from "./values";

/** A passage that an answer rests on; `n` is the number that `[n]` in the text refers to. */
export interface Source {
	n: number;
	path: string;
	title: string;
	heading: string;
	/** As a wikilink: `[[Folder/Note#Heading]]`. */
	link: string;
	start_line: number;
	end_line: number;
	relevance: number;
	/** "" for the vault itself; notes of other collections cannot be opened here. */
	collection: string;
	attached: boolean;
}

/** What went wrong and what to do, in the daemon's words. */
export interface Fault {
	code: string;
	message: string;
	hint: string;
}

/** The fields that a passage has wherever it is spoken of. */
export const PASSAGE = {
	path: needed(text),
	title: text,
	heading: text,
	link: text,
	start_line: number,
	end_line: number,
	relevance: number,
	collection: text,
};

/** What has no title is called by its path. */
export function titled<T extends { path: string; title: string }>(read: Reader<T | null>): Reader<T | null> {
	return (value) => {
		const found = read(value);
		if (found) found.title ||= found.path;
		return found;
	};
}

const sourcesWith = (n: Reader<number>): Reader<Source[]> => listOf(titled(strict({ n, ...PASSAGE, attached: flag })));

/** The sources in a list; one without a number or a path is left out. */
export const parseSources = sourcesWith(needed((n) => (Number.isInteger(n) ? Math.max(number(n), 0) : 0)));

/** The near misses in a list: no marker means them, so that their number is 0. */
export const parseClosest = sourcesWith(number);

/** `{code, message, hint}`, or null. */
export const parseFault: Reader<Fault | null> = strict({ code: (code) => text(code) || "error", message: text, hint: text });
