/** The list of conversations, found by words. */

import { fold, words } from "./fold";

/** The conversations whose titles have every word of the query somewhere; case and accents do not matter. */
export function filterHistory<T extends { readonly title: string }>(list: readonly T[], query: string): T[] {
	const wanted = words(query);
	return list.filter((one) => {
		const title = fold(one.title);
		return wanted.every((word) => title.includes(word));
	});
}
