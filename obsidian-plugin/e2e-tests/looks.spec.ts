import type { Page } from "@playwright/test";
import type { RunOptions } from "axe-core";
import { ANSWER, CHANGE, faults, LOOKS, QUESTION } from "./looks";
import { expect, test, type Pane } from "./world";

const SIZES = [
	{ name: "300", width: 300, height: 760, phone: false },
	{ name: "phone", width: 390, height: 760, phone: true },
	{ name: "700", width: 700, height: 760, phone: false },
];

/** What a person may find in the pane. */
const SCENES: Record<string, (pane: Pane) => Promise<void>> = {
	welcome: async (pane) => {
		await pane.open();
		await expect(pane.root.getByText("Ask your notes")).toBeVisible();
	},
	offline: async (pane) => {
		pane.expected.push(/net::ERR_/);
		await pane.open({ address: "http://127.0.0.1:9", connected: false });
		await expect(pane.panel.getByRole("heading")).toBeVisible();
	},
	answer: async (pane) => {
		await pane.open({ settings: { showSources: true } });
		await pane.page.evaluate(() => window.harness.openNote("House/Boiler.md"));
		await pane.hear(QUESTION, ANSWER);
		await expect(pane.lastAnswer.locator("table")).toBeVisible();
	},
	rows: async (pane) => {
		await pane.open();
		pane.world.daemon.write("Cellar/Jobs.md", "# Jobs\n\n- [ ] Drain the boiler before the frost, and bleed every radiator 📅 2026-11-02\n- [x] Buy paint\n");
		await expect(async () => {
			await pane.ask("/tasks --all --in Cellar");
			await expect(pane.lastAnswer).toContainText("Buy paint", { timeout: 2_000 });
		}).toPass();
		await pane.ask("/notes file.inFolder(\"House\") --columns file.size,file.ext,file.folder,file.tags");
		await expect(pane.lastAnswer.locator("table")).toBeVisible();
		pane.world.daemon.write("Cellar/Jobs.md", null);
		await pane.box.fill("/");
	},
	top: async (pane) => {
		await pane.open();
		await pane.hear("What should the boiler gauge read?\nAnd who repairs it?", ANSWER);
		await pane.root.locator(".tarsd-list").evaluate((el) => el.scrollTo(0, 0));
		await pane.root.locator(".tarsd-list").hover();
		await pane.page.mouse.wheel(0, -2000);
		await expect(pane.button("Jump to latest")).toBeVisible();
	},
	failed: async (pane) => {
		pane.expected.push(/net::ERR_/);
		await pane.open();
		await pane.hear("How warm for tea?", "60 degrees [3].");
		await pane.page.route("**/v1/turns", (route) => route.abort());
		await pane.ask("And for sencha?");
		await expect(pane.button("Back to the input")).toBeVisible();
		await expect(pane.root.locator(".tarsd-state .tarsd-faint")).toHaveText(
			`Nothing answers at ${pane.world.daemon.address}. Check the address, the network and the daemon.`,
		);
		await pane.page.unroute("**/v1/turns");
	},
	related: async (pane) => {
		await pane.open();
		await pane.page.evaluate(async () => {
			await window.harness.openNote("House/Boiler.md");
			window.harness.command("related");
		});
		await expect(pane.page.locator(".tarsd-related-item").first()).toBeVisible();
		await pane.page.addStyleTag({ content: ".workspace-leaf-content:has(.tarsd-chat) { display: none; }" });
	},
	connection: async (pane) => {
		await pane.open();
		await pane.page.evaluate(() => window.harness.command("connection"));
		await expect(pane.page.locator(".modal .tarsd-link")).toContainText(`Address: ${pane.world.daemon.address}`);
	},
	running: async (pane) => {
		const { model } = pane.world;
		await pane.open();
		model.replies.push({ call: { name: "memory_search", arguments: { query: "boiler plumber" } } });
		model.replies.push({ text: ["Olla Brandt repairs it [1], and ", "more"], hold: true });
		await pane.ask("Who repairs the boiler?");
		await expect(pane.lastAnswer).toContainText("Olla Brandt");
		await pane.box.fill("Meanwhile I write the next question, which is longer than one line of a narrow pane.");
	},
	approval: async (pane) => {
		pane.world.model.replies.push({ text: ["I would add this: "], call: { name: "note_append", arguments: { name: "House/Plumber.md", text: CHANGE } } });
		await pane.open();
		await pane.ask("Add the yearly check to the plumber's note.");
		await expect(pane.button("Allow (y)")).toBeVisible();
	},
	written: async (pane) => {
		pane.world.model.replies.push({ call: { name: "note_append", arguments: { name: "House/Paint.md", text: "The hall is number 7035." } } });
		pane.world.model.replies.push({ text: ["It is in the note now."] });
		await pane.open();
		await pane.ask("Add that the hall is 7035.");
		await pane.button("Allow (y)").click();
		await expect(pane.button(/^Undo/).first()).toBeVisible();
		await expect(pane.lastAnswer).toContainText("in the note");
		await pane.button("Wrong answer").click();
	},
	stopped: async (pane) => {
		pane.world.model.replies.push({ text: ["A first part", " and a second"], hold: true });
		await pane.open();
		await pane.ask("How warm for tea?");
		await expect(pane.lastAnswer).toContainText("A first part");
		await pane.button("Stop").click();
		await expect(pane.button("Continue")).toBeVisible();
	},
	mentions: async (pane) => {
		await pane.open();
		await pane.box.pressSequentially("What does [[Boil");
		await expect(pane.page.getByRole("option").first()).toBeVisible();
		await pane.page.keyboard.press("Enter");
		await pane.box.pressSequentially(" say about @");
		await expect(pane.page.getByRole("option").first()).toBeVisible();
	},
	history: async (pane) => {
		await pane.open();
		await spreadOverDays(pane.page);
		await pane.button("Conversations").click();
		await expect(pane.page.locator(".tarsd-history-row").first()).toBeVisible();
	},
	search: async (pane) => {
		await pane.open();
		await pane.page.evaluate(() => window.harness.command("search"));
		await pane.page.keyboard.type("boiler gauge");
		await expect(pane.page.locator(".suggestion-item").first()).toBeVisible();
	},
};

