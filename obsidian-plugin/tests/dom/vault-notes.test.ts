import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Component, TextFileView, type App, type WorkspaceLeaf } from "obsidian";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { diskAdapter } from "../../mocks/obsidian/disk";
import { closeApp, makeApp } from "../../mocks/obsidian/testing";
import { daemonClient } from "../../src/daemon/client";
import { en } from "../../src/en";
import type { WriteOrder } from "../../src/protocol/events";
import { TransportError, type Call, type Transport } from "../../src/transport/transport";
import { isNote, performWrite, sha256 } from "../../src/vault/notes";
import { appVault, type VaultPort } from "../../src/vault/port";

const hash = (text: string) => createHash("sha256").update(text).digest("hex");

interface Report {
	ok: boolean;
	hash?: string;
	error?: string;
}

/** A daemon's side of one change: who may claim it, and what is reported. */
class Desk implements Transport {
	readonly kind = "unix";
	readonly streams = true;
	readonly calls: string[] = [];
	readonly reports: Report[] = [];
	taken = false;
	cuts = 0;

	constructor(private readonly order: WriteOrder) {}

	async json(call: Call): Promise<unknown> {
		await Promise.resolve();
		this.calls.push(call.path);
		if (call.path.endsWith("/claim")) {
			if (this.taken) throw new TransportError("http", "taken", { status: 409 });
			this.taken = true;
			return this.order;
		}
		if (this.cuts-- > 0) throw new TransportError("cut", "gone");
		this.reports.push(call.body as Report);
		return {};
	}
	stream(): AsyncIterable<unknown> {
		throw new Error("no streams here");
	}
}

let app: App;
let port: VaultPort;
let owner: Component;

const order = (more: Partial<WriteOrder>): WriteOrder => ({
	id: "w1",
	path: "Note.md",
	op: "modify",
	content: "new\n",
	if_hash: null,
	kind: "note",
	...more,
});

/** What is at this path; "" when nothing is. */
const there = (path: string) => app.vault.adapter.read(path).catch(() => "");

async function perform(given: WriteOrder, desk = new Desk(given)): Promise<Desk> {
	await performWrite(port, daemonClient(desk), given, () => Promise.resolve());
	return desk;
}

const read = (path: string) => app.vault.adapter.read(path);

function start(files: Record<string, string>): void {
	app = makeApp({ files });
	owner = new Component();
	owner.load();
	port = appVault(app, owner);
}

beforeEach(() => {
	start({ "Note.md": "old\n", "Folder/Other.md": "x" });
});

afterEach(async () => {
	owner.unload();
	await closeApp(app);
});

/** An editor with text that is not saved yet. */
class Unsaved extends TextFileView {
	constructor(leaf: WorkspaceLeaf, path: string, private typed: string) {
		super(leaf);
		this.file = app.vault.getFileByPath(path);
	}
	getViewType(): string {
		return "markdown";
	}
	getViewData(): string {
		return this.typed;
	}
	setViewData(data: string): void {
		this.typed = data;
	}
	clear(): void {
		this.typed = "";
	}
	override async save(): Promise<void> {
		if (this.file) await app.vault.modify(this.file, this.typed);
	}
}

async function openUnsaved(path: string, typed: string): Promise<void> {
	const leaf = app.workspace.getLeaf(true);
	await leaf.open(new Unsaved(leaf, path, typed));
}

