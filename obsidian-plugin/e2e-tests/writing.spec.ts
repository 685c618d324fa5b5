import type { Page } from "@playwright/test";
import { expect, test } from "./world";

/** Which of the pane's things the Tab key reaches, by name, until it leaves the page or comes round. */
async function tabOrder(page: Page, most = 60): Promise<string[]> {
	const names: string[] = [];
	for (let step = 0; step < most; step++) {
		await page.keyboard.press("Tab");
		const name = await page.evaluate(() => {
			const el = document.activeElement;
			if (!el || el === document.body) return null;
			const label = el instanceof HTMLElement && "labels" in el ? (el as HTMLTextAreaElement).labels[0]?.textContent : null;
			return el.getAttribute("aria-label") ?? label ?? el.textContent?.trim() ?? "";
		});
		if (name === null || (names.length > 0 && name === names[0])) return names;
		names.push(name);
	}
	return names;
}

test("everything is done with the keyboard alone", async ({ pane }) => {
	const { page } = pane;
	await pane.open();
	pane.world.model.replies.push({ text: ["Olla Brandt [1]."] });
	await expect(pane.box).toBeFocused();
	await page.keyboard.type("Who repairs the boiler?");
	await page.keyboard.press("Shift+Enter");
	await page.keyboard.type("And when?");
	await expect(pane.box).toHaveValue("Who repairs the boiler?\nAnd when?");
	await page.keyboard.press("Enter");
	await expect(pane.box).toHaveValue("");
	await expect(pane.lastAnswer).toContainText("Olla Brandt");
	await expect(pane.button("Copy")).toBeVisible();

	await pane.button("New chat").focus();
	const reached = ["New chat", ...(await tabOrder(page))];
	for (const name of ["New chat", "Conversations", "Messages", "Copy", "Insert at cursor", "Save as note", "Good answer", "Message", "Add a note, folder or tag"]) {
		expect(reached).toContain(name);
	}
	expect(reached.some((name) => name.startsWith("Source 1"))).toBe(true);

	await pane.lastAnswer.getByRole("link", { name: /^Source 1/ }).focus();
	await page.keyboard.press("Enter");
	await expect.poll(() => page.evaluate(() => window.harness.opened.length)).toBe(1);
});

test("a yes is given with one key, once the focus is there", async ({ pane }) => {
	const { model, daemon } = pane.world;
	await pane.open();
	model.replies.push({ call: { name: "note_append", arguments: { name: "Tea.md", text: "Sencha wants 75." } } }, { text: ["Added."] });
	await pane.ask("Add that sencha wants 75 degrees.");
	await expect(pane.button("Allow (y)")).toBeVisible();
	await pane.box.press("y");
	await expect(pane.box).toHaveValue("y");
	await expect(pane.button("Allow (y)")).toBeVisible();
	await pane.root.getByRole("group", { name: /Tea/ }).first().focus();
	await pane.page.keyboard.press("y");
	await expect(pane.lastAnswer).toHaveText("Added.");
	await expect.poll(() => daemon.read("Tea.md")).toContain("Sencha wants 75.");
});

test("Enter belongs to the input method while it composes", async ({ pane }) => {
	const { page } = pane;
	await pane.open();
	const device = await page.context().newCDPSession(page);
	await pane.box.focus();
	await device.send("Input.imeSetComposition", { text: "にほん", selectionStart: 3, selectionEnd: 3 });
	await device.send("Input.dispatchKeyEvent", { type: "rawKeyDown", key: "Enter", code: "Enter", windowsVirtualKeyCode: 13 });
	await expect(pane.box).toHaveValue("にほん");
	await expect(pane.answers).toHaveCount(0);
	await device.send("Input.insertText", { text: "日本" });
	await expect(pane.box).toHaveValue("日本");
	pane.world.model.replies.push({ text: ["はい"] });
	await page.keyboard.press("Enter");
	await expect(pane.lastAnswer).toHaveText("はい");
});

test("a note is mentioned, and goes along", async ({ pane }) => {
	const { page } = pane;
	await pane.open();
	await pane.box.pressSequentially("What about @Boil");
	const option = page.getByRole("option").first();
	await expect(option).toContainText("Boiler");
	await page.keyboard.press("Escape");
	await expect(option).toBeHidden();
	await pane.box.fill("");
	await pane.box.pressSequentially("Who is [[Plum");
	await expect(option).toContainText("Plumber");
	await page.keyboard.press("Enter");
	await expect(pane.box).toHaveValue(/^Who is \[\[Plumber\]\] ?$/);
	await expect(pane.answers).toHaveCount(0);
	pane.world.model.replies.push({ text: ["Olla Brandt [1]."] });
	await page.keyboard.press("Enter");
	await expect(pane.root.locator(".tarsd-sources summary")).toHaveText("1 source");
	await pane.root.locator(".tarsd-sources summary").click();
	await expect(pane.root.locator(".tarsd-source")).toContainText("Attached");
});

test("the open note and a tag are chips that can be taken away", async ({ pane }) => {
	const { page } = pane;
	await pane.open();
	await page.evaluate(() => window.harness.openNote("Tea.md"));
	await pane.box.pressSequentially("What about @tea");
	await page.getByRole("option", { name: "#tea" }).click();
	const chips = pane.root.locator(".tarsd-chip");
	await expect(chips).toHaveText(["Tea (current note)", "#tea"]);
	await pane.button("Remove Tea (current note)").click();
	await pane.button("Remove #tea").click();
	await expect(chips).toHaveCount(0);
	await expect(pane.box).toBeFocused();
});

