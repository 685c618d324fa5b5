import { describe, expect, it } from "vitest";
import { following, grew, held, jumped, left, placed, released, scrolled, upwards, type Follow, type Step } from "../../src/chat/follow";
import { Dice } from "./chat-events";

/** A list as a browser has it: it clamps its position, and tells of every change of it later. */
class List {
	follow: Follow = following();
	top = 0;
	private pending = false;

	constructor(
		public height = 2000,
		public client = 500,
	) {
		this.apply(jumped(this.follow, this.metrics()));
		this.tell();
	}

	get end(): number {
		return Math.max(0, this.height - this.client);
	}

	get atEnd(): boolean {
		return Math.abs(this.end - this.top) <= 1;
	}

	metrics(): { top: number; height: number; client: number } {
		return { top: this.top, height: this.height, client: this.client };
	}

	/** The content is so many pixels longer, or shorter, at its end. */
	grow(by: number): void {
		this.height = Math.max(0, this.height + by);
		this.move(this.top);
		this.apply(grew(this.follow, this.metrics()));
	}

	/** The person moves the list; the event comes with `tell`. */
	drag(by: number): void {
		this.move(this.top + by);
	}

	tell(): void {
		if (this.pending) this.follow = scrolled(this.follow, this.metrics());
		this.pending = false;
	}

	resize(client: number): void {
		this.client = client;
		this.move(this.top);
		this.apply(grew(this.follow, this.metrics()));
	}

	jump(): void {
		this.apply(jumped(this.follow, this.metrics()));
	}

	private move(to: number): void {
		const top = Math.min(Math.max(0, to), this.end);
		if (top !== this.top) this.pending = true;
		this.top = top;
	}

	private apply(step: Step): void {
		this.follow = step.follow;
		if (step.scrollTo !== null) this.move(step.scrollTo);
	}
}

describe("a reader at the end", () => {
	it("is followed, whenever the events come", () => {
		const list = new List();
		for (let n = 0; n < 50; n++) {
			list.grow(37);
			if (n % 3 === 0) list.tell();
			expect(list.atEnd).toBe(true);
		}
	});

	it("is followed from a list that fits into a list that does not", () => {
		const list = new List(100);
		for (let n = 0; n < 20; n++) list.grow(60);
		expect(list.atEnd).toBe(true);
		expect(list.follow.below).toBe(false);
	});

	it("is followed while what was drawn gets shorter again", () => {
		const list = new List();
		for (const by of [300, -250, 10, -900, 40]) {
			list.grow(by);
			list.tell();
			expect(list.atEnd).toBe(true);
		}
		expect(list.follow.active).toBe(true);
	});

	it("is followed when the pane gets smaller or larger, as with a phone's keyboard", () => {
		const list = new List();
		for (const client of [200, 700, 300, 500]) {
			list.resize(client);
			list.tell();
			expect(list.atEnd).toBe(true);
		}
	});

	it("is not moved by fractions of pixels", () => {
		const follow = following();
		const first = grew(follow, { top: 1500, height: 2000, client: 500 });
		expect(first.scrollTo).toBeNull();
		expect(scrolled(first.follow, { top: 1499.6, height: 2000, client: 500 }).active).toBe(true);
	});
});

describe("a reader who scrolls up", () => {
	it("is left alone from the first pixels on", () => {
		for (const by of [-2, -10, -40, -1500]) {
			const list = new List();
			list.drag(by);
			list.tell();
			const top = list.top;
			for (let n = 0; n < 10; n++) list.grow(100);
			expect(list.top).toBe(top);
			expect(list.follow).toMatchObject({ active: false, below: true });
		}
	});

	it("is left alone though the answer grows before the event comes", () => {
		const list = new List();
		list.grow(20);
		list.tell();
		list.drag(-40);
		const top = list.top;
		list.grow(100);
		expect(list.top).toBe(top);
		list.tell();
		list.grow(100);
		expect(list.top).toBe(top);
	});

	it("is not pulled down while the wheel has turned and nothing has moved yet", () => {
		const list = new List();
		list.follow = upwards(list.follow);
		const top = list.top;
		list.grow(50);
		list.grow(50);
		expect(list.top).toBe(top);
		list.drag(-30);
		list.tell();
		list.grow(50);
		list.grow(50);
		list.grow(50);
		expect(list.top).toBe(top - 30);
	});

	it("is followed on when the wheel moved nothing here, as over a box of code", () => {
		const list = new List();
		list.follow = upwards(list.follow);
		for (let n = 0; n < 3; n++) list.grow(50);
		expect(list.atEnd).toBe(true);
		expect(upwards(new List(100).follow).pause).toBe(0);
	});

	it("is followed again when back near the end", () => {
		const list = new List();
		list.drag(-200);
		list.tell();
		list.drag(100);
		list.tell();
		expect(list.follow).toMatchObject({ active: false, below: true });
		list.drag(90);
		list.tell();
		expect(list.follow).toMatchObject({ active: true, below: false });
		list.grow(100);
		expect(list.atEnd).toBe(true);
	});

	it("is not taken for one because something above went away while nothing was scrolled", () => {
		const follow = held(jumped(following(), { top: 1500, height: 2000, client: 500 }).follow);
		const grown = grew(follow, { top: 1500, height: 2100, client: 500 }).follow;
		expect(scrolled(grown, { top: 1300, height: 1900, client: 500 }).active).toBe(true);
		expect(scrolled(grown, { top: 1250, height: 1900, client: 500 }).active).toBe(false);
	});

	it("is not followed because the browser kept the place when something above grew", () => {
		let follow = scrolled(jumped(following(), { top: 1500, height: 2000, client: 500 }).follow, { top: 1490, height: 2000, client: 500 });
		expect(follow.active).toBe(false);
		follow = scrolled(follow, { top: 1690, height: 2200, client: 500 });
		expect(follow.active).toBe(false);
	});
});

