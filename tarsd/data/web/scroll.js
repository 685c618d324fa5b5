/** Follows the end of a list that grows, until the reader looks further up; and again once they are back. */

const NEAR = 24;

export class Tail {
	#stick = true;
	#held = false;
	#rest = 0;
	#last = { top: 0, height: 0 };

	/** `jump` is the button that leads back to the end. */
	constructor(list, content, jump) {
		Object.assign(this, { list, jump });
		list.addEventListener("scroll", () => this.#moved(), { passive: true });
		// a scroll up begins with a step so small that following would take it back
		list.addEventListener("wheel", ({ deltaY }) => deltaY < 0 && (this.#rest = performance.now() + 200), { passive: true });
		list.addEventListener("pointerdown", () => (this.#held = true));
		for (const name of ["pointerup", "pointercancel"]) addEventListener(name, () => (this.#held = false));
		jump.addEventListener("click", () => this.toEnd());
		const sizes = new ResizeObserver(() => this.#grew());
		sizes.observe(list);
		sizes.observe(content);
	}

	/** Whether the reader is at the end. */
	get follows() {
		return this.#stick;
	}

	/** To the end, and along with it from now on. */
	toEnd() {
		this.#stick = true;
		this.list.scrollTop = this.list.scrollHeight;
		this.#moved();
	}

	/** Change what is above while `anchor` stays where the reader sees it. */
	keep(anchor, change) {
		const before = anchor.getBoundingClientRect().top;
		change();
		this.list.scrollTop += anchor.getBoundingClientRect().top - before;
		this.#note();
	}

	/** Show an element; the reader has left the end. */
	show(el) {
		this.#stick = false;
		el.scrollIntoView({ block: "center" });
	}

	#grew() {
		if (this.#stick && !this.#held && performance.now() > this.#rest) this.list.scrollTop = this.list.scrollHeight;
		this.#note();
	}

	/** A way up that nothing explains but the reader is the reader's. */
	#moved() {
		const { scrollTop: top, scrollHeight: height } = this.list;
		const shrank = Math.max(0, this.#last.height - height);
		if (top < this.#last.top - shrank - 0.5 && this.#gap > 1) this.#stick = false;
		else if (top > this.#last.top && this.#gap <= NEAR) this.#stick = true;
		this.#note();
	}

	#note() {
		this.#last = { top: this.list.scrollTop, height: this.list.scrollHeight };
		this.jump.hidden = this.#stick || this.#gap <= NEAR;
	}

	get #gap() {
		return this.list.scrollHeight - this.list.clientHeight - this.list.scrollTop;
	}
}
