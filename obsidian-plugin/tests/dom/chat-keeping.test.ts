import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Platform } from "obsidian";
import { expect, it } from "vitest";
import { diskAdapter } from "../../mocks/obsidian/disk";
import { makeApp, notices, openNote, press, setConfig, type, until } from "../../mocks/obsidian/testing";
import { CHAT_VIEW, ChatView } from "../../src/ui/chat-view";
import { box, button, done, FakeDaemon, has, notFound, retrieved, source, stages, texts, type Stage } from "./chat-fixture";

const set = stages();

async function answered(one: Stage, text: string, more: Record<string, unknown> = {}): Promise<void> {
	type(box(one.el), "What is tea?");
	press(box(one.el), "Enter");
	await until(() => one.daemon.bodies("/v1/turns").length === 1);
	const sources = [source(1, "Tea.md", { heading: "Green", link: "[[Tea#Green]]" })];
	one.daemon.send("turn1", retrieved(sources), done(text, sources, more));
	await until(() => has(one.el, "Save as note"));
}

const read = async (one: Stage, path: string): Promise<string> => {
	const file = one.app.vault.getFileByPath(path);
	return file ? one.app.vault.read(file) : "";
};

it("copies an answer as Markdown with links", async () => {
	const one = await set();
	let copied = "";
	const writeText = (text: string): Promise<void> => {
		copied = text;
		return Promise.resolve();
	};
	Object.defineProperty(navigator, "clipboard", { value: { writeText }, configurable: true });
	await answered(one, "A **leaf** [1].");
	button(one.el, "Copy").click();
	await until(() => notices().includes("Copied"));
	expect(copied).toBe("A **leaf** [[Tea#Green|1]].\n\n**Sources**\n\n1. [[Tea#Green|Tea › Green]]");
});

it("adds an answer to the note that is open, with links as this vault writes them", async () => {
	const one = await set();
	setConfig(one.app, "useMarkdownLinks", true);
	await openNote(one.app, "Tea.md");
	await answered(one, "A leaf [1].");
	button(one.el, "Append to note").click();
	await until(() => notices().includes("Added to “Tea”."));
	expect(await read(one, "Tea.md")).toContain("Green tea.\n\nA leaf [1](Tea.md#Green).\n");
});

it("keeps the line ends of a note that it adds to", async () => {
	const one = await set({ files: { "Tea.md": "# Tea\r\n\r\nGreen tea.\r\n" } });
	await openNote(one.app, "Tea.md");
	await answered(one, "A leaf.\n\nMore.");
	button(one.el, "Append to note").click();
	await until(() => notices().includes("Added to “Tea”."));
	expect(await read(one, "Tea.md")).toBe("# Tea\r\n\r\nGreen tea.\r\n\r\nA leaf.\r\n\r\nMore.\r\n");
});

it("adds nothing to a note that is not in UTF-8", async () => {
	const folder = mkdtempSync(join(tmpdir(), "tp-"));
	const bytes = Buffer.from("caf\xe9\n", "latin1");
	writeFileSync(join(folder, "Tea.md"), bytes);
	try {
		const one = await set({ app: makeApp({ adapter: diskAdapter(folder) }) });
		await openNote(one.app, "Tea.md");
		await answered(one, "A leaf.");
		button(one.el, "Append to note").click();
		await until(() => notices().length > 0);
		expect(notices()).toEqual(["The note is not UTF-8, so nothing was added."]);
		expect(readFileSync(join(folder, "Tea.md"))).toEqual(bytes);
		writeFileSync(join(folder, "Tea.md"), "café\n");
		button(one.el, "Append to note").click();
		await until(() => notices().includes("Added to “Tea”."));
		expect(readFileSync(join(folder, "Tea.md"), "utf8")).toBe("café\n\nA leaf.\n");
	} finally {
		rmSync(folder, { recursive: true });
	}
});

it("saves an answer under the name of its question, each time under a free one", async () => {
	const one = await set({ settings: { noteFolder: "Kept" } });
	await answered(one, "A leaf [1].");
	button(one.el, "Save as note").click();
	await until(() => notices().includes("Saved as “Kept/What is tea.md”."));
	button(one.el, "Save as note").click();
	await until(() => notices().includes("Saved as “Kept/What is tea 1.md”."));
	const text = await read(one, "Kept/What is tea.md");
	expect(text).toContain("> What is tea?");
	expect(text).toContain("A leaf [[Tea#Green|1]].");
	expect(text).not.toContain("local_only");
});

