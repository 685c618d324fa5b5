import { LOOKS } from "./looks";
import { expect, Pane, test } from "./world";

test("streams, and renders what comes", async ({ pane }) => {
	await pane.open();
	pane.world.model.replies.push({ text: ["It should read ", "**1.2 bar** [1]."], hold: true });
	await pane.ask("What should the boiler gauge read?");
	await expect(pane.lastAnswer).toContainText("It should read");
	await expect(pane.lastAnswer).not.toContainText("1.2 bar");
	await expect(pane.button("Stop")).toBeVisible();
	pane.world.model.release();
	await expect(pane.lastAnswer.locator("strong")).toHaveText("1.2 bar");
	await expect(pane.button("Stop")).toBeHidden();
	await expect(pane.root.locator(".tarsd-sources summary")).toHaveText("1 source");
});

test("a citation leads to its heading, in a tab when asked so", async ({ pane }) => {
	await pane.open();
	await pane.hear("What should the boiler gauge read?", "It reads 1.2 bar [1], not 9 [7], as [[no such note]] says.");
	const citation = pane.lastAnswer.getByRole("link", { name: /^Source 1: Boiler/ });
	await citation.click();
	await citation.click({ modifiers: ["ControlOrMeta"] });
	await citation.click({ button: "middle" });
	await expect.poll(() => pane.page.evaluate(() => window.harness.opened)).toEqual([
		{ link: "House/Boiler.md#Pressure", where: false },
		{ link: "House/Boiler.md#Pressure", where: "tab" },
		{ link: "House/Boiler.md#Pressure", where: "tab" },
	]);
	await expect(pane.lastAnswer.locator(".is-unresolved")).toHaveText("7?");
	await expect(pane.lastAnswer).toContainText("as no such note says");
	await expect(pane.lastAnswer.getByRole("link", { name: "no such note" })).toHaveCount(0);
});

test("stop ends at once and keeps the text", async ({ pane }) => {
	await pane.open();
	pane.world.model.replies.push({ text: ["A first part", " and a second"], hold: true });
	await pane.ask("How warm for tea?");
	await expect(pane.lastAnswer).toContainText("A first part");
	await pane.button("Stop").click();
	await expect(pane.root.getByText("Stopped.", { exact: true })).toBeVisible();
	await expect(pane.lastAnswer).toHaveText("A first part");
	await expect(pane.button("Continue")).toBeVisible();
	await expect(pane.button("Ask again")).toBeVisible();
});

test("a change of a note is shown, allowed, made through the app and undone", async ({ pane }) => {
	const { model, daemon } = pane.world;
	await pane.open();
	const before = daemon.read("House/Plumber.md");
	model.replies.push({ call: { name: "note_append", arguments: { name: "House/Plumber.md", text: "Her van is green." } } });
	model.replies.push({ text: ["Noted."] });
	await pane.ask("Add to the plumber's note that her van is green.");
	const card = pane.root.getByRole("group").filter({ has: pane.page.getByRole("button", { name: "Allow (y)" }) });
	await expect(card).toContainText("Her van is green.");
	expect(daemon.read("House/Plumber.md")).toBe(before);
	await pane.button("Allow (y)").click();
	await expect(pane.lastAnswer).toHaveText("Noted.");
	await expect.poll(() => daemon.read("House/Plumber.md")).toContain("Her van is green.");
	await pane.button(/^Undo/).first().click();
	await expect.poll(() => daemon.read("House/Plumber.md")).toBe(before);
});

test("a change that is denied is not made", async ({ pane }) => {
	const { model, daemon } = pane.world;
	await pane.open();
	const before = daemon.read("Tea.md");
	model.replies.push({ call: { name: "note_append", arguments: { name: "Tea.md", text: "Sencha too." } } });
	model.replies.push({ text: ["Then not."] });
	await pane.ask("Add sencha to the note on tea.");
	await expect(pane.button("Deny (n)")).toBeVisible();
	await pane.button("Deny (n)").click();
	await expect(pane.lastAnswer).toHaveText("Then not.");
	expect(daemon.read("Tea.md")).toBe(before);
});

test("a conversation becomes a note, written through the app", async ({ pane }) => {
	await pane.open();
	await pane.hear("Which colour has the kitchen?", "Warm white [1].");
	const { daemon } = pane.world;
	await expect.poll(() => daemon.find("tars/sessions", "Which colour has the kitchen?")).toContain("Warm white");
	expect(pane.written.filter((path) => path.startsWith("tars/sessions/"))).not.toEqual([]);
});

test("a daemon that was started again goes on with the conversation", async ({ pane }) => {
	pane.expected.push(/net::ERR_/);
	const { daemon } = pane.world;
	await pane.open();
	await pane.hear("How warm is the water for gyokuro?", "60 degrees [1].");
	await pane.box.fill("A half-written question");
	await daemon.stop();
	await pane.page.evaluate(() => window.harness.command("reconnect"));
	await expect(pane.panel).toBeVisible();
	await expect(pane.panel.getByRole("heading")).not.toBeEmpty();
	await expect(pane.lastAnswer).toContainText("60 degrees");
	await daemon.start();
	await expect(pane.panel, "it comes back by itself").toBeHidden({ timeout: 35_000 });
	await expect(pane.box).toHaveValue("A half-written question");
	await pane.hear("And who repairs the boiler?", "Olla Brandt [1].");
	await expect(pane.answers).toHaveCount(2);
});

