import { Platform } from "obsidian";
import { expect, it, vi } from "vitest";
import { notices, openNote, press, type, until } from "../../mocks/obsidian/testing";
import { TransportError } from "../../src/transport/transport";
import { box, button, done, has, nameOf, retrieved, stages, texts, visible, type Stage } from "./chat-fixture";

const set = stages();

const FILES = {
	"Tea.md": "# Tea",
	"Work/Plan.md": "---\ntags: [busy]\n---\nPlan",
	"Work/Deep/Old.md": "old",
};

/** What browsers say of a key that an input method took, also when it is composing no more. */
const TAKEN: KeyboardEventInit = JSON.parse('{"keyCode": 229}') as KeyboardEventInit;

const turns = (one: Stage): Record<string, unknown>[] => one.daemon.bodies("/v1/turns");
const options = (one: Stage): string[] => texts(one.el, "[role=option] > .tarsd-suggestion-text > div:first-child");
const chips = (one: Stage): string[] => texts(one.el, ".tarsd-chip-name");

it("never sends with a key that an input method uses, and sends once with one that is held", async () => {
	const one = await set();
	type(box(one.el), "日本");
	press(box(one.el), "Enter", { isComposing: true });
	press(box(one.el), "Enter", TAKEN);
	press(box(one.el), "Enter", { shiftKey: true });
	expect(turns(one)).toEqual([]);
	press(box(one.el), "Enter");
	press(box(one.el), "Enter", { repeat: true });
	await until(() => turns(one).length > 0);
	expect(turns(one)).toEqual([
		{ conversation: "id1", message: "日本", request_id: "id2", writer: "client", approvals: true },
	]);
	expect(box(one.el).value).toBe("");
});

it("sends with the key that the person chose, and on a phone with the button", async () => {
	const one = await set({ settings: { sendKey: "mod-enter" } });
	type(box(one.el), "a");
	expect(press(box(one.el), "Enter")).toBe(true);
	expect(turns(one)).toEqual([]);
	press(box(one.el), "Enter", { ctrlKey: true });
	await until(() => turns(one).length === 1);
	one.settings.sendKey = "enter";
	Object.assign(Platform, { isMobile: true });
	type(box(one.el), "b");
	expect(press(box(one.el), "Enter")).toBe(true);
	button(one.el, "Send").click();
	await until(() => turns(one).length === 2);
});

it("gives the box the room that its text takes", async () => {
	const one = await set();
	const behind = (): string => box(one.el).parentElement?.dataset["text"] ?? "";
	type(box(one.el), "a text of\nmore than one line");
	expect(behind()).toBe("a text of\nmore than one line");
	press(box(one.el), "Enter");
	await until(() => turns(one).length === 1);
	expect(behind()).toBe("");
});

it("offers the whole vault under a name", async () => {
	const one = await set({ files: FILES, settings: { attachCurrentNote: false } });
	type(box(one.el), "In @vau");
	expect(options(one)).toEqual(["Vault/"]);
	press(box(one.el), "Enter");
	expect(box(one.el).value).toBe("In Vault/ ");
	expect(chips(one)).toEqual(["Vault/"]);
	button(one.el, "Send").click();
	await until(() => turns(one).length === 1);
	expect(turns(one)[0]?.["notes"]).toHaveLength(3);
});

it("says where a question could not be sent to", async () => {
	const one = await set();
	one.daemon.replies.set("POST /v1/turns", new TransportError("malformed", "no"));
	type(box(one.el), "x");
	press(box(one.el), "Enter");
	await until(() => texts(one.el, ".tarsd-state .tarsd-faint").length === 1);
	expect(texts(one.el, ".tarsd-state .tarsd-faint")).toEqual(["Something else answers at /x/v.sock. Check the address in the settings."]);
});

it("cannot send nothing", async () => {
	const one = await set();
	expect(button(one.el, "Send").disabled).toBe(true);
	type(box(one.el), "  \n");
	expect(button(one.el, "Send").disabled).toBe(true);
	press(box(one.el), "Enter");
	expect(texts(one.el, ".tarsd-turn")).toEqual([]);
});

