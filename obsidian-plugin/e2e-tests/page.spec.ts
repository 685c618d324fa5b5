import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, TOKEN } from "./page-world";

test("streams, cites, and shows the passage that it rests on", async ({ phone }) => {
	const { model } = phone.world;
	await phone.open();
	model.replies.push({ text: ["It should read ", "**1.2 bar** [1], not 9 [7], see [[Plumber|Olla]]."], hold: true });
	await phone.ask("What should the boiler gauge read?");
	await expect(phone.answer).toContainText("It should read");
	await expect(phone.answer).not.toContainText("1.2 bar");
	await expect(phone.button("Stop")).toBeVisible();
	model.release();
	await expect(phone.answer.locator("strong")).toHaveText("1.2 bar");
	await expect(phone.button("Stop")).toBeHidden();
	await expect(phone.answer.locator(".dead")).toHaveText("7?");
	await expect(phone.answer.getByRole("link", { name: "Olla" })).toHaveAttribute("href", "obsidian://open?vault=Notes%20%26%20more&file=Plumber");

	await phone.answer.getByRole("button", { name: /^Source 1: Boiler/ }).click();
	const source = phone.turns.last().locator(".sources li").first();
	await expect(source.locator("summary")).toBeFocused();
	await expect(source.locator(".passage")).toContainText("The gauge should read 1.2 bar when cold.");
	await expect(source.getByRole("link", { name: "Open in Obsidian" })).toHaveAttribute("href", /^obsidian:\/\/open\?vault=Notes%20%26%20more&file=House%2FBoiler%23/);
	await source.getByRole("button", { name: "Read the note" }).click();
	const note = phone.page.getByRole("dialog", { name: "Boiler" });
	await expect(note.locator(".marked").first()).toBeInViewport();
	await expect(note).toContainText("Turn it off in June.");
	await expect(note.locator("pre")).toHaveText("tags: [house]");
});

test("a count comes from a query of the notes", async ({ phone }) => {
	const { model } = phone.world;
	await phone.open();
	model.replies.push({ call: { name: "query_notes", arguments: { where: 'file.inFolder("House")' } } }, { text: ["There are 3 notes in House."] });
	await phone.ask("How many notes are in the folder House?");
	await expect(phone.answer).toContainText("There are 3 notes in House");
	await expect(phone.turns.last().getByRole("listitem").filter({ hasText: "Query notes ✓" })).toBeVisible();
	expect(model.requests.some((request) => request.includes("3 notes."))).toBe(true);
});

test("stop ends at once and keeps the text; it can go on, and be asked again", async ({ phone }) => {
	const { model } = phone.world;
	await phone.open();
	model.replies.push({ text: ["A first part", " and a second"], hold: true });
	await phone.ask("How warm for tea?");
	await expect(phone.answer).toContainText("A first part");
	await phone.button("Stop").click();
	await expect(phone.turns.last()).toContainText("Stopped.");
	await expect(phone.answer).toHaveText("A first part");
	await expect(phone.button("Stop")).toBeHidden();
	model.replies.push({ text: ["The rest."] }, { text: ["Anew."] });
	await phone.button("Continue").click();
	await expect(phone.answer).toHaveText("The rest.");
	await phone.turns.first().getByRole("button", { name: "Ask again" }).click();
	await expect(phone.turns).toHaveCount(3);
	await expect(phone.turns.last().locator(".said")).toHaveText("How warm for tea?");
	await expect(phone.answer).toHaveText("Anew.");
});

test("a change of a note is shown, allowed, made and undone", async ({ phone }) => {
	const { model } = phone.world;
	await phone.open();
	const before = phone.world.daemon.read("House/Plumber.md");
	model.replies.push({ text: ["I add it. "], call: { name: "note_append", arguments: { name: "House/Plumber.md", text: "-- Her van is green." } } });
	model.replies.push({ text: ["Noted."] });
	await phone.ask("Add to the plumber's note that her van is green.");
	const card = phone.page.getByRole("group", { name: /^Needs your approval: / });
	await expect(card.locator(".added").last()).toHaveText(/Added: \+-- Her van is green\./);
	await expect(phone.page.getByText("Waiting for your approval")).toBeVisible();
	expect(phone.world.daemon.read("House/Plumber.md")).toBe(before);
	await card.getByRole("button", { name: "Allow" }).click();
	await expect(phone.answer).toContainText("Noted.");
	await expect(card).toContainText("Allowed.");
	expect(phone.world.daemon.read("House/Plumber.md")).toContain("Her van is green.");
	await expect(phone.page.locator(".writes li")).toHaveCount(1);
	await phone.button("Undo").click();
	await expect(phone.page.locator(".writes")).toContainText("was restored");
	expect(phone.world.daemon.read("House/Plumber.md")).toBe(before);
});

