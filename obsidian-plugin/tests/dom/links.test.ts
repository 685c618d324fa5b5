import type { App } from "obsidian";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { closeApp, makeApp, setConfig } from "../../mocks/obsidian/testing";
import { linktextOf, linkTo, noteOf, openLink, openPlace, resolveLink, subpathOf } from "../../src/vault/links";

let app: App;
let opened: unknown[][];

beforeEach(() => {
	app = makeApp({ files: { "Folder/Note.md": "# Part\n", "Note.md": "", "Other/Note.md": "", "Deep/Only.md": "" } });
	opened = [];
	app.workspace.openLinkText = (...values) => {
		opened.push(values);
		return Promise.resolve();
	};
});
afterEach(() => closeApp(app));

const place = (path: string, more = {}) => ({ path, link: "", collection: "", start_line: 0, ...more });

describe("a place", () => {
	it("has a link text, from a wikilink or its target or its path", () => {
		expect(linktextOf({ path: "A.md", link: "[[Folder/A#B|c]]" })).toBe("Folder/A#B");
		expect(linktextOf({ path: "A.md", link: "Folder/A#B" })).toBe("Folder/A#B");
		expect(linktextOf({ path: "Folder/A.md", link: "" })).toBe("Folder/A");
	});

	it("is the very note of its path, whatever else has the name", async () => {
		expect(noteOf(app, place("Other/Note.md"))?.path).toBe("Other/Note.md");
		expect(await openPlace(app, place("Other/Note.md", { link: "[[Other/Note#Part]]" }), { source: "Note.md", where: "tab" })).toBe(true);
		expect(opened).toEqual([["Other/Note.md#Part", "Note.md", "tab", {}]]);
	});

	it("may have signs of links in its name", async () => {
		const c = await app.vault.create("C# [a] ^b.md", "# Part\n");
		const link = "[C a b](C%23%20%5Ba%5D%20%5Eb.md#Part)";
		expect(linktextOf({ path: c.path, link })).toBe("C# [a] ^b#Part");
		expect(subpathOf({ path: c.path, link })).toBe("#Part");
		expect(subpathOf({ path: c.path, link: "" })).toBe("");
		expect(await openPlace(app, place(c.path, { link }), { source: "Note.md" })).toBe(true);
		expect(opened).toEqual([]);
		expect(app.workspace.getActiveFile()?.path).toBe(c.path);
	});

	it("of another collection is not opened, even when a note of that path is here", async () => {
		expect(await openPlace(app, place("Note.md", { collection: "Books" }), { source: "" })).toBe(false);
		expect(linkTo(app, { ...place("Note.md"), collection: "Books" }, "")).toBeNull();
		expect(opened).toEqual([]);
	});

	it("is linked as the person writes links", () => {
		const target = place("Deep/Only.md", { link: "[[Deep/Only#Part]]" });
		expect(linkTo(app, target, "Note.md", "see")).toBe("[[Only#Part|see]]");
		setConfig(app, "newLinkFormat", "absolute");
		expect(linkTo(app, target, "Note.md")).toBe("[[Deep/Only#Part]]");
		setConfig(app, "useMarkdownLinks", true);
		expect(linkTo(app, target, "Note.md", "see")).toBe("[see](Deep/Only.md#Part)");
	});
});

describe("a link that somebody wrote", () => {
	it("is followed when it leads somewhere", async () => {
		expect(resolveLink(app, "Only#Part", "Note.md")).toMatchObject({ subpath: "#Part" });
		expect(await openLink(app, "only#Part", { source: "Note.md" })).toBe(true);
		expect(opened[0]?.[0]).toBe("Deep/Only.md#Part");
	});

	it("makes no note when it does not", async () => {
		const before = app.vault.getFiles().length;
		for (const link of ["/Users/me/Vault/X.md", "Nowhere", "../../etc/passwd"]) expect(await openLink(app, link, { source: "Note.md" })).toBe(false);
		expect(opened).toEqual([]);
		expect(app.vault.getFiles()).toHaveLength(before);
	});
});