test("a turn goes on while the connection is away", async ({ pane }) => {
	// the note of the conversation cannot be written meanwhile; the daemon does that itself
	pane.expected.push(/net::ERR_/, /A note was not changed/);
	const { model } = pane.world;
	await pane.open();
	model.replies.push({ text: ["The beginning", " and the end."], hold: true });
	await pane.ask("Say it in two parts.");
	await expect(pane.lastAnswer).toHaveText("The beginning");
	await pane.page.context().setOffline(true);
	model.release();
	await pane.page.evaluate(() => window.harness.command("reconnect"));
	await expect(pane.panel).toBeVisible();
	await pane.page.context().setOffline(false);
	await expect(pane.lastAnswer).toHaveText("The beginning and the end.");
});

test("a wrong token says so, and the way to the right one", async ({ pane }) => {
	pane.expected.push(/401/);
	await pane.open({ token: "wrong", connected: false });
	await expect(pane.panel.getByRole("heading")).toHaveText("The token is not accepted");
	await expect(pane.panel.locator("code")).toHaveText("tarsd token --rotate");
	await expect(pane.panel.getByRole("button", { name: "Copy command" })).toBeVisible();
});

test("the list follows an answer, but never a reader who looks further up", async ({ pane }) => {
	const { model } = pane.world;
	await pane.open();
	const list = pane.root.locator(".tarsd-list");
	const below = () => list.evaluate((el) => Math.round(el.scrollHeight - el.clientHeight - el.scrollTop));
	const long = Array.from({ length: 40 }, (_, n) => `Paragraph ${n} of an answer that is much longer than the pane.\n\n`).join("");
	model.replies.push({ text: [long, long, "And the end."], hold: true });
	await pane.ask("Tell me much.");
	await expect(pane.lastAnswer).toContainText("Paragraph 39");
	await expect.poll(below).toBeLessThanOrEqual(2);

	await list.hover();
	await pane.page.mouse.wheel(0, -600);
	await expect(pane.button("Jump to latest")).toBeVisible();
	const place = await list.evaluate((el) => el.scrollTop);
	model.release();
	await expect(pane.lastAnswer).toContainText("And the end.");
	expect(await list.evaluate((el) => el.scrollTop)).toBe(place);

	await pane.button("Jump to latest").click();
	await expect.poll(below).toBeLessThanOrEqual(2);
	await expect(pane.button("Jump to latest")).toBeHidden();
});

test("an answer of a model can load and run nothing", async ({ pane }) => {
	const asked: string[] = [];
	pane.page.on("request", (request) => asked.push(request.url()));
	await pane.open();
	const evil = [
		"![x](http://evil.example/a.png)",
		'<img src="http://evil.example/b.png" onerror="document.title = `broken`">',
		'<iframe src="http://evil.example/c"></iframe>',
		"![[Tea]]",
		'[go](javascript:document.title="broken")',
		"```mermaid\ngraph TD\n  A[\"<img src='http://evil.example/d.png'>\"]\n```",
		"- [ ] A task, and [a file](file:///etc/passwd)",
		"The end.",
	];
	await pane.hear("Show me a picture.", evil.join("\n\n"));
	await expect(pane.lastAnswer).toContainText("The end.");
	expect(asked.filter((url) => url.includes("evil"))).toEqual([]);
	await expect(pane.lastAnswer.locator("img, iframe, .internal-embed, .mermaid, a[href^='file:']")).toHaveCount(0);
	await expect(pane.lastAnswer.getByRole("checkbox", { name: "Task" })).toBeDisabled();
	await expect(pane.page).toHaveTitle("Tarsd");
});

test("a conversation goes on in a window of its own, in the middle of an answer and without the first pane", async ({ pane }) => {
	const { page, world } = pane;
	await pane.open();
	const long = Array.from({ length: 40 }, (_, n) => `Paragraph ${n} of an answer that is longer than the window.\n\n`).join("");
	world.model.replies.push({ text: [long, "And the end [1]."], hold: true });
	await pane.ask("What should the boiler gauge read?");
	await expect(pane.lastAnswer).toContainText("Paragraph 39");
	const [popup] = await Promise.all([page.waitForEvent("popup"), pane.button("Open in a window").click()]);
	const other = new Pane(popup, world);
	await expect(other.lastAnswer).toContainText("Paragraph 39");
	const below = () => other.root.locator(".tarsd-list").evaluate((el) => Math.round(el.scrollHeight - el.clientHeight - el.scrollTop));
	await expect.poll(below).toBeLessThanOrEqual(2);
	world.model.release();
	await expect(other.lastAnswer).toContainText("And the end 1.");
	await expect.poll(below).toBeLessThanOrEqual(2);
	await expect(pane.lastAnswer).toContainText("And the end 1.");
	await popup.screenshot({ path: `${LOOKS}/window.png` });
	await other.root.locator(".tarsd-list").hover();
	await popup.mouse.wheel(0, -600);
	await other.button("Jump to latest").click();
	await expect.poll(below).toBeLessThanOrEqual(2);
	await other.hear("How warm for tea?", "60 degrees.");
	await expect(pane.lastAnswer).toHaveText("60 degrees.");
	await other.button("New chat").click();
	await expect(other.root.getByText("Ask your notes")).toBeVisible();
	await expect(pane.answers).toHaveCount(2);
	await popup.close();
	await pane.hear("And for sencha?", "70 degrees.");
	expect(other.complaints).toEqual([]);
});