describe("jump to latest", () => {
	it("follows for the rest of the reply, through other windows too", () => {
		const list = new List();
		list.drag(-800);
		list.tell();
		list.grow(300);
		list.jump();
		expect(list.atEnd).toBe(true);
		for (let n = 0; n < 10; n++) {
			list.grow(80);
			list.tell();
		}
		const client = list.client;
		list.client = 0;
		list.follow = scrolled(list.follow, { top: 0, height: 0, client: 0 });
		list.height += 500;
		list.client = client;
		list.top = 0;
		list.tell();
		list.grow(10);
		expect(list.atEnd).toBe(true);
		expect(list.follow.active).toBe(true);
	});

	it("is not taken for the person's scrolling while it goes there in steps", () => {
		const height = 3000;
		let step = jumped(scrolled(jumped(following(), { top: 2500, height, client: 500 }).follow, { top: 300, height, client: 500 }), { top: 300, height, client: 500 }, true);
		expect(step.scrollTo).toBe(2500);
		for (const top of [310, 700, 1600, 2400]) {
			step = { ...step, follow: scrolled(step.follow, { top, height, client: 500 }) };
			expect(step.follow.active).toBe(true);
		}
		expect(scrolled(step.follow, { top: 2300, height, client: 500 }).active).toBe(false);
	});
});

describe("a list that is held, hidden or moved", () => {
	it("is not scrolled while a finger or a mouse button is down", () => {
		const list = new List();
		list.follow = held(list.follow);
		const top = list.top;
		list.grow(200);
		expect(list.top).toBe(top);
		list.follow = released(list.follow);
		list.grow(1);
		expect(list.atEnd).toBe(true);
	});

	it("comes back to where the reader was", () => {
		const list = new List();
		list.drag(-700);
		list.tell();
		const top = list.top;
		list.follow = left(list.follow);
		list.top = 0;
		list.follow = scrolled(list.follow, list.metrics());
		list.grow(100);
		expect(list.top).toBe(top);
		expect(list.follow.active).toBe(false);
	});

	it("asks for no scrolling while it is not laid out", () => {
		const nothing = { top: 0, height: 0, client: 0 };
		expect(grew(following(), nothing).scrollTo).toBeNull();
		expect(jumped(following(), nothing).scrollTo).toBeNull();
		expect(grew(jumped(following(), nothing).follow, { top: 0, height: 900, client: 300 }).scrollTo).toBe(600);
	});

	it("does not take our own placing for the person's", () => {
		const list = new List();
		list.drag(-900);
		list.tell();
		const now = { top: 1600, height: 3000, client: 500 };
		const follow = placed(list.follow, now);
		expect(scrolled(follow, now)).toMatchObject({ active: false, below: true });
	});
});

it("never moves a reader who has scrolled away, and never loses one who has not", () => {
	for (let seed = 0; seed < 300; seed++) {
		const dice = new Dice(seed);
		const list = new List(600 + dice.roll(2000), 300 + dice.roll(400));
		let away = false;
		for (let step = 0; step < 60; step++) {
			const top = list.top;
			switch (dice.roll(6)) {
				case 0:
					// a person's move is told before the next one, or found out when the list grows
					list.drag(-(5 + dice.roll(300)));
					if (list.top < top) away = true;
					if (dice.roll(2)) list.tell();
					else list.grow(0);
					break;
				case 1:
					list.drag(10_000);
					if (list.top > top) away = false;
					list.tell();
					break;
				case 2:
					list.jump();
					away = false;
					break;
				case 3:
					list.tell();
					break;
				default:
					list.grow(dice.roll(200));
					if (away) expect(list.top).toBe(top);
			}
			expect(list.follow.active).toBe(!away);
			if (!away) expect(list.atEnd).toBe(true);
		}
	}
});