test("a change that is denied is not made; one that is always allowed is asked about once", async ({ phone }) => {
	const { model } = phone.world;
	const add = (text: string) => ({ call: { name: "note_append", arguments: { name: "Tea.md", text } } });
	await phone.open();
	model.replies.push(add("Sencha too."), { text: ["Then not."] });
	await phone.ask("Add sencha to the note on tea.");
	await phone.button("Deny").click();
	await expect(phone.answer).toHaveText("Then not.");
	expect(phone.world.daemon.read("Tea.md")).not.toContain("Sencha");
	model.replies.push(add("One."), add("Two."), { text: ["Both."] });
	await phone.ask("Add one and two.");
	await phone.button("Always in this conversation").click();
	await expect(phone.answer).toContainText("Both.");
	expect(phone.world.daemon.read("Tea.md")).toMatch(/One\.\s+Two\./);
	await expect(phone.turns.last().locator(".writes li")).toHaveCount(2);
});

test("a reload in the middle of an answer goes on with it", async ({ phone }) => {
	const { model } = phone.world;
	await phone.open();
	model.replies.push({ text: ["The beginning", " and the end."], hold: true });
	await phone.ask("Say it in two parts.");
	await expect(phone.answer).toHaveText("The beginning");
	await phone.box.fill("A half-written question");
	await phone.page.reload();
	await expect(phone.answer).toHaveText("The beginning");
	await expect(phone.box).toHaveValue("A half-written question");
	await expect(phone.button("Stop")).toBeVisible();
	model.release();
	await expect(phone.answer).toHaveText("The beginning and the end.");
	await expect(phone.page.getByRole("heading", { level: 1 })).toHaveText("Say it in two parts.");
});

test("a turn goes on while the connection is away", async ({ phone }) => {
	phone.expected.push(/net::ERR_/);
	const { model } = phone.world;
	await phone.open();
	model.replies.push({ text: ["The beginning", " and the end."], hold: true });
	await phone.ask("Say it in two parts.");
	await expect(phone.answer).toHaveText("The beginning");
	await phone.page.context().setOffline(true);
	model.release();
	await expect(phone.page.locator("#failure")).toContainText("Cannot reach the daemon.", { timeout: 40_000 });
	await phone.page.context().setOffline(false);
	await expect(phone.answer).toHaveText("The beginning and the end.");
	await phone.connected();
	await expect(phone.page.locator("#failure")).toBeHidden();
});

test("a question that is asked while nobody answers is sent when somebody does, once", async ({ phone }) => {
	phone.expected.push(/net::ERR_/);
	const { world } = phone;
	await phone.open();
	await phone.hear("How warm is the water for gyokuro?", "60 degrees [1].");
	await world.daemon.stop();
	await phone.ask("And who repairs the boiler?");
	await expect(phone.turns.last()).toContainText("Not sent yet.");
	await expect(phone.page.locator("#failure")).toBeVisible();
	world.model.replies.push({ text: ["Olla Brandt."] }, { text: ["Twice."] });
	await world.daemon.start();
	await expect(phone.answer).toHaveText("Olla Brandt.", { timeout: 20_000 });
	await expect(phone.turns).toHaveCount(2);
	const { conversations } = await world.call<{ conversations: { turns: number }[] }>("GET", "/v1/conversations");
	expect(conversations[0]?.turns).toBe(2);
});

test("a question that was not sent yet can be taken back", async ({ phone }) => {
	phone.expected.push(/net::ERR_/);
	await phone.open();
	await phone.page.route("**/v1/turns", (route) => route.abort());
	await phone.ask("A question");
	await expect(phone.turns.last()).toContainText("Not sent yet.");
	await phone.button("Stop").click();
	await expect(phone.turns).toHaveCount(0);
	await expect(phone.box).toHaveValue("A question");
});

