/** Which of the notes that the daemon calls related are listed. Pure. */

import type { Hit } from "../protocol/events";

/** What is left out; paths are relative to the vault. */
export interface RelatedRules {
	readonly here: string;
	readonly count: number;
	/** Folders, without slashes around. */
	readonly exclude: readonly string[];
	/** Notes that are hidden because they are linked with the one here. */
	readonly linked: ReadonlySet<string>;
	/** Whether a passage is from the note of a conversation, which is left out. */
	readonly isLog: (hit: Hit) => boolean;
}

/** One entry per note, the nearest first. The memory is nobody's related note. */
export function pickRelated(hits: readonly Hit[], { here, count, exclude, linked, isLog }: RelatedRules): Hit[] {
	const seen = new Set([here, ...linked]);
	return hits.filter((hit) => {
		const { path, collection, memory_type } = hit;
		if (collection !== "" || memory_type !== "" || seen.has(path) || isLog(hit)) return false;
		seen.add(path);
		return !exclude.some((folder) => path.startsWith(`${folder}/`));
	}).slice(0, count);
}

/** How many passages to ask for, so that enough notes are left of them; the daemon gives 200 at most. */
export function askFor(count: number): number {
	return Math.min(count * 4 + 10, 200);
}

/** Notes that are linked with the one at `path`, either way, by the app's own list of links. */
export function linkedWith(links: Readonly<Record<string, Readonly<Record<string, number>>>>, path: string): string[] {
	return [...Object.keys(links[path] ?? {}), ...Object.keys(links).filter((source) => path in (links[source] ?? {}))];
}

/** The daemon's reasons in words, each once; its figures are for looking into a search, not for reading. */
export function reasons(why: readonly string[], similar: string): string[] {
	const said = why.map((one) => (one.startsWith("meaning ") ? similar : one.charAt(0).toUpperCase() + one.slice(1)));
	return [...new Set(said)];
}
