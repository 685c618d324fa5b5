import type { Component } from "obsidian";
import { following, grew, held, jumped, left, placed, released, scrolled, upwards, type Follow, type Metrics, type Step } from "../chat/follow";
import { anchored } from "../chat/window";

const UP_KEYS = ["ArrowUp", "PageUp", "Home"];

export interface Scroller {
	/** Whether the person is at the end, and is taken along. */
	readonly following: () => boolean;
	/** Something has another height. Measured once for all that changes in the same frame. */
	readonly grew: () => void;
	/** As `grew`, at once. */
	readonly now: () => void;
	/** To the end, and along with it from now on. */
	readonly jump: () => void;
	/** Change what is above while an element stays where the person sees it. */
	readonly keep: (anchor: Element | null, change: () => void) => void;
}

/**
 * Scrolls a list along with what grows in it, as long as the person is at its end; every decision is made in
 * chat/follow.ts, and all that is done here is to measure and to set. `changed` is told whether there is more below.
 */
export function scroller(el: HTMLElement, content: HTMLElement, owner: Component, changed: (below: boolean) => void): Scroller {
	let follow = following();
	let framed = 0;
	/** What was lost when a place was rounded to a pixel; several changes in a row would add up. */
	let rest = 0;

	const measure = (): Metrics => ({ top: el.scrollTop, height: el.scrollHeight, client: el.clientHeight });
	const set = (next: Follow): void => {
		follow = next;
		changed(follow.below && !follow.active);
	};
	const go = (step: Step): void => {
		if (step.scrollTo !== null) el.scrollTop = step.scrollTo;
		set(step.follow);
	};
	const now = (): void => {
		go(grew(follow, measure()));
	};
	const later = (): void => {
		framed ||= el.win.requestAnimationFrame(() => {
			framed = 0;
			now();
		});
	};
	const release = (): void => {
		if (!follow.held) return;
		set(released(follow));
		later();
	};
	const watch = (): void => {
		owner.registerDomEvent(el.win, "pointerup", release);
		owner.registerDomEvent(el.win, "pointercancel", release);
	};

	el.onscroll = () => {
		set(scrolled(follow, measure()));
	};
	el.addEventListener("wheel", ({ deltaY }) => deltaY < 0 && set(upwards(follow)), { passive: true });
	el.onkeydown = ({ key }) => {
		if (UP_KEYS.includes(key)) set(upwards(follow));
	};
	el.onpointerdown = () => {
		set(held(follow));
	};
	const observer = new ResizeObserver(now);
	observer.observe(content);
	observer.observe(el);
	watch();
	owner.register(
		el.onWindowMigrated(() => {
			set(left(follow));
			watch();
			later();
		}),
	);
	owner.register(() => {
		observer.disconnect();
		el.win.cancelAnimationFrame(framed);
	});

	return {
		following: () => follow.active,
		grew: later,
		now,
		jump: () => {
			go(jumped(follow, measure()));
		},
		keep: (anchor, change) => {
			const top = (): number => anchor?.getBoundingClientRect().top ?? 0;
			const before = top() - rest;
			change();
			if (!anchor) return;
			el.scrollTop = anchored(el.scrollTop, before, top());
			const lost = top() - before;
			rest = Math.abs(lost) < 1 ? lost : 0;
			set(placed(follow, measure()));
		},
	};
}
