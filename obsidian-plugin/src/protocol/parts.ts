import { flag, isObject, list, number, text } from "./values";

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

/** The sources in a list; one without a number or a path is left out. */
export function parseSources(value: unknown): Source[] {
	return list(value, (one) => {
		const path = text(one["path"]);
		const n = number(one["n"]);
		if (path === "" || !Number.isInteger(n) || n < 1) return null;
		return {
			n,
			path,
			title: text(one["title"], path),
			heading: text(one["heading"]),
			link: text(one["link"]),
			start_line: number(one["start_line"]),
			end_line: number(one["end_line"]),
			relevance: number(one["relevance"]),
			collection: text(one["collection"]),
			attached: flag(one["attached"]),
		};
	});
}

/** `{code, message, hint}`, or null. */
export function parseFault(value: unknown): Fault | null {
	if (!isObject(value)) return null;
	return { code: text(value["code"], "error"), message: text(value["message"]), hint: text(value["hint"]) };
}
