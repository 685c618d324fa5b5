import { afterEach, expect, it, vi } from "vitest";
import { codeBlockProcessors } from "../../mocks/obsidian/markdown";
import { notices, type, until } from "../../mocks/obsidian/testing";
import { box, button, done, has, retrieved, source, stages, texts, type Stage } from "./chat-fixture";

const set = stages();

afterEach(() => {
	codeBlockProcessors.clear();
	vi.restoreAllMocks();
});

async function ask(one: Stage, question: string): Promise<string> {
	const before = one.daemon.bodies("/v1/turns").length;
	type(box(one.el), question);
	button(one.el, "Send").click();
	await until(() => one.daemon.bodies("/v1/turns").length > before);
	return `turn${before + 1}`;
}

const answerText = (one: Stage): string => texts(one.el, ".tarsd-answer").at(-1) ?? "";

it("shows a question, then its answer as it grows, and says the answer once when it is whole", async () => {
	const one = await set();
	const said: string[] = [];
	const watch = new MutationObserver(() => {
		const words = texts(one.el, ".tarsd-live").join("");
		if (words !== "" && said.at(-1) !== words) said.push(words);
	});
	for (const live of Array.from(one.el.querySelectorAll(".tarsd-live"))) {
		expect(live.getAttribute("aria-live")).toBe("polite");
		watch.observe(live, { childList: true, characterData: true, subtree: true });
	}
	const turn = await ask(one, "What is tea?");
	expect(texts(one.el, ".tarsd-question-text")).toEqual(["What is tea?"]);
	one.daemon.send(turn, retrieved([source(1, "Tea.md")]));
	await until(() => texts(one.el, ".tarsd-state")[0] === "Answering…");
	one.daemon.send(turn, { type: "token", text: "Tea is **a leaf" });
	await until(() => answerText(one).includes("Tea is"));
	expect(said).toEqual([]);
	expect(one.el.querySelector(".tarsd-reply")?.getAttribute("aria-busy")).toBe("true");
	one.daemon.send(turn, { type: "token", text: "** [1]." }, done("Tea is **a leaf** [1].", [source(1, "Tea.md")]));
	await until(() => said.length > 0);
	expect(said).toEqual(["Answer: Tea is a leaf 1."]);
	expect(one.el.querySelector(".tarsd-answer strong")?.textContent).toBe("a leaf");
	expect(one.el.querySelector(".tarsd-reply")?.getAttribute("aria-busy")).toBe("false");
	expect(texts(one.el, ".tarsd-state")).toEqual([]);
	watch.disconnect();
});

it("makes citations links to their places, and marks the numbers that lead nowhere", async () => {
	const one = await set();
	const opened = vi.spyOn(one.app.workspace, "openLinkText");
	const sources = [source(1, "Tea.md", { heading: "Green", link: "[[Tea#Green]]" }), source(2, "Other.md", { collection: "work" })];
	const turn = await ask(one, "Tea?");
	one.daemon.send(turn, retrieved(sources), done("Leaves [1], work [2], and nothing [7].", sources));
	await until(() => texts(one.el, ".tarsd-citation").length === 3);
	const link = one.el.querySelector<HTMLAnchorElement>("a.tarsd-citation");
	expect(link?.getAttribute("aria-label")).toBe("Source 1: Tea › Green");
	link?.click();
	await until(() => opened.mock.calls.length === 1);
	expect(opened.mock.calls[0]?.slice(0, 3)).toEqual(["Tea.md#Green", "", false]);
	link?.dispatchEvent(new MouseEvent("auxclick", { button: 1, bubbles: true, cancelable: true }));
	await until(() => opened.mock.calls.length === 2);
	expect(opened.mock.calls[1]?.[2]).toBe("tab");
	const others = Array.from(one.el.querySelectorAll(".tarsd-answer span.tarsd-citation"));
	expect(others.map((el) => [el.textContent, el.getAttribute("title")])).toEqual([
		["2", "Other, in the collection “work”"],
		["7?", "There is no source 7"],
	]);
});

