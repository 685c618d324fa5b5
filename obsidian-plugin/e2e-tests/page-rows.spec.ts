import { expect, test } from "./page-world";

test("a task's box has its change proposed, and done when that is allowed", async ({ phone }) => {
	const { daemon } = phone.world;
	daemon.write("House/Jobs: a.md", "# Jobs\n\n- [ ] Drain the boiler\n- [x] Buy paint\n");
	await phone.open();
	await expect(async () => {
		await phone.ask("/tasks --all --in House");
		await expect(phone.answer).toContainText("Buy paint", { timeout: 2_000 });
	}).toPass();
	const box = phone.turns.last().getByRole("checkbox", { name: "Complete “Drain the boiler — House/Jobs: a”" });
	const older = phone.turns.nth((await phone.turns.count()) - 1).getByRole("checkbox").first();
	await expect(box).toBeEnabled();
	await expect(phone.answer.getByRole("checkbox", { name: "Task" })).toBeChecked();
	await expect(phone.answer.getByRole("checkbox", { name: "Task" })).toBeDisabled();
	await expect(phone.answer.locator("li").first()).toContainText("Drain the boiler — House/Jobs: a 1");
	await box.focus();
	await phone.page.keyboard.press("Space");
	await expect(phone.turns.last().locator(".said")).toHaveText("/tasks done House/Jobs: a.md:3");
	await expect(older).not.toBeChecked();
	await expect(older, "while an answer is given").toBeDisabled();
	await expect(phone.page.locator(".approval .added")).toContainText("- [x] Drain the boiler");
	expect(daemon.read("House/Jobs: a.md")).toContain("- [ ] Drain");
	await phone.button("Allow").click();
	await expect.poll(() => daemon.read("House/Jobs: a.md")).toContain("- [x] Drain the boiler");
	await expect(phone.answer).toContainText("Done");
	await expect(older, "an older answer is a record").toBeEnabled();
	await older.click();
	await expect(phone.replies.last()).toContainText("There is no such open task in House/Jobs: a.md.");
	expect(daemon.read("House/Jobs: a.md").match(/\[x\]/g)).toHaveLength(2);
	await phone.page.reload();
	await expect(phone.page.getByRole("checkbox", { name: /^Complete “Drain/ }).last(), "as the daemon keeps it").toBeEnabled();
	daemon.write("House/Jobs: a.md", null);
});

test("a box asks only where the entry itself cites one line of this vault", async ({ phone }) => {
	await phone.open();
	await phone.hear("Who repairs the boiler, and when?", "- [ ] A passage [1]\n- [ ] Of nobody\n\t- [ ] Below it [7]\n- [X] Done [1]\n- [/] Half\n\n1. [ ] In a paragraph\n\n   [x] in its second\n");
	const boxes = phone.answer.getByRole("checkbox");
	await expect(boxes).toHaveCount(6);
	for (const box of await boxes.all()) await expect(box).toBeDisabled();
	expect(await boxes.evaluateAll((all: HTMLInputElement[]) => all.map((box) => box.checked))).toEqual([false, false, false, true, false, true]);
	await expect(phone.answer).toContainText("[/] Half");
});

test("rows are a table with links and citations, and a slash says what there is", async ({ phone }) => {
	await phone.open();
	await phone.box.fill("/");
	await expect(phone.page.getByText("/tasks --overdue")).toBeVisible();
	await phone.ask('/notes file.name == "Tea" --columns tags,"a | b",link("Tea")');
	await expect(phone.page.getByText("/tasks --overdue")).toBeHidden();
	const cells = phone.answer.locator("td");
	await expect(cells).toHaveText(["Tea 1", "tea", "a | b", "Tea"]);
	await expect(cells.getByRole("link", { name: "Tea" })).toHaveCount(2);
	await expect(cells.first().getByRole("link")).toHaveAttribute("href", "obsidian://open?vault=Notes%20%26%20more&file=Tea");
	await cells.getByRole("button", { name: "Source 1: Tea" }).click();
	await expect(phone.turns.last().locator(".sources li .passage")).toContainText("tags: [tea]");
});
