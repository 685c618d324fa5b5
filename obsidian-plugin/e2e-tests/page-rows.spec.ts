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

test("a number in somebody's words is no citation, and stands there as they wrote it", async ({ phone }) => {
	await phone.open();
	await phone.hear("Who repairs the boiler, and when?", "- Read \\[1] and \\[1, 2?], `\\[1]` and [a \\[1\\] b](Tea.md) [1]\n\n| a | b |\n| --- | --- |\n| **\\[1]** | [1] |\n");
	await expect(phone.answer.locator(".cite")).toHaveCount(2);
	await expect(phone.answer.locator("li")).toHaveText("Read [1] and [1, 2?], \\[1] and a [1] b 1");
	await expect(phone.answer.locator("td")).toHaveText(["[1]", "1"]);
	expect(await phone.answer.textContent()).not.toContain("\u2060");
});

test("what is not relevant is hidden beside what is", async ({ phone }) => {
	const { page } = phone;
	const hit = (title: string, found: number) => ({ n: 1, path: `${title}.md`, title, heading: "", link: `[[${title}]]`, start_line: 1, end_line: 1, relevance: found, collection: "", why: [], text: title });
	const replies = [[hit("Good", 0.9), hit("Maybe", 0.3), hit("No", 0.1)], [hit("Maybe", 0.3), hit("No", 0.1)]];
	await page.route("**/v1/search", (route) => route.fulfill({ json: { hits: replies.shift() ?? [], behind: 0, degraded: "" } }));
	await phone.open();
	await phone.button("Search").click();
	const words = page.getByRole("searchbox", { name: "Search the notes" });
	await words.fill("one");
	await expect(page.locator("#search-state")).toHaveText("2 passages.");
	await words.fill("two");
	await expect(page.locator("#search-list")).toContainText("No");
	await expect(page.locator("#search-state")).toHaveText("2 passages.");
});

test("a slash saves the chat as a note", async ({ phone }) => {
	await phone.open();
	await phone.ask("/save");
	await expect(phone.page.getByText("There is no answer to save yet.")).toBeVisible();
	await phone.ask("/notes tags --limit 1");
	await expect(phone.answer).toContainText("2 notes");
	await phone.ask("/save");
	await expect(phone.page.getByText(/^(Saved in .+\.md\.|Not saved as a note: session notes are off\.)$/)).toBeVisible();
	await expect(phone.turns).toHaveCount(1);
});

test("a count is answered from the rows that the model asked for", async ({ phone }) => {
	const { daemon, model } = phone.world;
	for (const [name, day] of Object.entries({ Dune: "2026-01-02", Emma: "2026-03-04", Solaris: "2025-12-31" })) daemon.write(`Books/${name}.md`, `---\nfinished: ${day}\n---\nA book.\n`);
	await phone.open();
	await expect(async () => {
		await phone.ask('/notes file.inFolder("Books")');
		await expect(phone.answer).toContainText("3 notes", { timeout: 2_000 });
	}).toPass();
	model.replies.push({ call: { name: "query_notes", arguments: { where: 'finished >= date("2026-01-01")', columns: "finished" } } });
	await phone.hear("how many books did I finish in 2026", "You finished 2 books in 2026.");
	await expect(phone.turns.last().locator(".steps, ul, ol").filter({ hasText: "Query notes" }).first()).toContainText("✓");
	for (const name of ["Dune", "Emma", "Solaris"]) daemon.write(`Books/${name}.md`, null);
});