/** The conversations that the daemon tells of are of today; here each is older than the one before. */
async function spreadOverDays(page: Page): Promise<void> {
	const titles = ["Which colour has the kitchen?", "מה הלחץ בדוד?", "How warm is the water for gyokuro, and how long does it draw?", "Who repairs the boiler?", "Paint"];
	await page.route("**/v1/conversations", async (route) => {
		const response = await route.fetch();
		const now = Date.now() / 1000;
		const hours = [0, 1, 26, 24 * 4, 24 * 40];
		const conversations = titles.map((title, n) => ({ id: `c${n}`, title, created: now, updated: now - (hours[n] ?? 0) * 3600, turns: n + 1 }));
		await route.fulfill({ response, json: { conversations } });
	});
}

const RULES: RunOptions = {
	runOnly: { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] },
	// those are about whole pages, and a pane is a part of one
	rules: Object.fromEntries(["region", "page-has-heading-one", "landmark-one-main", "heading-order"].map((id) => [id, { enabled: false }])),
};

/** The part of the page that is looked at; the frame of a window is the app's. */
async function partOf(page: Page): Promise<string> {
	if ((await page.locator(".modal-container, .prompt").count()) > 0) return ".modal-content, .prompt-results > *";
	return (await page.locator(".tarsd-related-item").count()) > 0 ? ".tarsd-related" : ".tarsd-chat";
}

/** All pictures of a scene beside each other, since a person has to look at them. */
async function sheet(page: Page, name: string, shots: Buffer[]): Promise<void> {
	const other = await page.context().newPage();
	const pictures = shots.map((shot) => `<img src="data:image/png;base64,${shot.toString("base64")}">`);
	const half = pictures.length / 2;
	await other.setViewportSize({ width: 1450, height: 1560 });
	await other.setContent(`<body style="margin:8px;background:#888"><div style="display:flex;gap:8px">${pictures.slice(0, half).join("")}</div>
		<div style="display:flex;gap:8px;margin-top:8px">${pictures.slice(half).join("")}</div>`);
	await other.screenshot({ path: `${LOOKS}/${name}.png` });
	await other.close();
}

for (const [name, arrange] of Object.entries(SCENES)) {
	test(`looks: ${name}`, async ({ pane }) => {
		const { page } = pane;
		await arrange(pane);
		const part = await partOf(page);
		const shots: Buffer[] = [];
		const found: string[] = [];
		for (const theme of ["light", "dark"]) {
			for (const { width, height, phone } of SIZES) {
				await page.setViewportSize({ width, height });
				await page.evaluate(([look, small]) => {
					document.body.classList.remove("theme-light", "theme-dark");
					document.body.classList.add(`theme-${look}`);
					for (const one of ["is-mobile", "is-phone"]) document.body.classList.toggle(one, small);
				}, [theme, phone] as const);
				await page.waitForTimeout(250);
				shots.push(await page.screenshot());
				found.push(...(await faults(page, `${theme} ${width}`, part, RULES)));
			}
		}
		await sheet(page, name, shots);
		expect([...new Set(found)]).toEqual([]);
	});
}