test("a daemon that is killed in the middle of an answer says so when it is back", async ({ phone }) => {
	phone.expected.push(/net::ERR_/);
	const { world } = phone;
	await phone.open();
	world.model.replies.push({ text: ["Half of", " it"], hold: true });
	await phone.ask("Say it in two parts.");
	await expect(phone.answer).toHaveText("Half of");
	await world.daemon.stop("SIGKILL");
	await expect(phone.page.locator("#failure")).toBeVisible({ timeout: 40_000 });
	await world.daemon.start();
	await expect(phone.turns.last()).toContainText("The daemon stopped before the answer was complete.", { timeout: 20_000 });
	await expect(phone.answer).toHaveText("Half of");
	await phone.connected();
	await phone.hear("And now?", "All of it.");
});

test("where nothing streams, turns are followed by long polls", async ({ phone }) => {
	const { model } = phone.world;
	await phone.page.addInitScript(() => {
		delete (Response.prototype as { body?: unknown }).body;
	});
	await phone.open();
	const polls = phone.page.waitForRequest(/events\?after=\d+&wait=20$/);
	model.replies.push({ text: ["It should read ", "1.2 bar."], hold: true });
	await phone.ask("What should the boiler gauge read?");
	await polls;
	await expect(phone.answer).toHaveText("It should read");
	model.release();
	await expect(phone.answer).toHaveText("It should read 1.2 bar.");
});

test("where a stream is held back by what stands between, long polls take its place", async ({ phone }) => {
	const { page, world } = phone;
	await page.clock.install();
	await phone.open();
	await page.route(/events\?after=0$/, () => new Promise(() => undefined));
	const held = page.waitForRequest(/events\?after=0$/);
	world.model.replies.push({ text: ["Through."] });
	await phone.ask("Do you hear me?");
	await held;
	phone.expected.push(/ERR_ABORTED/);
	await page.clock.fastForward(26_000);
	await page.clock.runFor(1_000);
	await expect(phone.answer).toHaveText("Through.");
});

test("what was asked on another device appears when one comes back to the page", async ({ phone }) => {
	await phone.world.past("shared", "How warm for gyokuro?", "60 degrees.");
	await phone.open("&c=shared");
	await expect(phone.turns).toHaveCount(1);
	await phone.world.past("shared", "And for sencha?", "70 degrees.");
	await phone.page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
	await expect(phone.turns).toHaveCount(2);
	await expect(phone.answer).toHaveText("70 degrees.");
});

test("a token that is not taken any more is asked for, and the conversation is there again", async ({ phone }) => {
	phone.expected.push(/401/);
	const { page } = phone;
	await phone.open();
	await phone.hear("How warm for gyokuro?", "60 degrees.");
	const refused = { error: { code: "unauthorized", message: "The token is wrong.", hint: "Make a new one with: tarsd token --rotate." } };
	await page.route("**/v1/**", (route) => route.fulfill({ status: 401, json: refused }));
	await page.evaluate(() => window.dispatchEvent(new Event("online")));
	await expect(page.getByRole("alert")).toContainText("The token is wrong.");
	await expect(phone.answer).toBeHidden();
	await page.unroute("**/v1/**");
	await page.getByLabel("Token", { exact: true }).fill(TOKEN);
	await page.keyboard.press("Enter");
	await expect(phone.answer).toHaveText("60 degrees.");
});

test("a token is asked for, kept for the tab or the device, and forgotten", async ({ phone, context }) => {
	phone.expected.push(/401/);
	const { page, world } = phone;
	const stored = () => page.evaluate(() => [localStorage.getItem("tarsd.token"), sessionStorage.getItem("tarsd.token")]);
	await page.goto(world.daemon.address);
	const field = page.getByLabel("Token", { exact: true });
	await expect(field).toBeFocused();
	await field.fill("wrong-token");
	await field.press("Enter");
	await expect(page.getByRole("alert")).toHaveText("The token is wrong. Make a new one with: tarsd token --rotate.");
	await expect(field).toBeFocused();
	await field.fill(TOKEN);
	await page.getByRole("button", { name: "Connect" }).click();
	await phone.connected();
	expect(await stored()).toEqual([null, TOKEN]);
	await page.reload();
	await phone.connected();

	await phone.button("Settings").click();
	await page.getByLabel("Remember the token on this device").check();
	expect(await stored()).toEqual([TOKEN, null]);
	const other = await context.newPage();
	await other.goto(world.daemon.address);
	await expect(other.locator("body")).toHaveAttribute("data-state", "connected");
	await other.close();
	await phone.button("Forget the token").click();
	await expect(field).toBeVisible();
	expect(await stored()).toEqual([null, null]);
	await page.reload();
	await expect(field).toBeVisible();
});

