/** The list of conversations: found by words, grouped by day. */

import { fold, words } from "./fold";

/** A line of the list; times are seconds since 1970. */
export interface Listed {
	readonly id: string;
	readonly title: string;
	readonly updated: number;
}

/** The conversations of one day, the last first. `date` is that day's local midnight. */
export interface Day<T extends Listed> {
	readonly kind: "today" | "yesterday" | "day";
	readonly date: Date;
	readonly items: readonly T[];
}

/** The conversations whose titles have every word of the query somewhere; case and accents do not matter. */
export function filterHistory<T extends Listed>(list: readonly T[], query: string): T[] {
	const wanted = words(query);
	return list.filter((one) => {
		const title = fold(one.title);
		return wanted.every((word) => title.includes(word));
	});
}

/** By local days, the last first. What a fast clock puts into the future counts as today. */
export function byDay<T extends Listed>(list: readonly T[], now: Date): Day<T>[] {
	const today = midnight(now, 0);
	const yesterday = midnight(now, -1);
	const days = new Map<number, T[]>();
	for (const one of [...list].sort((a, b) => b.updated - a.updated || (a.id < b.id ? -1 : 1))) {
		const at = Math.min(midnight(new Date(one.updated * 1000), 0), today);
		const day = days.get(at);
		if (day) day.push(one);
		else days.set(at, [one]);
	}
	return [...days].map(([at, items]) => ({
		kind: at === today ? "today" : at === yesterday ? "yesterday" : "day",
		date: new Date(at),
		items,
	}));
}

/** Days are counted in the calendar: with a change of the clocks they are not of 24 hours. */
function midnight(date: Date, days: number): number {
	return new Date(date.getFullYear(), date.getMonth(), date.getDate() + days).getTime();
}