describe("a change of a note", () => {
	it("changes what it was made for, and reports the hash of what is there then", async () => {
		const desk = await perform(order({ if_hash: hash("old\n") }));
		expect(desk.calls).toEqual(["/v1/writes/w1/claim", "/v1/writes/w1"]);
		expect(desk.reports).toEqual([{ ok: true, hash: hash("new\n") }]);
		expect(await read("Note.md")).toBe("new\n");
	});

	it("leaves a note alone that was changed", async () => {
		const desk = await perform(order({ if_hash: hash("older\n") }));
		expect(desk.reports).toEqual([{ ok: false, error: en.vault.changed }]);
		expect(await read("Note.md")).toBe("old\n");
	});

	it("leaves it alone when it changes between the look and the write", async () => {
		const bytes = port.bytes.bind(port);
		port.bytes = async (path) => {
			const seen = await bytes(path);
			await app.vault.adapter.write(path, "typed\n");
			return seen;
		};
		const desk = await perform(order({ if_hash: hash("old\n") }));
		expect(desk.reports[0]?.ok).toBe(false);
		expect(await read("Note.md")).toBe("typed\n");
	});

	it("does nothing at all with what somebody else has claimed", async () => {
		const given = order({ if_hash: hash("old\n") });
		const desk = new Desk(given);
		desk.taken = true;
		await perform(given, desk);
		expect(desk.reports).toEqual([]);
		expect(await read("Note.md")).toBe("old\n");
	});

	it.each([
		{ path: ".obsidian/plugins/tarsd/main.js" },
		{ path: "../outside.md" },
		{ path: "Folder/Other.md" },
		{ op: "append" },
		{ kind: "session" },
	] as const)("makes none that was announced as another: %j", async (other) => {
		const asked = order({ if_hash: hash("old\n") });
		const claimed: WriteOrder = { ...asked, ...other };
		await app.vault.adapter.write(claimed.path, "old\n");
		const desk = await perform(asked, new Desk(claimed));
		expect(desk.reports).toEqual([{ ok: false, error: en.vault.another }]);
		expect([await there(claimed.path), await there("Note.md")]).toEqual(["old\n", "old\n"]);
		await perform(order({}), new Desk({ ...claimed, path: ".git/hooks/new", if_hash: null }));
		expect(await there(".git/hooks/new")).toBe("");
	});

	it("makes two clients' race one change", async () => {
		const given = order({ op: "append", content: "more\n", if_hash: hash("old\n") });
		const desk = new Desk(given);
		await Promise.all([perform(given, desk), perform(given, desk)]);
		expect(await read("Note.md")).toBe("old\nmore\n");
		expect(desk.reports).toHaveLength(1);
	});

	it("appends exactly what it is told", async () => {
		start({ "Note.md": "no end" });
		const desk = await perform(order({ op: "append", content: "\n\nmore", if_hash: hash("no end") }));
		expect(await read("Note.md")).toBe("no end\n\nmore");
		expect(desk.reports).toEqual([{ ok: true, hash: hash("no end\n\nmore") }]);
	});

	it("keeps carriage returns, and letters of every kind", async () => {
		const before = "a\r\nüñ 🌱\r\n";
		start({ "Note.md": before });
		const desk = await perform(order({ op: "append", content: "ß\r\n", if_hash: hash(before) }));
		expect(await read("Note.md")).toBe(`${before}ß\r\n`);
		expect(desk.reports).toEqual([{ ok: true, hash: hash(`${before}ß\r\n`) }]);
	});

	it("is made in a folder on disk byte for byte", async () => {
		const folder = mkdtempSync(join(tmpdir(), "tp-"));
		const before = "\ufeffa\r\nüñ 🌱\r\n";
		writeFileSync(join(folder, "Note.md"), before);
		try {
			app = makeApp({ adapter: diskAdapter(folder) });
			port = appVault(app, owner);
			const desk = await perform(order({ op: "append", content: "ß\r\n", if_hash: hash(before) }));
			expect(desk.reports).toEqual([{ ok: true, hash: hash(`${before}ß\r\n`) }]);
			expect(readFileSync(join(folder, "Note.md"), "utf8")).toBe(`${before}ß\r\n`);
		} finally {
			rmSync(folder, { recursive: true });
		}
	});

	it("tries to report again when the connection breaks", async () => {
		const given = order({ if_hash: hash("old\n") });
		const desk = new Desk(given);
		desk.cuts = 2;
		await perform(given, desk);
		expect(desk.reports).toEqual([{ ok: true, hash: hash("new\n") }]);
	});

	it("says that a note is missing", async () => {
		const desk = await perform(order({ path: "Gone.md", if_hash: hash("old\n") }));
		expect(desk.reports).toEqual([{ ok: false, error: en.vault.missing }]);
		expect(await app.vault.adapter.exists("Gone.md")).toBe(false);
	});

	it("follows a note that was renamed, and again", async () => {
		const note = app.vault.getFileByPath("Note.md");
		if (!note) throw new Error("no note");
		await app.fileManager.renameFile(note, "Middle.md");
		await app.fileManager.renameFile(note, "Folder/Moved.md");
		const desk = await perform(order({ if_hash: hash("old\n") }));
		expect(desk.reports).toEqual([{ ok: true, hash: hash("new\n") }]);
		expect(await read("Folder/Moved.md")).toBe("new\n");
		expect(await app.vault.adapter.exists("Note.md")).toBe(false);
	});

	it("does not take a note for the one that had its name before", async () => {
		const note = app.vault.getFileByPath("Note.md");
		if (!note) throw new Error("no note");
		await app.fileManager.renameFile(note, "Moved.md");
		await app.vault.create("Note.md", "another\n");
		const desk = await perform(order({ if_hash: hash("old\n") }));
		expect(desk.reports[0]?.ok).toBe(false);
		expect(await read("Moved.md")).toBe("old\n");
		expect(await read("Note.md")).toBe("another\n");
	});
});