test("a token in the address is taken out of it at once", async ({ phone }) => {
	await phone.open("&c=web-nothing");
	phone.expected.push(/404/);
	expect(phone.page.url()).not.toContain("token");
	await phone.page.evaluate((token) => (location.hash = `token=${token}`), TOKEN);
	await expect.poll(() => phone.page.url()).not.toContain("token");
	await phone.connected();
});

test("too many wrong tokens are told to wait", async ({ phone }) => {
	phone.expected.push(/429/);
	const { page, world } = phone;
	await page.route("**/v1/hello", (route) =>
		route.fulfill({ status: 429, headers: { "retry-after": "2" }, json: { error: { code: "too_many_tries", message: "Too many wrong tokens from that address.", hint: "Wait a minute." } } }),
	);
	await page.goto(`${world.daemon.address}/#token=wrong`);
	await expect(page.getByRole("alert")).toHaveText("Too many wrong tokens from that address. Wait a minute.");
	await page.unroute("**/v1/hello");
	await page.getByLabel("Token", { exact: true }).fill(TOKEN);
	await page.keyboard.press("Enter");
	await phone.connected();
});

test("an index that is behind is told", async ({ phone }) => {
	await phone.page.route("**/v1/status", async (route) => {
		const reply = await route.fetch();
		await route.fulfill({ json: { ...((await reply.json()) as object), behind: 3 } });
	});
	await phone.open();
	await expect(phone.page.locator("#state")).toHaveText("Indexing: 3 notes behind");
});

// ------------------------------------------------------------------------------------------------ lists

test("conversations are found, opened, renamed and deleted", async ({ phone }) => {
	const { page, world } = phone;
	await world.past("one", "Which colour has the kitchen?", "Warm white [1].");
	await world.past("two", "How warm is the water for Grüner Tee?", "60 degrees.");
	await phone.open();
	await phone.button("Conversations").click();
	const find = page.getByRole("searchbox", { name: "Find by title" });
	const rows = page.locator("#history-list .pick");
	await find.fill("gruner TEE");
	await expect(rows).toHaveCount(1);
	await rows.click();
	await expect(page.getByRole("dialog")).toBeHidden();
	await expect(phone.answer).toHaveText("60 degrees.");
	await expect.poll(() => page.url()).toContain("#c=two");

	await phone.button("Conversations").click();
	page.once("dialog", (dialog) => void dialog.accept("Paint"));
	await page.getByRole("button", { name: "Rename “Which colour has the kitchen?”" }).click();
	await expect(rows.filter({ hasText: "Paint" })).toHaveCount(1);
	page.once("dialog", (dialog) => {
		expect(dialog.message()).toBe("Delete “Paint”? Its note in the vault stays.");
		void dialog.dismiss();
	});
	await page.getByRole("button", { name: "Delete “Paint”" }).click();
	await expect(rows.filter({ hasText: "Paint" })).toHaveCount(1);
	page.once("dialog", (dialog) => void dialog.accept());
	await page.getByRole("button", { name: "Delete “Paint”" }).click();
	await expect(rows.filter({ hasText: "Paint" })).toHaveCount(0);
	const { conversations } = await world.call<{ conversations: { id: string }[] }>("GET", "/v1/conversations");
	expect(conversations.map((one) => one.id)).not.toContain("one");
	page.once("dialog", (dialog) => void dialog.accept());
	await page.getByRole("button", { name: /^Delete “How warm is the water for Grüner/ }).click();
	await expect(rows.filter({ hasText: "Grüner" })).toHaveCount(0);
	await page.goBack();
	await expect(page.getByRole("dialog")).toBeHidden();
	await expect(phone.turns).toHaveCount(0);
	await expect(page.getByText("Ask your notes")).toBeVisible();
});

test("a verdict on an answer is kept", async ({ phone }) => {
	await phone.open();
	await phone.hear("Which colour has the kitchen?", "Blue.");
	phone.page.once("dialog", (dialog) => void dialog.accept("It is white."));
	await phone.button("Wrong answer").click();
	await expect(phone.button("Wrong answer")).toHaveAttribute("aria-pressed", "true");
	expect(phone.world.daemon.read("tars/corrections.md")).toContain("It is white.");
});

