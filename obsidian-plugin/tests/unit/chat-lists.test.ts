import { describe, expect, it } from "vitest";
import { behindText, indexingText } from "../../src/chat/freshness";
import { byDay, filterHistory, type Listed } from "../../src/chat/history";
import { anchored, earlier, grown, hidden, opened, revealing, SHOWN, SLACK } from "../../src/chat/window";
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

	it("can be widened up to a message", () => {
		expect(revealing(opened(500), 12).from).toBe(12);
		expect(revealing(opened(500), 499)).toEqual(opened(500));
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
	const at = (...when: [number, number, number, number, number]): number => {
		const [year, month, day, hour, minute] = when;
		return new Date(year, month - 1, day, hour, minute).getTime() / 1000;
	};
	const now = new Date(2026, 2, 30, 9, 0);
	const list: Listed[] = [
		{ id: "a", title: "Otto's Größe", updated: at(2026, 3, 30, 0, 0) },
		{ id: "b", title: "Trip to Lübeck", updated: at(2026, 3, 29, 23, 59) },
		{ id: "c", title: "otto and Anna", updated: at(2026, 3, 29, 0, 1) },
		{ id: "d", title: "Taxes", updated: at(2026, 3, 28, 23, 59) },
		{ id: "e", title: "From the future", updated: at(2026, 4, 2, 1, 0) },
		{ id: "f", title: "Old", updated: at(2025, 3, 30, 9, 0) },
	];

	it("is found by all words, without case and accents", () => {
		const found = (query: string): string[] => filterHistory(list, query).map((one) => one.id);
		expect(found("")).toEqual(["a", "b", "c", "d", "e", "f"]);
		expect(found("OTTO")).toEqual(["a", "c"]);
		expect(found("grosse otto")).toEqual([]);
		expect(found("grö otto")).toEqual(["a"]);
		expect(found("lubeck trip")).toEqual(["b"]);
	});

	it("is grouped by days of the calendar, the last first", () => {
		const days = byDay(list, now).map((day) => [day.kind, day.items.map((one) => one.id).join("")]);
		expect(days).toEqual([["today", "ea"], ["yesterday", "bc"], ["day", "d"], ["day", "f"]]);
		expect(byDay([], now)).toEqual([]);
	});

	it("knows yesterday on days of 23 and 25 hours", () => {
		for (const [month, day] of [[3, 29], [3, 30], [10, 25], [10, 26], [1, 1], [3, 1]] as const) {
			for (const hour of [0, 3, 23]) {
				const one = { id: "x", title: "", updated: new Date(2026, month - 1, day - 1, hour, 30).getTime() / 1000 };
				expect(byDay([one], new Date(2026, month - 1, day, 12))[0]?.kind).toBe("yesterday");
			}
		}
	});

	it("loses nothing, and sorts within days", () => {
		for (let seed = 0; seed < 100; seed++) {
			const dice = new Dice(seed);
			const many = Array.from({ length: dice.roll(40) }, (_, n) => ({ id: String(n), title: "", updated: at(2026, 3, 1 + dice.roll(30), dice.roll(24), 0) }));
			const flat = byDay(many, now).flatMap((day) => day.items);
			expect(flat.map((one) => one.id).sort()).toEqual(many.map((one) => one.id).sort());
			expect(flat.map((one) => one.updated)).toEqual(many.map((one) => one.updated).sort((a, b) => b - a));
		}
	});
});

describe("freshness", () => {
	const words = { behindOne: "{count} note behind", behindMany: "{count} notes behind", indexing: "Indexing {done} of {total}" };

	it("says how many notes the index is behind, and nothing when it has all", () => {
		expect([0, 1, 2, -1, NaN].map((behind) => behindText(behind, words))).toEqual(["", "1 note behind", "2 notes behind", "", ""]);
	});

	it("says how far indexing is", () => {
		expect(indexingText(3, 7, words)).toBe("Indexing 3 of 10");
		expect(indexingText(10, 0, words)).toBe("");
		expect(indexingText(0, 2, { ...words, indexing: "{unknown} {total}" })).toBe("{unknown} 2");
	});
});
