/** Which of the notes that the daemon calls related are listed. Pure. */

import type { Hit } from "../protocol/events";

/** What is left out; paths are relative to the vault. */
export interface RelatedRules {
	readonly here: string;
	readonly count: number;
	/** Folders, without slashes around. */
	readonly exclude: readonly string[];
	/** Notes that the one here links to, or that link to it. */
	readonly linked: ReadonlySet<string>;
	readonly hideLinked: boolean;
	/** Whether a passage is from the note of a conversation, which is left out. */
	readonly isLog?: (hit: Hit) => boolean;
}

/** One entry per note, the nearest first. The memory is nobody's related note. */
export function pickRelated(hits: readonly Hit[], rules: RelatedRules): Hit[] {
	const seen = new Set([rules.here]);
	const found: Hit[] = [];
	for (const hit of hits) {
		if (hit.collection !== "" || hit.memory_type !== "" || seen.has(hit.path)) continue;
		if (rules.isLog?.(hit)) continue;
		if (rules.exclude.some((folder) => hit.path.startsWith(`${folder}/`))) continue;
		if (rules.hideLinked && rules.linked.has(hit.path)) continue;
		seen.add(hit.path);
		found.push(hit);
		if (found.length === rules.count) break;
	}
	return found;
}

/** How many to ask for, so that enough are left. */
export function askFor(rules: Pick<RelatedRules, "count" | "exclude" | "hideLinked" | "isLog">): number {
	const picky = rules.hideLinked || rules.exclude.length > 0 || rules.isLog !== undefined;
	return Math.min(rules.count * (picky ? 4 : 2) + 10, 200);
}

/** Notes that are linked with the one at `path`, either way, by the app's own list of links. */
export function linkedWith(links: Readonly<Record<string, Readonly<Record<string, number>>>>, path: string): Set<string> {
	const linked = new Set(Object.keys(links[path] ?? {}));
	for (const [source, targets] of Object.entries(links)) if (path in targets) linked.add(source);
	return linked;
}

/** The daemon's reasons in words, each once; its figures are for looking into a search, not for reading. */
export function reasons(why: readonly string[], similar: string): string[] {
	const said = why.map((one) => (one.startsWith("meaning ") ? similar : one.charAt(0).toUpperCase() + one.slice(1)));
	return [...new Set(said)];
}
