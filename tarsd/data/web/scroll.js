/** Follows the end of a list that grows, unless the reader looks further up. */

const NEAR = 24;

export class Tail {
	follows = true;
	#held = false;
	#rest = 0;
	#last = { top: 0, height: 0 };

	constructor(list, content, jump) {
		Object.assign(this, { list, jump });
		list.addEventListener("scroll", () => this.#moved(), { passive: true });
		// a way up begins with a step so small that following would take it back
		list.addEventListener("wheel", ({ deltaY }) => deltaY < 0 && (this.#rest = performance.now() + 200), { passive: true });
		list.addEventListener("pointerdown", () => (this.#held = true));
		for (const name of ["pointerup", "pointercancel"]) addEventListener(name, () => (this.#held = false));
		jump.onclick = () => this.toEnd();
		const sizes = new ResizeObserver(() => {
			if (this.follows && !this.#held && performance.now() > this.#rest) list.scrollTop = list.scrollHeight;
			this.#note();
		});
		for (const el of [list, content]) sizes.observe(el);
	}

	/** To the end, and along with it from now on. */
	toEnd() {
		this.follows = true;
		this.list.scrollTop = this.list.scrollHeight;
		this.#note();
	}

	/** Change what is above while `anchor` stays where the reader sees it. */
	keep(anchor, change) {
		const before = anchor.getBoundingClientRect().top;
		change();
		this.list.scrollTop += anchor.getBoundingClientRect().top - before;
		this.#note();
	}

	show(el) {
		this.follows = false;
		el.scrollIntoView({ block: "center" });
	}

	/** A way up that nothing explains but the reader is the reader's. */
	#moved() {
		const { top, height } = this.#last;
		const moved = this.list.scrollTop - top;
		if (moved < -0.5 - Math.max(0, height - this.list.scrollHeight) && this.#gap > 1) this.follows = false;
		else if (moved > 0 && this.#gap <= NEAR) this.follows = true;
		this.#note();
	}

	#note() {
		this.#last = { top: this.list.scrollTop, height: this.list.scrollHeight };
		this.jump.hidden = this.follows || this.#gap <= NEAR;
	}

	get #gap() {
		return this.list.scrollHeight - this.list.clientHeight - this.list.scrollTop;
	}
}