test("on a phone Return begins a line, and the button sends", async ({ pane }) => {
	await pane.page.setViewportSize({ width: 390, height: 844 });
	await pane.open({ phone: true });
	await pane.box.fill("One");
	await pane.box.press("Enter");
	await pane.box.press("T");
	await expect(pane.box).toHaveValue("One\nT");
	pane.world.model.replies.push({ text: ["Yes."] });
	await pane.button("Send").click();
	await expect(pane.lastAnswer).toHaveText("Yes.");
});

test("the box fits its text when the pane gets narrower, and wider again", async ({ pane }) => {
	const { page } = pane;
	await page.setViewportSize({ width: 700, height: 700 });
	await pane.open();
	await pane.box.fill("A question that is long enough for one line of a wide pane, and for more lines of a narrow one.");
	const lines = () => pane.box.evaluate((el) => ({ cut: el.scrollHeight - el.clientHeight, height: el.clientHeight }));
	const wide = await lines();
	await page.setViewportSize({ width: 300, height: 700 });
	await expect.poll(async () => (await lines()).cut).toBeLessThanOrEqual(1);
	expect((await lines()).height).toBeGreaterThan(wide.height);
	await page.setViewportSize({ width: 700, height: 700 });
	await expect.poll(async () => (await lines()).height).toBe(wide.height);
});

test("reads from right to left", async ({ pane }) => {
	const { page } = pane;
	await page.setViewportSize({ width: 300, height: 700 });
	await pane.open({ rtl: true });
	await pane.hear("מה הלחץ בדוד?", "הלחץ הוא 1.2 בר [1].\n\n- אחת\n- שתיים\n\n| מצב | לחץ |\n| --- | --- |\n| קר | 1.2 |\n");
	await expect(pane.lastAnswer.locator("p").first()).toHaveCSS("direction", "rtl");
	const places = await page.evaluate(() => {
		const box = (selector: string) => document.querySelector(selector)?.getBoundingClientRect();
		return { title: box(".tarsd-title")?.right ?? 0, buttons: box(".tarsd-header-buttons")?.left ?? 0, send: box(".tarsd-send")?.left ?? 999 };
	});
	expect(places.title).toBeGreaterThan(150);
	expect(places.buttons).toBeLessThan(150);
	expect(places.send).toBeLessThan(150);
	await expect(pane.lastAnswer.locator("ul")).toHaveCSS("direction", "rtl");
	await expect(pane.lastAnswer.locator("table")).toHaveCSS("direction", "rtl");
	const inside = await page.evaluate(() => {
		const box = (selector: string) => document.querySelector(selector)?.getBoundingClientRect() ?? new DOMRect();
		const [answer, table, item, notice] = [".tarsd-answer", ".tarsd-answer table", ".tarsd-answer li", ".tarsd-notices bdi"].map(box);
		return { table: (answer?.right ?? 0) - (table?.right ?? 0), marker: (answer?.right ?? 0) - (item?.right ?? 0), notice: (answer?.right ?? 0) - (notice?.right ?? 0) };
	});
	expect(inside.table, "the table begins at the right").toBeLessThanOrEqual(2);
	expect(inside.marker, "there is room for the markers").toBeGreaterThan(15);
	expect(inside.notice, "so do the notices").toBeLessThanOrEqual(2);
	expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(300);
	await page.screenshot({ path: "test-results/looks/rtl-300.png" });
});

test("a task's box has its change proposed, and done when that is allowed", async ({ pane }) => {
	const { daemon } = pane.world;
	daemon.write("House/Jobs.md", "# Jobs\n\n- [ ] Drain the boiler\n- [x] Buy paint\n");
	await pane.open({ files: { ...pane.world.files, "House/Jobs.md": daemon.read("House/Jobs.md") } });
	await expect(async () => {
		await pane.ask("/tasks --all --in House");
		await expect(pane.lastAnswer).toContainText("Buy paint", { timeout: 2_000 });
	}).toPass();
	const box = pane.root.getByRole("checkbox", { name: /^Complete “Drain the boiler/ }).last();
	await expect(pane.lastAnswer.getByRole("checkbox", { name: "Task" })).toBeChecked();
	await box.click();
	await expect(box).not.toBeChecked();
	await expect(pane.root.locator(".tarsd-question-text").last()).toHaveText("/tasks done House/Jobs.md:3");
	await expect(box).toBeDisabled();
	expect(daemon.read("House/Jobs.md")).toContain("- [ ] Drain");
	await pane.button("Allow (y)").click();
	await expect.poll(() => daemon.read("House/Jobs.md")).toContain("- [x] Drain the boiler");
	await expect(pane.lastAnswer).toContainText("Done");
	await expect(box, "an older answer is a record").toBeEnabled();
	await box.click();
	await expect(pane.replies.last()).toContainText("There is no such open task in House/Jobs.md.");
	expect(daemon.read("House/Jobs.md").match(/\[x\]/g)).toHaveLength(2);
	daemon.write("House/Jobs.md", null);
});