it("keeps private what it saves of a private answer", async () => {
	const one = await set();
	await answered(one, "A secret [1].", { private: true });
	button(one.el, "Save as note").click();
	await until(() => notices().some((text) => text.startsWith("Saved as")));
	const made = one.app.vault.getMarkdownFiles().find((file) => file.path !== "Tea.md");
	expect(await read(one, made?.path ?? "")).toMatch(/^---\nlocal_only: true\n---\n/);
});

it("inserts an answer where the cursor was, with links as seen from that note", async () => {
	const one = await set();
	const editor = await openNote(one.app, "Tea.md");
	editor.setSelection({ line: 2, ch: 0 }, { line: 2, ch: 10 });
	await answered(one, "A leaf [1].");
	button(one.el, "Insert at cursor").click();
	expect(editor.getValue()).toBe("# Tea\n\nA leaf [[Tea#Green|1]].");
});

it("says so when there is no editor to insert into", async () => {
	const one = await set();
	await answered(one, "A leaf.");
	button(one.el, "Insert at cursor").click();
	expect(notices()).toContain("Place the cursor in a note first.");
});

it("keeps a verdict with the person's words", async () => {
	const one = await set();
	await answered(one, "A leaf.");
	button(one.el, "Wrong answer").click();
	const form = one.el.querySelector<HTMLTextAreaElement>(".tarsd-feedback textarea");
	if (!form) throw new Error("There is no form.");
	expect(document.activeElement).toBe(form);
	press(form, "Escape");
	expect(document.activeElement).toBe(button(one.el, "Wrong answer"));
	button(one.el, "Wrong answer").click();
	type(one.el.querySelector<HTMLTextAreaElement>(".tarsd-feedback textarea") ?? form, "It is a shrub.");
	button(one.el, "Save").click();
	await until(() => notices().includes("Saved."));
	expect(one.daemon.bodies("/v1/feedback")).toEqual([{ turn: "turn1", verdict: "wrong", note: "It is a shrub." }]);
	expect(button(one.el, "Wrong answer").getAttribute("aria-pressed")).toBe("true");
	expect(button(one.el, "Good answer").getAttribute("aria-pressed")).toBe("false");
});

const DIFF = "--- a/Tea.md\n+++ b/Tea.md\n@@ -1,1 +1,1 @@\n-Green tea is old.\n+Green tea is new.\n";

async function asks(one: Stage, ...calls: string[]): Promise<void> {
	type(box(one.el), "Change it");
	press(box(one.el), "Enter");
	await until(() => one.daemon.bodies("/v1/turns").length === 1);
	one.daemon.send("turn1", retrieved([]));
	for (const call of calls) {
		one.daemon.send(
			"turn1",
			{ type: "tool", call, name: "note_patch", state: "running", arguments: {} },
			{ type: "approval", call, name: "note_patch", title: `Change ${call}`, diff: DIFF, arguments: {} },
		);
	}
	await until(() => texts(one.el, ".tarsd-approval.is-asked").length === calls.length);
}

it("shows what would change, and does it only after a yes", async () => {
	const one = await set();
	await asks(one, "t1");
	expect(texts(one.el, ".tarsd-diff-line.is-remove")).toEqual(["Removed: −Green tea is old."]);
	expect(texts(one.el, ".tarsd-diff-line.is-add .tarsd-diff-changed")).toEqual(["new"]);
	expect(texts(one.el, ".tarsd-live").join("")).toBe("Needs your approval: Change t1");
	expect(one.daemon.bodies("/v1/turns/turn1/approvals/t1")).toEqual([]);
	const card = one.el.querySelector<HTMLElement>(".tarsd-approval");
	card?.focus();
	press(card ?? one.el, "y");
	await until(() => one.daemon.bodies("/v1/turns/turn1/approvals/t1").length === 1);
	expect(one.daemon.bodies("/v1/turns/turn1/approvals/t1")).toEqual([{ allow: true, always: false }]);
	expect(has(one.el, "Allow (y)")).toBe(false);
	expect(document.activeElement).toBe(box(one.el));
	const write = { id: "w1", path: "Tea.md", op: "modify" };
	one.daemon.send(
		"turn1",
		{ type: "write", ...write, content: "new", if_hash: "h", kind: "note" },
		{ type: "written", ...write, hash: "h2", by: "client" },
		{ type: "tool", call: "t1", name: "note_patch", state: "done", text: "Done" },
		done("Changed."),
	);
	await until(() => texts(one.el, ".tarsd-write").length === 1 && has(one.el, "Undo the change to Tea.md"));
	expect(one.performed.map((order) => order.id)).toEqual(["w1"]);
	// the list of changes says it, so the card does not say it again
	expect(texts(one.el, ".tarsd-approval")).toEqual([]);
	button(one.el, "Undo the change to Tea.md").click();
	await until(() => texts(one.el, ".tarsd-write")[0] === "“Tea.md” was restored");
	expect(one.daemon.bodies("/v1/writes/w1/undo")).toHaveLength(1);
});