it("asks for the preview of a link under the mouse", async () => {
	const one = await set();
	const hovered: unknown[] = [];
	const note = (event: unknown): void => void hovered.push(event);
	one.app.workspace.on("hover-link" as "quit", note as () => void);
	const turn = await ask(one, "Tea?");
	one.daemon.send(turn, retrieved([source(1, "Tea.md")]), done("See [1].", [source(1, "Tea.md")]));
	await until(() => texts(one.el, "a.tarsd-citation").length === 1);
	one.el.querySelector("a.tarsd-citation")?.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
	expect(hovered).toMatchObject([{ linktext: "Tea", source: "tarsd-chat", sourcePath: "" }]);
});

it("never makes a note of a link that a model invented", async () => {
	const one = await set();
	const turn = await ask(one, "Tea?");
	one.daemon.send(turn, done("See [[Users/me/Phantom]] and [[Tea]]."));
	await until(() => texts(one.el, ".tarsd-dead-link").length === 1);
	const dead = one.el.querySelector<HTMLElement>(".tarsd-dead-link");
	expect(dead?.getAttribute("title")).toBe("No such note in this vault");
	dead?.click();
	const alive = one.el.querySelector<HTMLElement>(".tarsd-answer a.internal-link");
	expect(alive?.textContent).toBe("Tea");
	const file = one.app.vault.getFileByPath("Tea.md");
	if (file) await one.app.fileManager.trashFile(file);
	alive?.click();
	await until(() => notices().includes("No such note in this vault"));
	expect(one.app.vault.getFiles()).toEqual([]);
});

it("carries out nothing that is in an answer", async () => {
	const one = await set({ files: { "Tea.md": "secret" } });
	const ran = vi.fn();
	codeBlockProcessors.set("dataviewjs", ran);
	const turn = await ask(one, "Tea?");
	const text = [
		"![[Tea]] ![x](https://evil.example/p.png) <img src=\"https://evil.example/q.png\">",
		"<iframe src=\"https://evil.example\"></iframe>",
		"```dataviewjs\ndv.pages()\n```",
		"```mermaid\ngraph TD\n```",
		"```js\nlet a = \"<img src=x>\";\n```",
	].join("\n\n");
	one.daemon.send(turn, done(text));
	await until(() => texts(one.el, ".mermaid").length === 1);
	const answer = one.el.querySelector(".tarsd-answer");
	expect(ran).not.toHaveBeenCalled();
	expect(answer?.querySelector("img, iframe, .internal-embed")).toBeNull();
	expect(answer?.textContent).toContain("dv.pages()");
	expect(answer?.textContent).toContain("let a = \"<img src=x>\";");
	expect(answer?.textContent).toContain("iframe src=");
});

it("follows links to names that look encoded, as they stand and encoded once more", async () => {
	const one = await set({ files: { "50%25 off.md": "", "a%20b.md": "", "C d.md": "" } });
	const turn = await ask(one, "Tea?");
	one.daemon.send(turn, done("[[50%25 off]] [x](50%2525%20off.md) [[a%20b]] [y](C%20d.md) [[50% off]] [z](gone%25.md) End."));
	await until(() => answerText(one).includes("End."));
	expect(one.el.querySelectorAll(".tarsd-answer a")).toHaveLength(4);
	expect(Array.from(one.el.querySelectorAll(".tarsd-dead-link")).map((el) => el.textContent)).toEqual(["50% off", "z"]);
});

