/** Which messages of a long conversation are drawn: the last ones, and earlier ones when they are asked for. */

/** The messages from `from` up to the last are drawn. */
export interface Shown {
	readonly from: number;
	/** How many there are in all. */
	readonly total: number;
}

/** Messages are questions with their answers, so that these are about 60 boxes on the screen. */
export const SHOWN = 30;

/** How many more than `SHOWN` may gather at the end before the first ones go, so that not every answer moves all. */
export const SLACK = 10;

/** The window on a conversation that was just opened. */
export function opened(total: number): Shown {
	return { from: Math.max(0, total - SHOWN), total };
}

/** Whether "Show earlier" has something to show, and how many there are. */
export function hidden(shown: Shown): number {
	return shown.from;
}

/** The person wants to see more. */
export function earlier(shown: Shown): Shown {
	return { ...shown, from: Math.max(0, shown.from - SHOWN) };
}

/**
 * The conversation has `total` messages now. Only while the reader is at the end do the first ones go: anybody who
 * reads further up would see the text jump, or what they opened close again.
 */
export function grown(shown: Shown, total: number, following: boolean): Shown {
	if (total < shown.total) return { from: Math.min(shown.from, Math.max(0, total - SHOWN)), total };
	const from = following && total - shown.from > SHOWN + SLACK ? total - SHOWN : shown.from;
	return { from, total };
}

/**
 * Where to scroll so that what the reader looked at stays in its place after something above it came or went. Both
 * places are those of the same element, as `getBoundingClientRect().top` says them. Browsers that keep the place by
 * themselves are asked for nothing more.
 */
export function anchored(scrollTop: number, before: number, after: number): number {
	return Math.max(0, scrollTop + (after - before));
}
