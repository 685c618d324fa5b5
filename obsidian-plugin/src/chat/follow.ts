/**
 * Whether the pane scrolls along with a growing answer. One rule decides it all: the reader is followed to the end
 * until they move away from it, however they do that, and again once they are back or ask for it.
 *
 * The person's scrolling is told from everybody else's by what is left over: a way up that neither our own last scroll
 * nor a change of the content's or the pane's height explains is theirs. So nothing depends on the order, the number
 * or the time of scroll events, and smooth scrolling is not mistaken for a person.
 */

/** `scrollTop`, `scrollHeight` and `clientHeight` of the list. */
export interface Metrics {
	readonly top: number;
	readonly height: number;
	readonly client: number;
}

/** What is known; made by `following` and changed only by the functions here. */
export interface Follow {
	readonly active: boolean;
	/** Whether there is something below what is seen, so that "Jump to latest" is of use. */
	readonly below: boolean;
	/** Whether a finger or a button is down in the list: until it is up, nothing is scrolled. */
	readonly held: boolean;
	/** How many more times growing does not scroll: the person seems to begin to scroll up. */
	readonly pause: number;
	/** Whether the list is not laid out, so that its position means nothing. */
	readonly away: boolean;
	readonly last: Metrics | null;
}

/** Where to scroll now, or null to leave it; and what is known then. */
export interface Step {
	readonly follow: Follow;
	readonly scrollTo: number | null;
}

/** Within so many pixels of the end, going down counts as being back at it. */
export const NEAR = 24;

const TINY = 1;
const PAUSE = 2;

/** At the end, as in a pane that was just opened. */
export function following(): Follow {
	return { active: true, below: false, held: false, pause: 0, away: false, last: null };
}

/** The list, or the pane, has another size than before. */
export function grew(follow: Follow, now: Metrics): Step {
	if (now.client <= 0) return { follow: left(follow), scrollTo: null };
	if (follow.away) return back(follow, now);
	const seen = noticed(follow, now);
	if (!seen.active || seen.held) return { follow: seen, scrollTo: null };
	if (seen.pause > 0) return { follow: { ...seen, pause: seen.pause - 1 }, scrollTo: null };
	return toEnd(seen, now);
}

/** A scroll event came, from whomever. */
export function scrolled(follow: Follow, now: Metrics): Follow {
	if (now.client <= 0) return left(follow);
	// a list that was hidden begins at its top again; `grew` brings it back to where it was
	return follow.away ? follow : noticed(follow, now);
}

/**
 * The wheel or a key says up, before anything has moved. If nothing moves, as when a box of code took the wheel for
 * itself, following goes on.
 */
export function upwards(follow: Follow): Follow {
	const { last } = follow;
	if (!follow.active || (last && last.height <= last.client + TINY)) return follow;
	return { ...follow, pause: PAUSE };
}

/** A finger or a button went down in the list: to scroll, or to mark text. */
export function held(follow: Follow): Follow {
	return { ...follow, held: true };
}

/** It went up again; the next change of size goes on from where the list is then. */
export function released(follow: Follow): Follow {
	return { ...follow, held: false };
}

/**
 * The person wants to see the end, and what comes after it: "Jump to latest", or a question was sent. With `smooth` the
 * caller scrolls there in steps; each of them is one down, and so no sign of the person's.
 */
export function jumped(follow: Follow, now: Metrics, smooth = false): Step {
	const active: Follow = { ...follow, active: true, held: false, pause: 0, away: false };
	if (now.client <= 0) return { follow: left(active), scrollTo: null };
	const step = toEnd(active, now);
	return smooth ? { ...step, follow: { ...step.follow, last: now } } : step;
}

/** The list goes to another window, or is hidden: its position is forgotten by the browser, and kept here. */
export function left(follow: Follow): Follow {
	return { ...follow, away: true, held: false, pause: 0 };
}

/** We scrolled to `top` ourselves, as after "Show earlier"; that is no sign of the person's. */
export function placed(follow: Follow, now: Metrics): Follow {
	return { ...follow, last: now, below: distance(now) > NEAR };
}

function noticed(follow: Follow, now: Metrics): Follow {
	const { last } = follow;
	const gap = distance(now);
	const known = { ...follow, last: now, below: gap > NEAR };
	if (!last) return known;
	const moved = now.top - last.top;
	// what goes away above moves the position up, what comes there moves it down
	const shrank = Math.max(0, last.height - now.height);
	const gained = Math.max(0, now.height - last.height);
	if (moved < -TINY / 2 - shrank && gap > TINY) return { ...known, active: false, pause: 0 };
	if (moved > TINY / 2 + gained && gap <= NEAR) return { ...known, active: true, pause: 0 };
	return known;
}

function toEnd(follow: Follow, now: Metrics): Step {
	const top = end(now);
	const there = Math.abs(now.top - top) <= TINY / 2;
	return { follow: { ...follow, below: false, last: { ...now, top } }, scrollTo: there ? null : top };
}

function back(follow: Follow, now: Metrics): Step {
	const here = { ...follow, away: false };
	if (follow.active) return toEnd(here, now);
	const top = Math.min(follow.last?.top ?? now.top, end(now));
	return { follow: placed(here, { ...now, top }), scrollTo: Math.abs(now.top - top) > TINY / 2 ? top : null };
}

function end(now: Metrics): number {
	return Math.max(0, now.height - now.client);
}

function distance(now: Metrics): number {
	return end(now) - now.top;
}