it("denies, allows always, and keeps the question when the answer did not arrive", async () => {
	const one = await set();
	await asks(one, "t1", "t2");
	one.daemon.replies.set("POST /v1/turns/turn1/approvals/t1", notFound());
	one.el.querySelectorAll<HTMLElement>(".tarsd-approval.is-asked button").item(2).click();
	await until(() => notices().length > 0);
	expect(texts(one.el, ".tarsd-approval.is-asked")).toHaveLength(2);
	one.daemon.replies.clear();
	one.el.querySelectorAll<HTMLElement>(".tarsd-approval.is-asked button").item(2).click();
	await until(() => one.daemon.bodies("/v1/turns/turn1/approvals/t1").length === 2);
	button(one.el, "Always in this chat (a)").click();
	await until(() => one.daemon.bodies("/v1/turns/turn1/approvals/t2").length === 1);
	expect(one.daemon.bodies("/v1/turns/turn1/approvals/t1").at(-1)).toEqual({ allow: false, always: false });
	expect(one.daemon.bodies("/v1/turns/turn1/approvals/t2")).toEqual([{ allow: true, always: true }]);
});

it("answers all at once, and asks again when they are many", async () => {
	const one = await set();
	const calls = ["t1", "t2", "t3", "t4", "t5", "t6"];
	await asks(one, ...calls);
	button(one.el, "Allow all 6").click();
	const dialog = document.querySelector<HTMLElement>(".modal");
	expect(dialog?.textContent).toContain("6 changes");
	button(dialog ?? one.el, "Allow all 6").click();
	const answers = (): unknown[] => calls.flatMap((call) => one.daemon.bodies(`/v1/turns/turn1/approvals/${call}`));
	await until(() => answers().length === 6);
	expect(answers()).toEqual(calls.map(() => ({ allow: true, always: false })));
});

it("loses nothing when the pane is closed while it answers", async () => {
	const one = await set();
	type(box(one.el), "Tea?");
	press(box(one.el), "Enter");
	await until(() => one.daemon.bodies("/v1/turns").length === 1);
	one.daemon.send("turn1", retrieved([]), { type: "token", text: "Tea " });
	type(box(one.el), "half a thought");
	const state = one.view.getState();
	const { leaf } = one.view;
	await leaf.setViewState({ type: "empty" });
	one.daemon.send("turn1", { type: "token", text: "is good." }, done("Tea is good."));
	await leaf.setViewState({ type: CHAT_VIEW, state });
	const view = leaf.view;
	if (!(view instanceof ChatView)) throw new Error("There is no pane.");
	await until(() => texts(view.contentEl, ".tarsd-answer")[0]?.trim() === "Tea is good.");
	expect(box(view.contentEl).value).toBe("half a thought");
});

it("keeps what was being written when the app is started again", async () => {
	const before = await set();
	type(box(before.el), "half a thought");
	const conversation = before.view.shownConversation;
	await before.close();
	const one = await set({ app: before.app, conversation });
	expect(box(one.el).value).toBe("half a thought");
	press(box(one.el), "Enter");
	await until(() => one.daemon.bodies("/v1/turns").length === 1);
	await one.close();
	const again = await set({ app: before.app, conversation });
	expect(box(again.el).value).toBe("");
});

it("keeps what is written in one of two panes when something else changes", async () => {
	const one = await set();
	const conversation = one.view.shownConversation;
	await one.services.openChat({ conversation, place: "tab" });
	type(box(one.el), "half a thought");
	await openNote(one.app, "Tea.md");
	document.dispatchEvent(new Event("selectionchange"));
	const other = one.app.workspace.getLeavesOfType(CHAT_VIEW)[1]?.view;
	if (!(other instanceof ChatView)) throw new Error("There is no second pane.");
	await until(() => texts(other.contentEl, ".tarsd-chip-name").length === 1);
	box(other.contentEl).focus();
	expect(one.services.chats.draft(conversation).text).toBe("half a thought");
	await other.leaf.setViewState({ type: "empty" });
	await until(() => JSON.stringify(one.app.loadLocalStorage("tarsd-draft") ?? "").includes("half a thought"));
});

