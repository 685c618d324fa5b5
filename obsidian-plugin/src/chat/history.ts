/** The list of conversations: found by words, and by days. */

import { fold, words } from "./fold";

/** The conversations whose titles have every word of the query somewhere; case and accents do not matter. */
export function filterHistory<T extends { readonly title: string }>(list: readonly T[], query: string): T[] {
	const wanted = words(query);
	return list.filter((one) => {
		const title = fold(one.title);
		return wanted.every((word) => title.includes(word));
	});
}

const DAY_MS = 86_400_000;

/**
 * How many days ago a time was, by the calendar of this time zone: 0 is today, and so is what a clock that is fast puts
 * into the future. `seconds` are since 1970.
 */
export function daysAgo(seconds: number, now: Date): number {
	return Math.max(0, calendarDay(now) - calendarDay(new Date(seconds * 1000)));
}

/** The number of a date, counted from 1970: days are not all of 24 hours where clocks are changed. */
function calendarDay(date: Date): number {
	return Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) / DAY_MS;
}