it("sends no question that the daemon would refuse for its length, and keeps it", async () => {
	const one = await set();
	type(box(one.el), "🌱".repeat(200_000));
	press(box(one.el), "Enter");
	await until(() => turns(one).length === 1);
	type(box(one.el), "x".repeat(200_001));
	press(box(one.el), "Enter");
	expect(notices()).toEqual(["The question is too long: at most 200000 characters. Put the rest into a note."]);
	expect(box(one.el).value).toHaveLength(200_001);
	expect(turns(one)).toHaveLength(1);
});

it("lays out no more of a long text behind the box than makes it as high as it gets", async () => {
	const one = await set();
	type(box(one.el), "word\n".repeat(200_000));
	const sizer = one.el.querySelector<HTMLElement>(".tarsd-box-sizer");
	expect(sizer?.dataset["text"]?.length).toBe(10_000);
	const changed = vi.fn();
	const watch = new MutationObserver(changed);
	if (sizer) watch.observe(sizer, { attributes: true });
	type(box(one.el), `${box(one.el).value}more`);
	await Promise.resolve();
	expect(changed).not.toHaveBeenCalled();
	watch.disconnect();
});

it("names notes after [[ with the keyboard alone", async () => {
	const one = await set({ files: FILES });
	type(box(one.el), "About [[pl");
	expect(options(one)).toEqual(["Plan"]);
	const id = box(one.el).getAttribute("aria-activedescendant") ?? "";
	expect(one.el.querySelector(`#${id}`)?.getAttribute("aria-selected")).toBe("true");
	press(box(one.el), "Enter");
	expect(box(one.el).value).toBe("About [[Plan]] ");
	expect(turns(one)).toEqual([]);
	expect(options(one)).toEqual([]);
	type(box(one.el), "[[t");
	press(box(one.el), "Escape");
	expect(options(one)).toEqual([]);
	type(box(one.el), "[[te");
	expect(options(one)).toEqual([]);
});

it("adds notes, folders and tags after @, as chips that can be taken away", async () => {
	const one = await set({ files: FILES, settings: { attachCurrentNote: false } });
	button(one.el, "Add a note, folder or tag").click();
	expect(box(one.el).value).toBe("@");
	expect(options(one)).toContain("Work/");
	type(box(one.el), "In @work");
	expect(options(one)[0]).toBe("Work/");
	one.el.querySelector<HTMLElement>("[role=option]")?.click();
	expect(chips(one)).toEqual(["Work/"]);
	expect(box(one.el).value).toBe("In Work/ ");
	button(one.el, "Send").click();
	await until(() => turns(one).length === 1);
	expect((turns(one)[0]?.["notes"] as string[]).sort()).toEqual(["Work/Deep/Old.md", "Work/Plan.md"]);
	expect(chips(one)).toEqual([]);
	type(box(one.el), "@deep");
	press(box(one.el), "Tab");
	expect(chips(one)).toEqual(["Work/Deep/"]);
	button(one.el, "Remove Work/Deep/").click();
	expect(chips(one)).toEqual([]);
	expect(document.activeElement).toBe(box(one.el));
});

it("names PDFs, other files that are read, and pictures with their endings", async () => {
	const files = { ...FILES, "Work/Manual.pdf": "x", "Work/Budget.XLSX": "x", "Shots/Manual page.png": "x", "Shots/film.mp4": "x" };
	const one = await set({ files, settings: { attachCurrentNote: false } });
	type(box(one.el), "What says @manu");
	expect(options(one).map((text) => text.split("\n")[0])).toEqual(expect.arrayContaining([expect.stringContaining("Manual.pdf"), expect.stringContaining("Manual page.png")]));
	press(box(one.el), "Enter");
	expect(box(one.el).value).toBe("What says [[Manual.pdf]] ");
	type(box(one.el), "And @budg");
	expect(options(one)[0]).toContain("Budget.XLSX");
	type(box(one.el), "And @film");
	expect(options(one)).toEqual([]);
});

