/** How far the index is behind the notes, in words that stand with an answer or in the status bar. */

/** `{count}`, `{done}` and `{total}` are filled in. */
export interface FreshnessWords {
	readonly behindOne: string;
	readonly behindMany: string;
	readonly indexing: string;
}

/** As "2 notes behind"; "" when the index has everything. */
export function behindText(behind: number, words: FreshnessWords): string {
	if (!(behind >= 1)) return "";
	const count = Math.floor(behind);
	return fill(count === 1 ? words.behindOne : words.behindMany, { count });
}

/** As "Indexing 3 of 10"; "" when there is nothing left to do. */
export function indexingText(done: number, remaining: number, words: FreshnessWords): string {
	if (!(remaining >= 1)) return "";
	const finished = Math.max(0, Math.floor(done));
	return fill(words.indexing, { done: finished, total: finished + Math.floor(remaining) });
}

function fill(sentence: string, values: Readonly<Record<string, number>>): string {
	return sentence.replace(/\{(\w+)\}/g, (whole, name: string) => {
		const value = values[name];
		return value === undefined ? whole : value.toLocaleString();
	});
}
