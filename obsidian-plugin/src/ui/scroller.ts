import { Component } from "obsidian";
import { following, grew, held, jumped, left, placed, released, scrolled, upwards, type Follow, type Metrics } from "../chat/follow";

const UP_KEYS = ["ArrowUp", "PageUp", "Home"];

/**
 * Scrolls a list along with what grows in it, as long as the person is at its end; every decision is made in
 * chat/follow.ts, and all that is done here is to measure and to set.
 */
export class Scroller extends Component {
	private follow: Follow = following();
	private observer: ResizeObserver | null = null;
	private framed = 0;
	/** What was lost when a place was rounded to a pixel; several changes in a row would add up. */
	private rest = 0;

	constructor(
		private readonly el: HTMLElement,
		private readonly contentEl: HTMLElement,
		private readonly changed: (below: boolean) => void,
	) {
		super();
	}

	/** Whether the person is at the end, and is taken along. */
	get following(): boolean {
		return this.follow.active;
	}

	override onload(): void {
		const { el } = this;
		this.registerDomEvent(el, "scroll", () => {
			this.set(scrolled(this.follow, this.measure()));
		});
		this.registerDomEvent(
			el,
			"wheel",
			(event) => {
				if (event.deltaY < 0) this.set(upwards(this.follow));
			},
			{ passive: true },
		);
		this.registerDomEvent(el, "keydown", (event) => {
			if (UP_KEYS.includes(event.key)) this.set(upwards(this.follow));
		});
		this.registerDomEvent(el, "pointerdown", () => {
			this.set(held(this.follow));
		});
		this.observe();
		this.register(el.onWindowMigrated(() => {
			this.set(left(this.follow));
			this.observe();
			this.grew();
		}));
		this.register(() => {
			this.observer?.disconnect();
			el.win.cancelAnimationFrame(this.framed);
		});
	}

	/** Something has another height. Measured once for all that changes in the same frame. */
	grew(): void {
		if (this.framed !== 0) return;
		this.framed = this.el.win.requestAnimationFrame(() => {
			this.framed = 0;
			this.now();
		});
	}

	/** As `grew`, at once. */
	now(): void {
		const step = grew(this.follow, this.measure());
		this.apply(step.follow, step.scrollTo);
	}

	/** To the end, and along with it from now on. */
	jump(): void {
		const step = jumped(this.follow, this.measure());
		this.apply(step.follow, step.scrollTo);
	}

	/** Change what is above while an element stays where the person sees it. */
	keep(anchor: HTMLElement | null, change: () => void, place: (top: number, before: number, after: number) => number): void {
		const before = (anchor?.getBoundingClientRect().top ?? 0) - this.rest;
		change();
		if (!anchor) return;
		this.el.scrollTop = place(this.el.scrollTop, before, anchor.getBoundingClientRect().top);
		const rest = anchor.getBoundingClientRect().top - before;
		this.rest = Math.abs(rest) < 1 ? rest : 0;
		this.set(placed(this.follow, this.measure()));
	}

	private observe(): void {
		this.observer?.disconnect();
		const known = "ResizeObserver" in window;
		if (known) {
			this.observer = new ResizeObserver(() => {
				this.now();
			});
			this.observer.observe(this.contentEl);
			this.observer.observe(this.el);
		}
		const release = (): void => {
			if (!this.follow.held) return;
			this.set(released(this.follow));
			this.grew();
		};
		for (const name of ["pointerup", "pointercancel"] as const) this.registerDomEvent(this.el.win, name, release);
	}

	private measure(): Metrics {
		return { top: this.el.scrollTop, height: this.el.scrollHeight, client: this.el.clientHeight };
	}

	private apply(follow: Follow, scrollTo: number | null): void {
		if (scrollTo !== null) this.el.scrollTop = scrollTo;
		this.set(follow);
	}

	private set(follow: Follow): void {
		this.follow = follow;
		this.changed(follow.below && !follow.active);
	}
}