it("shows the current note and what is marked in it, and sends only what is shown", async () => {
	const one = await set({ files: FILES });
	await openNote(one.app, "Tea.md");
	await until(() => chips(one)[0] === "Tea (current note)");
	type(box(one.el), "one");
	press(box(one.el), "Enter");
	await until(() => turns(one).length === 1);
	expect(turns(one)[0]).toMatchObject({ notes: ["Tea.md"] });
	one.marked = { path: "Tea.md", name: "Tea", text: "green leaves" };
	document.dispatchEvent(new Event("selectionchange"));
	await until(() => chips(one)[0] === "Selection in Tea (12 characters)");
	type(box(one.el), "two");
	press(box(one.el), "Enter");
	await until(() => turns(one).length === 2);
	expect(turns(one)[1]).toMatchObject({ selection: "green leaves" });
	expect(turns(one)[1]).not.toHaveProperty("notes");
	button(one.el, "Remove Selection in Tea (12 characters)").click();
	button(one.el, "Remove Tea (current note)").click();
	type(box(one.el), "three");
	press(box(one.el), "Enter");
	await until(() => turns(one).length === 3);
	expect(turns(one)[2]).not.toHaveProperty("notes");
	expect(turns(one)[2]).not.toHaveProperty("selection");
});

it("stops at once, keeps what came, and offers to go on or to ask again", async () => {
	const one = await set();
	type(box(one.el), "Tea?");
	press(box(one.el), "Enter");
	await until(() => has(one.el, "Stop"));
	await until(() => turns(one).length === 1);
	one.daemon.send("turn1", retrieved([]), { type: "token", text: "Half an" });
	await until(() => texts(one.el, ".tarsd-answer")[0]?.includes("Half an") ?? false);
	button(one.el, "Stop").click();
	await until(() => one.daemon.asked.some((call) => call.path === "/v1/turns/turn1/stop"));
	one.daemon.send("turn1", done("Half an", [], { stopped: true }));
	await until(() => has(one.el, "Continue"));
	expect(has(one.el, "Stop")).toBe(false);
	expect(texts(one.el, ".tarsd-answer")[0]?.trim()).toBe("Half an");
	expect(texts(one.el, ".tarsd-state-text")).toEqual(["Stopped."]);
	button(one.el, "Continue").click();
	await until(() => turns(one).length === 2);
	expect(turns(one)[1]).toMatchObject({ message: "Please continue." });
});

it("gives a question back that was stopped before its turn", async () => {
	const one = await set();
	for (const text of ["one", "two"]) {
		type(box(one.el), text);
		press(box(one.el), "Enter");
	}
	await until(() => turns(one).length === 2);
	one.daemon.send("turn1", retrieved([]), done("One."));
	one.daemon.send("turn2", { type: "queued", position: 1 });
	await until(() => texts(one.el, ".tarsd-state-text").includes("Waiting for the previous question"));
	button(one.el, "Stop").click();
	expect(box(one.el).value).toBe("two");
});

it("says why a question was not sent, and sends it again under the same id", async () => {
	const one = await set();
	one.daemon.replies.set("POST /v1/turns", new TransportError("cut", "cut"));
	type(box(one.el), "Tea?");
	press(box(one.el), "Enter");
	await until(() => has(one.el, "Ask again"));
	expect(texts(one.el, ".tarsd-state-text")).toEqual(["Not sent. The connection broke off"]);
	one.daemon.replies.delete("POST /v1/turns");
	button(one.el, "Ask again").click();
	await until(() => turns(one).length === 2);
	const [first, second] = turns(one);
	expect(second).toEqual(first);
	expect(texts(one.el, ".tarsd-question-text")).toEqual(["Tea?"]);
	one.daemon.send("turn1", { type: "failed", error: { code: "model", message: "The model is gone.", hint: "Start it." }, text: "" });
	await until(() => texts(one.el, ".tarsd-state-text")[0] === "No answer. The model is gone.");
	expect(texts(one.el, ".tarsd-state .tarsd-faint")).toEqual(["Start it."]);
});

it("puts an unsent question back into the box", async () => {
	const one = await set();
	one.daemon.replies.set("POST /v1/turns", new TransportError("timeout", "slow"));
	type(box(one.el), "Tea?");
	press(box(one.el), "Enter");
	await until(() => has(one.el, "Back to the input"));
	button(one.el, "Back to the input").click();
	expect(box(one.el).value).toBe("Tea?");
	expect(texts(one.el, ".tarsd-turn")).toEqual([]);
});

