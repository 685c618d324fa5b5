import { describe, expect, it } from "vitest";
import { daysAgo, filterHistory } from "../../src/chat/history";
import { anchored, earlier, grown, hidden, opened, SHOWN, SLACK } from "../../src/chat/window";
import { Dice } from "./chat-events";

describe("the window on a long conversation", () => {
	it("shows the last messages, and earlier ones when asked", () => {
		expect(opened(5)).toEqual({ from: 0, total: 5 });
		expect(opened(500)).toEqual({ from: 500 - SHOWN, total: 500 });
		expect(hidden(opened(500))).toBe(500 - SHOWN);
		expect(earlier(opened(SHOWN + 3)).from).toBe(0);
		let shown = opened(500);
		let presses = 0;
		for (; hidden(shown) > 0; presses++) shown = earlier(shown);
		expect(presses).toBe(Math.ceil((500 - SHOWN) / SHOWN));
	});

	it("lets the first ones go only while the reader is at the end, and not with every answer", () => {
		let shown = opened(100);
		for (let total = 101; total <= 100 + SLACK; total++) {
			shown = grown(shown, total, true);
			expect(shown.from).toBe(100 - SHOWN);
		}
		expect(grown(shown, 101 + SLACK, true).from).toBe(101 + SLACK - SHOWN);
		expect(grown(shown, 101 + SLACK, false).from).toBe(100 - SHOWN);
	});

	it("follows when there are fewer messages, or another conversation", () => {
		expect(grown(opened(100), 99, true)).toEqual({ from: 99 - SHOWN, total: 99 });
		expect(grown(opened(100), 3, false)).toEqual({ from: 0, total: 3 });
		expect(grown({ from: 10, total: 100 }, 99, false)).toEqual({ from: 10, total: 99 });
	});

	it("is always within the conversation, has its last message, and hides none from who reads further up", () => {
		for (let seed = 0; seed < 200; seed++) {
			const dice = new Dice(seed);
			let shown = opened(dice.roll(200));
			for (let step = 0; step < 50; step++) {
				const before = shown;
				const following = dice.roll(2) === 0;
				const action = dice.roll(4);
				if (action === 0) shown = earlier(shown);
				else shown = grown(shown, shown.total + (action === 1 ? 0 : 1 + dice.roll(3)), following);
				expect(shown.from).toBeGreaterThanOrEqual(0);
				expect(shown.from).toBeLessThanOrEqual(Math.max(0, shown.total - 1));
				if (!following || action === 0) expect(shown.from).toBeLessThanOrEqual(before.from);
				if (action !== 0 && following) expect(shown.total - shown.from).toBeLessThanOrEqual(Math.max(SHOWN + SLACK, before.total - before.from));
			}
		}
	});

	it("keeps what was read in its place", () => {
		expect(anchored(0, 20, 820)).toBe(800);
		expect(anchored(800, 20, 20)).toBe(800);
		expect(anchored(100, 50, -200)).toBe(0);
	});
});

describe("the history", () => {
	const titles = ["Otto's Größe", "Trip to Lübeck", "otto and Anna", "Taxes"];
	const list = titles.map((title) => ({ title }));

	it("is found by all words, without case and accents", () => {
		const found = (query: string): string[] => filterHistory(list, query).map((one) => one.title);
		expect(found("")).toEqual(titles);
		expect(found("OTTO")).toEqual([titles[0], titles[2]]);
		expect(found("grosse otto")).toEqual([]);
		expect(found("grö otto")).toEqual([titles[0]]);
		expect(found("lubeck trip")).toEqual([titles[1]]);
	});

	const at = (...[year, month, day, hour, minute]: [number, number, number, number, number]): number =>
		new Date(year, month - 1, day, hour, minute).getTime() / 1000;

	it("counts days by the calendar, and what a fast clock puts into the future as today", () => {
		const now = new Date(2026, 2, 30, 9, 0);
		const ago = (...when: Parameters<typeof at>): number => daysAgo(at(...when), now);
		expect([ago(2026, 3, 30, 0, 0), ago(2026, 3, 30, 23, 59), ago(2026, 4, 2, 1, 0)]).toEqual([0, 0, 0]);
		expect([ago(2026, 3, 29, 23, 59), ago(2026, 3, 29, 0, 0), ago(2026, 3, 28, 23, 59)]).toEqual([1, 1, 2]);
		expect(ago(2025, 3, 30, 9, 0)).toBe(365);
	});

	it("knows yesterday on days of 23 and 25 hours", () => {
		for (const [month, day] of [[3, 29], [3, 30], [10, 25], [10, 26], [1, 1], [3, 1]] as const) {
			for (const hour of [0, 3, 23]) expect(daysAgo(at(2026, month, day - 1, hour, 30), new Date(2026, month - 1, day, 12))).toBe(1);
		}
	});
});