it("shows the pictures of the vault that are in an answer, and no others", async () => {
	const one = await set({ files: { "Tea.md": "secret", "pics/Leaf.png": "PNG", "pics/Ü b.svg": "SVG" } });
	const turn = await ask(one, "Tea?");
	const text = "![[Leaf.png|120]] ![a leaf](pics/%C3%9C%20b.svg) ![[gone.png]] ![[Tea]] ![x](https://evil.example/p.png) End.";
	one.daemon.send(turn, done(text));
	await until(() => answerText(one).includes("End."));
	const answer = one.el.querySelector(".tarsd-answer");
	const shown = Array.from(answer?.querySelectorAll("img") ?? []);
	expect(shown.map((img) => img.className)).toEqual(["tarsd-picture", "tarsd-picture"]);
	expect(shown.map((img) => img.getAttribute("src"))).toEqual(["app://local/pics/Leaf.png", "app://local/pics/%C3%9C%20b.svg"]);
	expect(answer?.querySelector(".internal-embed")).toBeNull();
	expect(answer?.innerHTML).not.toMatch(/src="https:/);
});

it("draws no diagram that would load something", async () => {
	const one = await set();
	const turn = await ask(one, "Tea?");
	one.daemon.send(turn, done("```mermaid\ngraph TD\n A[\"<img src='https://evil.example'>\"]\n```\n\nEnd."));
	await until(() => answerText(one).includes("End."));
	expect(texts(one.el, ".mermaid")).toEqual([]);
	expect(answerText(one)).toContain("<img src='https://evil.example'>");
});

it("has links to the web, to somebody and to notes, and no others", async () => {
	const one = await set();
	const turn = await ask(one, "Tea?");
	const dead = ["obsidian://open?vault=x", "file:///etc/passwd", "data:text/html,x", "vbscript:x"];
	const alive = ["https://a.example", "http://b.example", "mailto:a@b.example", "Tea.md"];
	one.daemon.send(turn, done([...dead, ...alive].map((href, n) => `[link${n}](${href})`).join(" ")));
	await until(() => answerText(one).includes("link7"));
	expect(Array.from(one.el.querySelectorAll(".tarsd-answer a")).map((link) => link.getAttribute("href"))).toEqual(alive);
	expect(answerText(one)).toContain("link0 link1 link2 link3");
});

it("has tasks with a name that nobody can tick off", async () => {
	const one = await set();
	const turn = await ask(one, "Tea?");
	one.daemon.send(turn, done("- [ ] Water\n- [x] Leaves"));
	await until(() => answerText(one).includes("Leaves"));
	const boxes = Array.from(one.el.querySelectorAll<HTMLInputElement>(".tarsd-answer input"));
	expect(boxes.map((box) => [box.disabled, box.checked, box.getAttribute("aria-label")])).toEqual([[true, false, "Task"], [true, true, "Task"]]);
});

/** An answer made of rows: what stands in each line, and the task's line as its source. */
const ROWS = `- [ ] Call Olla — [[Tea]] [1]
- [x] Wash the pot — [[Tea]] [2]
- [/] Half of it — [[Tea]] [2]
- [ ] Of nobody
	- [ ] Below it [3]
- [ ] A passage [4]
- [ ] Elsewhere [5]`;
const LINES = [
	source(1, "Tea.md", { start_line: 7, end_line: 7 }),
	source(2, "Tea.md", { start_line: 8, end_line: 8 }),
	source(3, "House/Plan: a.md", { start_line: 3, end_line: 3 }),
	source(4, "Tea.md", { start_line: 1, end_line: 9 }),
	source(5, "Tea.md", { start_line: 7, end_line: 7, collection: "work" }),
];

it("has a task's box ask for its change, once at a time, and tick nothing by itself", async () => {
	const one = await set();
	const turn = await ask(one, "/tasks");
	one.daemon.send(turn, retrieved(LINES), { type: "token", text: ROWS });
	await until(() => answerText(one).includes("Elsewhere"));
	const boxes = () => Array.from(one.el.querySelectorAll<HTMLInputElement>(".tarsd-answer input"));
	const free = () => boxes().filter((box) => !box.disabled);
	expect(free(), "while the answer is given").toEqual([]);
	one.daemon.send(turn, done(ROWS, LINES));
	await until(() => free().length > 0);
	expect(free().map((box) => box.getAttribute("aria-label"))).toEqual(["Complete “Call Olla — Tea”", "Complete “Below it”"]);
	expect(boxes().map((box) => box.checked)).toEqual([false, true, true, false, false, false, false]);

	free()[1]?.click();
	expect(boxes()[4]?.checked).toBe(false);
	await until(() => one.daemon.bodies("/v1/turns").length === 2);
	expect(one.daemon.bodies("/v1/turns")[1]).toMatchObject({ message: "/tasks done House/Plan: a.md:3", approvals: true });
	expect(one.daemon.bodies("/v1/turns")[1]).not.toHaveProperty("notes");
	expect(free(), "until that is answered").toEqual([]);
	await until(() => one.services.chats.running(one.view.shownConversation)?.local === false);
	one.daemon.send("turn2", done("Done."));
	await until(() => free().length === 2);
	expect(boxes()[0]?.checked, "the older answer is a record").toBe(false);
});

it("takes no number in somebody's words for a citation, and shows it as it stands", async () => {
	const one = await set();
	const turn = await ask(one, "/tasks");
	const text = "- [ ] See \\[1] and \\[2, 1?] — [[Tea]] [1]\n\n| Note | said |\n| --- | --- |\n| [[Tea]] [2] | **\\[1]** |\n\n`\\[1]`";
	one.daemon.send(turn, retrieved(LINES), done(text, LINES));
	await until(() => one.el.querySelector(".tarsd-answer td .tarsd-citation") !== null);
	expect(Array.from(one.el.querySelectorAll(".tarsd-answer .tarsd-citation")).map((el) => el.textContent)).toEqual(["1", "2"]);
	expect(one.el.querySelector(".tarsd-answer li")?.textContent?.trim()).toBe("See [1] and [2, 1?] — Tea 1");
	expect(one.el.querySelectorAll(".tarsd-answer td")[1]?.textContent).toBe("[1]");
	expect(answerText(one)).not.toContain("\u2060");
	expect(answerText(one)).toContain("\\[1]");
});

it("draws a table's links, bars and citations, in whichever cell they stand", async () => {
	const one = await set();
	const turn = await ask(one, "/notes");
	const text = "| Note | said |\n| --- | --- |\n| [[Tea]] [1] | a \\| b, [[Tea\\|green]] [2] |";
	one.daemon.send(turn, retrieved(LINES), done(text, LINES));
	await until(() => one.el.querySelector(".tarsd-answer td .tarsd-citation") !== null);
	const cells = Array.from(one.el.querySelectorAll<HTMLElement>(".tarsd-answer td"));
	expect(cells.map((cell) => cell.textContent)).toEqual(["Tea 1", "a | b, green 2"]);
	expect(cells.map((cell) => cell.querySelectorAll("a.internal-link").length)).toEqual([2, 2]);
});

it("lets keys scroll a table that is wider than the pane, and nothing else", async () => {
	const one = await set();
	one.daemon.send(await ask(one, "/notes"), retrieved([]), done("What it says:\n\n| a | b |\n| --- | --- |\n| 1 | 2 |"));
	await until(() => one.el.querySelector(".tarsd-answer td") !== null);
	one.daemon.send(await ask(one, "And?"), retrieved([]), done("- no table"));
	await until(() => one.el.querySelector(".tarsd-answer li") !== null);
	const reached = Array.from(one.el.querySelectorAll<HTMLElement>(".tarsd-block[tabindex='0']"));
	expect(reached.map((block) => [block.querySelectorAll("table").length, block.getAttribute("aria-label")])).toEqual([[1, "Table"]]);
});

/** As when another plugin that looks through every note does not get on with this one. */
function breakCode(): () => unknown[][] {
	const told = vi.spyOn(console, "error").mockImplementation(() => undefined);
	codeBlockProcessors.set("python", () => {
		throw new Error("another plugin");
	});
	return () => told.mock.calls;
}

it("shows the words of a block that cannot be drawn, and all that follows", async () => {
	const told = breakCode();
	const one = await set();
	const turn = await ask(one, "Tea?");
	one.daemon.send(turn, done("First.\n\n```python\nbrew()\n```\n\nLast."));
	await until(() => answerText(one).includes("Last."));
	expect(answerText(one)).toContain("brew()");
	expect(told()).toEqual([[new Error("another plugin")]]);
});

it("shows earlier messages though one of them cannot be drawn", async () => {
	breakCode();
	const turns = Array.from({ length: 25 }, (_, n) => ({ id: `t${n}`, message: `Question ${n}`, text: n === 15 ? "```python\nbrew()\n```" : `Answer ${n}`, state: "done", at: n }));
	const one = await set({
		conversation: "long",
		prepare: (daemon) => void daemon.replies.set("GET /v1/conversations/long", { id: "long", title: "A long one", turns }),
	});
	await until(() => texts(one.el, ".tarsd-turn").length === 25);
	expect(texts(one.el, ".tarsd-answer")[15]).toContain("brew()");
});

it("draws only the block again that changed", async () => {
	const one = await set();
	const turn = await ask(one, "Tea?");
	one.daemon.send(turn, { type: "token", text: "First.\n\nSecond" });
	await until(() => texts(one.el, ".tarsd-block").length === 2);
	const first = one.el.querySelector(".tarsd-block");
	one.daemon.send(turn, { type: "token", text: " grows.\n\nThird" });
	await until(() => texts(one.el, ".tarsd-block").length === 3);
	expect(one.el.querySelector(".tarsd-block")).toBe(first);
	expect(texts(one.el, ".tarsd-block").map((text) => text.trim())).toEqual(["First.", "Second grows.", "Third"]);
	one.daemon.send(turn, { type: "retract" }, { type: "token", text: "Anew." }, done("Anew."));
	await until(() => answerText(one).trim() === "Anew.");
	expect(texts(one.el, ".tarsd-block")).toHaveLength(1);
});

it("lists the sources folded, or open if that is wished, or the nearest misses", async () => {
	const one = await set({ settings: { showSources: true } });
	const cited = source(1, "Tea.md", { heading: "Green", start_line: 3, end_line: 5 });
	const turn = await ask(one, "Tea?");
	one.daemon.send(turn, retrieved([cited, source(2, "Tea.md")]));
	await until(() => texts(one.el, ".tarsd-sources summary")[0] === "2 sources");
	one.daemon.send(turn, done("Yes [1].", [cited]));
	await until(() => texts(one.el, ".tarsd-sources summary")[0] === "1 source");
	expect(one.el.querySelector("details.tarsd-sources")?.hasAttribute("open")).toBe(true);
	expect(texts(one.el, ".tarsd-source .tarsd-faint")).toEqual(["Green · lines 3–5"]);
	const next = await ask(one, "Coffee?");
	one.daemon.send(next, retrieved([], { closest: [source(1, "Tea.md")] }), done("Nothing found."));
	await until(() => texts(one.el, ".tarsd-sources summary").length === 2);
	expect(texts(one.el, ".tarsd-sources summary")[1]).toBe("No good match. Closest: 1 source");
});

it("tells what is done, what is behind, and which model it was", async () => {
	const one = await set();
	const turn = await ask(one, "Tea?");
	one.daemon.send(
		turn,
		retrieved([], { behind: 2, withheld: ["Diary"], model: "far", local: false, notices: ["The vault is away."] }),
		{ type: "thinking", text: "Let me " },
		{ type: "thinking", text: "see." },
		{ type: "tool", call: "t1", name: "memory_search", state: "running", arguments: { query: "tea" } },
	);
	await until(() => texts(one.el, ".tarsd-steps summary").length === 1);
	expect(texts(one.el, ".tarsd-steps summary")).toEqual(["1 step · Search the notes…"]);
	one.daemon.send(turn, { type: "tool", call: "t1", name: "memory_search", state: "done", text: "2 notes" }, done("Yes.", [], { notices: ["The vault is away."], usage: "9 tokens, 0.01 €", month: "This month: 80 tokens, 0.07 €" }));
	await until(() => texts(one.el, ".tarsd-step-state")[0] === "Done");
	expect(texts(one.el, ".tarsd-thoughts-text")).toEqual(["Let me see."]);
	expect(one.el.querySelector("details.tarsd-steps")?.hasAttribute("open")).toBe(false);
	expect(texts(one.el, ".tarsd-notices li")).toEqual([
		"The vault is away.",
		"Changed, not indexed yet: 2",
		"Private, not shown to this model: Diary",
		"Answered by far, not on this machine",
		"9 tokens, 0.01 € · This month: 80 tokens, 0.07 €",
	]);
});

it("keeps the last messages in the document, and shows earlier ones when asked", async () => {
	const turns = Array.from({ length: 70 }, (_, n) => ({ id: `t${n}`, message: `Question ${n}`, text: `Answer ${n}`, state: "done", at: n }));
	const one = await set({
		conversation: "long",
		prepare: (daemon) => void daemon.replies.set("GET /v1/conversations/long", { id: "long", title: "A long one", turns }),
	});
	const shown = (): number => texts(one.el, ".tarsd-turn").length;
	await until(() => shown() > 0);
	expect(texts(one.el, ".tarsd-title")).toEqual(["A long one"]);
	await until(() => shown() === 30);
	expect(texts(one.el, ".tarsd-question-text")[0]).toBe("Question 40");
	button(one.el, "Show earlier (40)").click();
	await until(() => shown() === 60);
	expect(texts(one.el, ".tarsd-question-text")[0]).toBe("Question 10");
	button(one.el, "Show earlier (10)").click();
	await until(() => shown() === 70);
	expect(texts(one.el, ".tarsd-question-text")).toEqual(turns.map(({ message }) => message));
	expect(texts(one.el, ".tarsd-answer").map((text) => text.trim())).toEqual(turns.map(({ text }) => text));
	expect(has(one.el, "Show earlier (0)")).toBe(false);
	expect(one.el.querySelector(".tarsd-turn h3 .tarsd-sr")?.textContent).toBe("Question 1");
});

it("draws a long conversation in slices, the end first, and goes on while an answer comes", async () => {
	const turns = Array.from({ length: 50 }, (_, n) => ({ id: `t${n}`, message: `Question ${n}`, text: `Answer ${n}`, state: "done", at: n }));
	const one = await set({
		conversation: "long",
		prepare: (daemon) => void daemon.replies.set("GET /v1/conversations/long", { id: "long", title: "A long one", turns }),
	});
	const counts: number[] = [];
	const watch = new MutationObserver(() => counts.push(texts(one.el, ".tarsd-turn").length));
	const list = one.el.querySelector(".tarsd-turns");
	if (list) watch.observe(list, { childList: true });
	await until(() => texts(one.el, ".tarsd-turn").length >= 8);
	expect(texts(one.el, ".tarsd-question-text").at(-1)).toBe("Question 49");
	const turn = await ask(one, "One more?");
	for (let n = 0; n < 8; n++) {
		one.daemon.send(turn, { type: "token", text: `word${n} ` });
		await new Promise((resolve) => setTimeout(resolve, 10));
	}
	await until(() => texts(one.el, ".tarsd-turn").length === 31);
	watch.disconnect();
	expect(texts(one.el, ".tarsd-question-text")).toEqual([...turns.slice(20).map(({ message }) => message), "One more?"]);
	const steps = counts.map((count, at) => count - (counts[at - 1] ?? 0)).slice(1);
	expect(Math.max(...steps)).toBeLessThanOrEqual(8);
	// another conversation takes the place of one that is not all drawn yet
	button(one.el, "New chat").click();
	await new Promise((resolve) => setTimeout(resolve, 60));
	expect(texts(one.el, ".tarsd-turn")).toEqual([]);
});

it("turns tables and lists to the side where their text begins", async () => {
	const one = await set();
	const turn = await ask(one, "?");
	one.daemon.send(turn, done("- אחת\n- two\n\n| מצב | לחץ |\n| --- | --- |\n| קר | 1.2 |\n\n1. First\n\n1.2\n"));
	await until(() => texts(one.el, ".tarsd-answer ol").length === 1);
	const directions = (selector: string): string[] => Array.from(one.el.querySelectorAll<HTMLElement>(selector)).map((el) => el.dir);
	expect(directions(".tarsd-block").slice(0, 2)).toEqual(["rtl", "rtl"]);
	expect(directions(".tarsd-answer :is(ul, table, ol)")).toEqual(["rtl", "rtl", "ltr"]);
	expect(one.el.querySelectorAll(".tarsd-answer li[dir]")).toHaveLength(0);
});

it("follows the end until the person scrolls up, and again after “Jump to latest”", async () => {
	const one = await set();
	const list = one.el.querySelector<HTMLElement>(".tarsd-list");
	if (!list) throw new Error("There is no list.");
	let height = 1000;
	Object.defineProperties(list, { scrollHeight: { get: () => height }, clientHeight: { get: () => 400 } });
	const turn = await ask(one, "Tea?");
	const grow = async (text: string): Promise<void> => {
		height += 300;
		one.daemon.send(turn, { type: "token", text });
		await until(() => answerText(one).includes(text.trim()));
		await new Promise((resolve) => window.requestAnimationFrame(() => window.requestAnimationFrame(resolve)));
	};
	await grow("one");
	expect(list.scrollTop).toBe(900);
	list.scrollTop = 100;
	list.dispatchEvent(new Event("scroll"));
	await grow(" two");
	expect(list.scrollTop).toBe(100);
	button(one.el, "Jump to latest").click();
	expect(list.scrollTop).toBe(1200);
	expect(has(one.el, "Jump to latest")).toBe(false);
	await grow(" three");
	expect(list.scrollTop).toBe(1500);
});