it("shows the same conversation after the app was started again, and follows what still runs", async () => {
	const daemon = new FakeDaemon();
	daemon.replies.set("GET /v1/conversations/c1", {
		id: "c1",
		title: "About tea",
		turns: [
			{ id: "a", message: "First?", state: "done", text: "One [1].", sources: [source(1, "Tea.md")], citations: [source(1, "Tea.md")] },
			{ id: "b", message: "Second?", state: "running" },
		],
	});
	daemon.send("b", retrieved([]), { type: "token", text: "Two" });
	const one = await set({ daemon, conversation: "c1" });
	await until(() => texts(one.el, ".tarsd-answer").at(-1)?.includes("Two") ?? false);
	expect(texts(one.el, ".tarsd-question-text")).toEqual(["First?", "Second?"]);
	expect(texts(one.el, "a.tarsd-citation")).toEqual(["1"]);
	daemon.send("b", done("Two."));
	await until(() => texts(one.el, ".tarsd-answer").at(-1)?.trim() === "Two.");
	expect(one.view.getDisplayText()).toBe("About tea");
});

it("says that an answer was cut off when the daemon was started again meanwhile", async () => {
	const one = await set();
	type(box(one.el), "Tea?");
	press(box(one.el), "Enter");
	await until(() => one.daemon.bodies("/v1/turns").length === 1);
	one.daemon.send("turn1", retrieved([]), { type: "token", text: "Half" });
	await until(() => texts(one.el, ".tarsd-answer")[0]?.includes("Half") ?? false);
	const saved = { id: "id1", title: "Tea?", turns: [{ id: "turn1", message: "Tea?", state: "interrupted", text: "Half" }] };
	one.daemon.replies.set("GET /v1/conversations/id1", saved);
	one.services.connection.retry();
	await until(() => texts(one.el, ".tarsd-state-text")[0] === "The daemon stopped during the answer.");
	expect(texts(one.el, ".tarsd-answer")[0]?.trim()).toBe("Half");
	expect(has(one.el, "Ask again")).toBe(true);
});

it("begins a new conversation, and shows two panes of one", async () => {
	const one = await set();
	await answered(one, "A leaf.");
	await one.services.openChat({ conversation: one.view.shownConversation, place: "tab" });
	const panes = one.app.workspace.getLeavesOfType(CHAT_VIEW).map((leaf) => leaf.view);
	expect(panes).toHaveLength(2);
	for (const pane of panes) {
		if (!(pane instanceof ChatView)) throw new Error("That is no chat.");
		await until(() => texts(pane.contentEl, ".tarsd-answer")[0]?.trim() === "A leaf.");
	}
	button(one.el, "New chat").click();
	expect(texts(one.el, ".tarsd-turn")).toEqual([]);
	expect(texts(one.el, ".tarsd-welcome h3")).toEqual(["Ask your notes"]);
	button(one.el, "Conversations").click();
	expect(one.opened).toEqual(["history"]);
	const other = one.app.workspace.getLeavesOfType(CHAT_VIEW)[1]?.view;
	if (other instanceof ChatView) expect(texts(other.contentEl, ".tarsd-turn")).toHaveLength(1);
	await other?.leaf.setViewState({ type: "empty" });
});

it("shows a conversation in a window of its own, which can be closed while it answers", async () => {
	const one = await set();
	type(box(one.el), "Tea?");
	press(box(one.el), "Enter");
	await until(() => one.daemon.bodies("/v1/turns").length === 1);
	button(one.el, "Open in a window").click();
	const panes = (): ChatView[] => one.app.workspace.getLeavesOfType(CHAT_VIEW).map(({ view }) => view).filter((view) => view instanceof ChatView);
	await until(() => panes().length === 2);
	const other = panes()[1];
	if (!other) throw new Error("There is no second pane.");
	expect(other.contentEl.win).not.toBe(window);
	expect(other.getState()).toMatchObject({ conversation: one.view.shownConversation });
	one.daemon.send("turn1", retrieved([]), { type: "token", text: "A leaf" });
	await until(() => panes().every(({ contentEl }) => texts(contentEl, ".tarsd-answer")[0]?.trim() === "A leaf"));
	expect(button(other.contentEl, "Stop").hidden).toBe(false);
	other.leaf.detach();
	one.daemon.send("turn1", done("A leaf, dried."));
	await until(() => texts(one.el, ".tarsd-answer")[0]?.trim() === "A leaf, dried.");
	expect(panes()).toEqual([one.view]);
});

it("offers no window where the app has only one", async () => {
	Object.assign(Platform, { isDesktop: false, isMobile: true });
	const one = await set();
	expect(has(one.el, "Open in a window")).toBe(false);
	await one.services.openChat({ place: "window" });
	const docs = one.app.workspace.getLeavesOfType(CHAT_VIEW).map(({ view }) => view.containerEl.doc);
	expect(docs).toEqual([document, document]);
});