test("search finds by words and by meaning, and a note can be read", async ({ phone }) => {
	const { page } = phone;
	await phone.open();
	await phone.button("Search").click();
	const words = page.getByRole("searchbox", { name: "Search the notes" });
	await words.fill("gyokuro");
	await expect(page.locator(".hit h3").first()).toHaveText("Tea");
	await expect(page.locator(".hit").first()).toContainText("words: gyokuro");
	await page.getByLabel("Search by").selectOption("vec");
	await expect(page.locator(".hit").first()).toContainText("meaning");
	await page.getByLabel("Search by").selectOption("fts");
	await words.fill("nosuchword");
	await expect(page.locator("#search-state")).toHaveText("Nothing found.");
	await words.fill("sencha");
	await page.locator(".hit").filter({ has: page.getByRole("heading", { name: "Tea", exact: true }) }).getByRole("button", { name: "Read the note" }).click();
	await expect(page.locator("#note-text")).toContainText("☐ buy sencha");
	await expect(page.locator("#note-text")).toContainText("☑ wash the pot");
	await page.goBack();
	await expect(page.getByRole("dialog", { name: "Tea" })).toBeHidden();
	await expect(words).toBeVisible();
	await page.keyboard.press("Escape");
	await expect(page.getByRole("dialog")).toBeHidden();
});

// ------------------------------------------------------------------------------------------------ keys and scrolling

test("everything can be done with the keyboard", async ({ phone }) => {
	const { page, world } = phone;
	const { keyboard } = page;
	await phone.open();
	await expect(phone.box).toBeFocused();
	world.model.replies.push({ text: ["One line [1].", " More"], hold: true });
	await keyboard.type("Who repairs the boiler?");
	await keyboard.press("Shift+Enter");
	await keyboard.type("And when?");
	await keyboard.press("Enter");
	await expect(phone.turns.locator(".said")).toHaveText("Who repairs the boiler?\nAnd when?");
	await expect(phone.answer).toContainText("One line");
	await keyboard.press("Escape");
	await expect(phone.turns.last()).toContainText("Stopped.");

	for (const cite = phone.answer.locator(".cite"); !(await cite.evaluate((el) => el === document.activeElement)); ) await keyboard.press("Shift+Tab");
	await keyboard.press("Enter");
	await expect(phone.turns.locator(".sources li summary").first()).toBeFocused();
	await keyboard.press("/");
	await expect(page.getByRole("searchbox", { name: "Search the notes" })).toBeFocused();
	await keyboard.type("a/b");
	await expect(page.getByRole("searchbox", { name: "Search the notes" })).toHaveValue("a/b");
	await keyboard.press("Escape");
	await expect(page.getByRole("dialog")).toBeHidden();

	world.model.replies.push({ call: { name: "note_append", arguments: { name: "Tea.md", text: "By keyboard." } } }, { text: ["Done."] });
	await phone.box.focus();
	await keyboard.type("Add it.");
	await keyboard.press("Enter");
	const allow = phone.button("Allow");
	await expect(allow).toBeVisible();
	while (!(await allow.evaluate((el) => el === document.activeElement))) await keyboard.press("Shift+Tab");
	await keyboard.press("Enter");
	await expect(phone.answer).toContainText("Done.");
	await expect(phone.turns.last(), "the focus stays where the button was").toBeFocused();
});

test("a key that belongs to an input method sends nothing", async ({ phone }) => {
	await phone.open();
	await phone.box.fill("日本語");
	for (const init of [{ isComposing: true }, { keyCode: 229 }]) {
		await phone.box.evaluate((el, given) => el.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true, ...given })), init);
	}
	await expect(phone.turns).toHaveCount(0);
	await phone.button("Settings").click();
	await phone.page.getByLabel("Key to send").selectOption("mod");
	await phone.page.keyboard.press("Escape");
	await phone.box.press("Enter");
	await expect(phone.turns).toHaveCount(0);
	await phone.box.press("ControlOrMeta+Enter");
	await expect(phone.turns).toHaveCount(1);
	await expect(phone.page.locator("#say")).toHaveText("Answer: ok");
});

