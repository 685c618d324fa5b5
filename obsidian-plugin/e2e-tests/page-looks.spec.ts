import { join } from "node:path";
import { ANSWER, CHANGE, faults, LOOKS, QUESTION } from "./looks";
import { expect, test, type Phone } from "./page-world";

const SIZES = [
	[360, 740],
	[390, 844],
	[768, 1024],
	[1280, 800],
] as const;

/** What a person may find on the page. */
const SCENES: Record<string, (phone: Phone) => Promise<void>> = {
	gate: async ({ page, world, expected }) => {
		expected.push(/401/);
		await page.goto(`${world.daemon.address}/#token=wrong`);
		await expect(page.getByRole("alert")).toBeVisible();
	},
	empty: async (phone) => {
		await phone.open();
		await expect(phone.page.getByText("Ask your notes")).toBeVisible();
	},
	answer: async (phone) => {
		await phone.open();
		await phone.hear(QUESTION, ANSWER);
		await expect(phone.answer.locator("table")).toBeVisible();
	},
	rows: async (phone) => {
		phone.world.daemon.write("Cellar/Jobs.md", "# Jobs\n\n- [ ] Drain the boiler before the frost, and bleed every radiator 📅 2026-11-02\n\t- [ ] The one in the hall first\n- [x] Buy paint\n");
		await phone.open();
		await phone.ask('/notes file.inFolder("House") --columns file.size,file.ext,file.folder,file.tags');
		await expect(phone.answer.locator("table")).toBeVisible();
		await expect(async () => {
			await phone.ask("/tasks --all --in Cellar");
			await expect(phone.answer).toContainText("Buy paint", { timeout: 2_000 });
		}).toPass();
		await expect(phone.answer.getByRole("checkbox").first()).toBeEnabled();
		await phone.turns.last().locator(".sources > summary").click();
		phone.world.daemon.write("Cellar/Jobs.md", null);
		await phone.box.fill("/");
	},
	sources: async (phone) => {
		await phone.open();
		await phone.hear(QUESTION, "It should read 1.2 bar [1], says [2].");
		await phone.answer.locator(".cite").first().click();
		await expect(phone.page.locator(".passage").first()).toContainText("gauge");
	},
	approval: async (phone) => {
		phone.world.model.replies.push({ text: ["I would add this: "], call: { name: "note_append", arguments: { name: "House/Plumber.md", text: CHANGE } } });
		await phone.open();
		await phone.ask("Add the yearly check to the plumber's note.");
		await expect(phone.button("Allow")).toBeVisible();
		await phone.box.fill("Meanwhile I write the next question, which is longer than one line of a phone.");
	},
	stopped: async (phone) => {
		phone.world.model.replies.push({ text: ["A first part", " and a second"], hold: true });
		await phone.open();
		await phone.ask("How warm for tea?");
		await expect(phone.answer).toContainText("A first part");
		await phone.button("Stop").click();
		await expect(phone.button("Continue")).toBeVisible();
	},
	offline: async (phone) => {
		phone.expected.push(/net::ERR_/);
		await phone.open();
		await phone.hear("How warm for tea?", "60 degrees [1].");
		await phone.page.route("**/v1/**", (route) => route.abort());
		await phone.ask("And for sencha?");
		await expect(phone.page.locator("#failure")).toBeVisible();
	},
	history: async (phone) => {
		for (const title of ["What colour has the hall?", "מה הלחץ?", "A long question about everything that is in these notes, and about some things that are not in them"]) await phone.world.past(title, title, "x");
		await phone.open();
		await phone.button("Conversations").click();
		await expect(phone.page.locator("#history-list .pick").nth(2)).toBeVisible();
	},
	search: async (phone) => {
		await phone.open();
		await phone.button("Search").click();
		await phone.page.getByRole("searchbox").fill("boiler gauge");
		await expect(phone.page.locator(".hit").first()).toBeVisible();
	},
	note: async (phone) => {
		await phone.open();
		await phone.button("Search").click();
		await phone.page.getByRole("searchbox").fill("gauge cold");
		await phone.page.locator(".hit").first().getByRole("button", { name: "Read the note" }).click();
		await expect(phone.page.locator("#note-text pre")).toBeVisible();
	},
	settings: async (phone) => {
		await phone.open();
		await phone.button("Settings").click();
		await expect(phone.page.getByText("tarsd 0.")).toBeVisible();
	},
};

for (const [name, arrange] of Object.entries(SCENES)) {
	test(`looks: ${name}`, async ({ phone }) => {
		const { page } = phone;
		await arrange(phone);
		const found: string[] = [];
		for (const colorScheme of ["light", "dark"] as const) {
			await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
			for (const [width, height] of SIZES) {
				await page.setViewportSize({ width, height });
				await page.waitForTimeout(150);
				await page.screenshot({ path: join(LOOKS, `page-${name}-${width}-${colorScheme}.png`) });
				const tall = await page.locator("input:visible, select:visible, textarea:visible").evaluateAll((all) => all.filter((one) => one.getBoundingClientRect().height > 2.5 * 44).map((one) => one.id));
				expect.soft(tall, `${width} ${colorScheme}: what is filled in is a line or two high`).toEqual([]);
				found.push(...(await faults(page, `${width} ${colorScheme}`)));
			}
		}
		expect([...new Set(found)]).toEqual([]);
	});
}