describe("a new note", () => {
	it("is made with its folders", async () => {
		const desk = await perform(order({ op: "create", path: "tars/sessions/2026/One.md" }));
		expect(await read("tars/sessions/2026/One.md")).toBe("new\n");
		expect(app.vault.getFolderByPath("tars/sessions/2026")).not.toBeNull();
		expect(desk.reports).toEqual([{ ok: true, hash: hash("new\n") }]);
	});

	it("never takes the place of another", async () => {
		const desk = await perform(order({ op: "create" }));
		expect(desk.reports).toEqual([{ ok: false, error: en.vault.exists }]);
		expect(await read("Note.md")).toBe("old\n");
	});

	it("is as it should be when it is there already with the same text", async () => {
		const desk = await perform(order({ op: "create", content: "old\n" }));
		expect(desk.reports).toEqual([{ ok: true, hash: hash("old\n") }]);
	});

	it("is left to the daemon where the app has no notes", async () => {
		for (const path of [".tars/Note.md", "a/.b/Note.md", "../Note.md", "/Note.md", "a//Note.md", "Note.txt", "a\\b.md", "Cafe\u0301.md"]) {
			expect(isNote(path)).toBe(false);
			const desk = await perform(order({ op: "create", path }));
			expect(desk.calls).toEqual([]);
		}
	});
});

describe("an editor with text that is not saved", () => {
	it("keeps a change away that was made without that text, and loses nothing", async () => {
		await openUnsaved("Note.md", "old\ntyped");
		const desk = await perform(order({ if_hash: hash("old\n") }));
		expect(desk.reports).toEqual([{ ok: false, error: en.vault.changed }]);
		expect(await read("Note.md")).toBe("old\ntyped");
	});

	it("gets what is appended below its text, on a line of its own", async () => {
		await openUnsaved("Note.md", "old\ntyped");
		const desk = await perform(order({ op: "append", content: "more\n", if_hash: hash("old\n") }));
		expect(await read("Note.md")).toBe("old\ntyped\nmore\n");
		expect(desk.reports).toEqual([{ ok: true, hash: hash("old\ntyped\nmore\n") }]);
	});

	it("is not taken for changed because of carriage returns", async () => {
		start({ "Note.md": "a\r\nb\r\n" });
		await openUnsaved("Note.md", "a\nb\n");
		const desk = await perform(order({ op: "append", content: "c\r\n", if_hash: hash("a\r\nb\r\n") }));
		expect(await read("Note.md")).toBe("a\r\nb\r\nc\r\n");
		expect(desk.reports[0]?.ok).toBe(true);
	});
});

describe("the port", () => {
	it("finds a free name", async () => {
		expect(await port.freePath("", "Note")).toBe("Note 1.md");
		await app.vault.create("Note 1.md", "");
		expect(await port.freePath("", "Note")).toBe("Note 2.md");
		expect(await port.freePath("New/folder", "Note")).toBe("New/folder/Note.md");
	});

	it("hashes as everybody else", async () => {
		expect(await sha256("")).toBe(hash(""));
		expect(await sha256("ünïcode 🌱")).toBe(hash("ünïcode 🌱"));
	});
});