test("the list follows an answer, but never a reader who looks further up", async ({ phone }) => {
	const { page, world } = phone;
	await phone.open();
	const list = page.locator("#list");
	const below = () => list.evaluate((el) => Math.round(el.scrollHeight - el.clientHeight - el.scrollTop));
	const long = Array.from({ length: 40 }, (_, n) => `Paragraph ${n} of an answer that is much longer than the page.\n\n`).join("");
	world.model.replies.push({ text: [long, long, "And the end."], hold: true });
	await phone.ask("Tell me much.");
	await expect(phone.answer).toContainText("Paragraph 39");
	await expect.poll(below).toBeLessThanOrEqual(2);
	await list.hover();
	await page.mouse.wheel(0, -600);
	await expect(phone.button("Jump to latest")).toBeVisible();
	const place = await list.evaluate((el) => el.scrollTop);
	world.model.release();
	await expect(phone.answer).toContainText("And the end.");
	expect(await list.evaluate((el) => el.scrollTop)).toBe(place);
	await phone.button("Jump to latest").click();
	await expect.poll(below).toBeLessThanOrEqual(2);
	await expect(phone.button("Jump to latest")).toBeHidden();
});

test("a conversation of 500 turns shows its end, and more when asked", async ({ phone }) => {
	const { page } = phone;
	const golden = JSON.parse(readFileSync(join(import.meta.dirname, "../../tests/golden/conversation.json"), "utf8")) as { turns: object[] };
	const text = `${"Some words of an answer [1]. ".repeat(20)}\n\n- a\n- b\n\n| a | b |\n| - | - |\n| 1 | 2 |\n`;
	const turns = Array.from({ length: 500 }, (_, n) => ({ ...golden.turns[1], id: `turn-${n}`, message: `Question ${n}`, text }));
	await page.route("**/v1/conversations/long", (route) => route.fulfill({ json: { ...golden, id: "long", turns } }));
	await phone.open("&c=long");
	await expect(phone.turns).toHaveCount(30);
	await expect(phone.turns.last()).toContainText("Question 499");
	await expect(phone.turns.last().locator(".actions")).toBeInViewport();
	const marked = page.locator(".said", { hasText: /^Question 470$/ });
	await page.locator("#list").evaluate((el) => (el.scrollTop = 0));
	const before = await marked.boundingBox();
	await phone.button("Show earlier (470)").click();
	await expect(phone.turns).toHaveCount(60);
	expect(Math.abs(((await marked.boundingBox())?.y ?? 0) - (before?.y ?? -99))).toBeLessThanOrEqual(1);
	await phone.hear("One more", "At the end.");
	await expect(phone.answer).toBeInViewport();
});

test("text that is read from the right begins there", async ({ phone }) => {
	await phone.open();
	await phone.hear("מה הלחץ?", "הלחץ הוא 1.2 בר.\n\n- אחד\n- שתיים\n\nAnd English.");
	const side = (text: string) => phone.answer.getByText(text).evaluate((el) => getComputedStyle(el).direction);
	expect(await side("הלחץ הוא")).toBe("rtl");
	expect(await side("And English.")).toBe("ltr");
	expect(await phone.answer.locator("ul").evaluate((el) => getComputedStyle(el).direction)).toBe("rtl");
});

test.describe("with a touch screen", () => {
	test.use({ viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });

	test("Return begins a new line and the button sends; everything is large enough to be pressed", async ({ phone }) => {
		const { page, world } = phone;
		await phone.open();
		world.model.replies.push({ text: ["Yes [1]."] });
		await phone.box.tap();
		await page.keyboard.type("What should");
		await page.keyboard.press("Enter");
		await page.keyboard.type("the boiler gauge read?");
		await expect(phone.turns).toHaveCount(0);
		await phone.button("Send").tap();
		await expect(phone.turns.locator(".said")).toHaveText("What should\nthe boiler gauge read?");
		await expect(phone.answer).toHaveText("Yes 1.");
		await phone.turns.locator(".sources > summary").tap();
		await phone.turns.locator(".sources li summary").first().tap();
		const small = await page.locator("button:visible:not(.cite), input:visible, select:visible, summary:visible, .links a:visible").evaluateAll((all) =>
			all.filter((el) => el.getBoundingClientRect().height < 44).map((el) => el.outerHTML),
		);
		expect(small).toEqual([]);
		const zooming = await page.locator("input, textarea, select").evaluateAll((all) => all.filter((el) => parseFloat(getComputedStyle(el).fontSize) < 16).map((el) => el.id));
		expect(zooming).toEqual([]);
		expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
	});
});