it("keeps what was written when there is nobody to send it to", async () => {
	const one = await set({
		connected: false,
		prepare: (daemon) => {
			daemon.reachable = new TransportError("not-running", "ENOENT");
		},
	});
	expect(texts(one.el, ".tarsd-connection .tarsd-link-state")).toEqual(["Tarsd is not running"]);
	expect(texts(one.el, ".tarsd-connection code")).toEqual(["tarsd run --vault /home/person/Vault"]);
	type(box(one.el), "Tea?");
	press(box(one.el), "Enter");
	expect(box(one.el).value).toBe("Tea?");
	expect(notices()[0]).toContain("Tarsd is not running");
	let copied = "";
	const writeText = (text: string): Promise<void> => {
		copied = text;
		return Promise.resolve();
	};
	Object.defineProperty(navigator, "clipboard", { value: { writeText }, configurable: true });
	button(one.el, "Copy command").click();
	await until(() => notices().includes("Copied"));
	expect(copied).toBe("tarsd run --vault /home/person/Vault");
	one.daemon.reachable = null;
	button(one.el, "Try again").click();
	await until(() => texts(one.el, ".tarsd-connection").length === 0);
	press(box(one.el), "Enter");
	await until(() => turns(one).length === 1);
});

it("has a name for everything that can be reached", async () => {
	const one = await set({ files: FILES });
	await openNote(one.app, "Tea.md");
	type(box(one.el), "Tea? @");
	const controls = Array.from(one.el.querySelectorAll("button, textarea, [tabindex='0'], [role=listbox], summary")).filter(visible);
	expect(controls.length).toBeGreaterThan(6);
	const label = (el: Element): string => one.el.querySelector(`label[for="${el.id}"]`)?.textContent ?? "";
	for (const el of controls) expect(nameOf(el).trim() || label(el), el.outerHTML).not.toBe("");
	for (const icon of Array.from(one.el.querySelectorAll("button svg"))) expect(icon.getAttribute("aria-hidden")).toBe("true");
});

it("offers what the daemon answers without a model after a slash, and sends it as it is", async () => {
	const one = await set();
	const shown = () => texts(one.el, ".tarsd-suggestion");
	type(box(one.el), "/");
	expect(shown()).toHaveLength(5);
	expect(shown().map((words) => words.slice(0, 5))).toEqual(["/base", "/note", "/task", "/usag", "/dige"]);
	type(box(one.el), "/ta");
	press(box(one.el), "Enter");
	expect(box(one.el).value).toBe("/tasks ");
	expect(shown()).toEqual([]);
	type(box(one.el), "/tasks");
	expect(shown(), "a whole one is sent with Enter").toEqual([]);
	type(box(one.el), "/tasks  --overdue");
	press(box(one.el), "Enter");
	await until(() => one.daemon.bodies("/v1/turns").length === 1);
	expect(one.daemon.bodies("/v1/turns")[0]?.["message"]).toBe("/tasks  --overdue");
	type(box(one.el), "what is in /ta");
	expect(shown()).toEqual([]);
});

it("offers the person's prompts after a slash, once the daemon has named them", async () => {
	const one = await set();
	const prompt = { name: "weekly-review", path: "tars/prompts/Weekly review.md", description: "My week", arguments: "[topic]", problem: "" };
	one.daemon.replies.set("GET /v1/prompts", { prompts: [prompt, { ...prompt, name: "überblick", problem: "It has no text." }], offered: [] });
	const shown = () => texts(one.el, ".tarsd-suggestion");
	type(box(one.el), "/");
	await until(() => shown().length === 7);
	expect(shown()).toContain("/weekly-review[topic] · My week");
	expect(shown()).toContain("/überblick[topic] · It has no text.");
	type(box(one.el), "/weekly-r");
	press(box(one.el), "Enter");
	expect(box(one.el).value).toBe("/weekly-review ");
	type(box(one.el), "/über");
	await until(() => shown().length === 1);
	expect(shown()).toEqual(["/überblick[topic] · It has no text."]);
	type(box(one.el), "hello");
	expect(shown()).toEqual([]);
});
