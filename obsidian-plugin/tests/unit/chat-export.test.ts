import { describe, expect, it } from "vitest";
import { answerMarkdown, appended, fileName, turnMarkdown, type ExportStyle } from "../../src/chat/export";
import { accepted, asked, empty, latest, reduce, type ChatState, type Message } from "../../src/chat/state";
import { targetOf } from "../../src/chat/citations";
import { numbered, retrieved, source, type Loose } from "./chat-events";

const WORDS = { sources: "Sources", question: "Question", incomplete: "This answer is not complete." };
const WIKI: ExportStyle = { words: WORDS, list: true, link: (from, text) => `[[${targetOf(from)}|${text}]]` };
const PLAIN: ExportStyle = { ...WIKI, list: false, link: (from, text) => `[${text}](${encodeURI(from.path)})` };

function chat(text: string, more: Partial<Extract<Loose, { type: "done" }>> = {}, question = "Who is Otto?"): ChatState {
	const begun = accepted(asked(empty("c"), "r", { question, at: 1 }), "r", "T");
	const found = retrieved({ sources: [source(1), source(2, { heading: "" }), source(3, { collection: "Books" })] });
	const events = numbered([found, { type: "done", text, citations: [], notices: [], ...more }]);
	return events.reduce((state, event) => reduce(state, "T", event), begun);
}

function message(...given: Parameters<typeof chat>): Message {
	const last = latest(chat(...given));
	if (!last) throw new Error("no message");
	return last;
}

describe("an answer as Markdown", () => {
	it("has links where its markers were, and lists the sources that it used", () => {
		expect(answerMarkdown(message("A cat [1], says [3], not [9?]. `[1]`"), WIKI)).toBe(
			"A cat [[Folder/Note 1#Part|1]], says [3], not [9?]. `[1]`\n\n**Sources**\n\n" +
				"1. [[Folder/Note 1#Part|Note 1 › Part]]\n3. Note 3 › Part",
		);
	});

	it("has the person's own kind of links, and no list when none is wanted or needed", () => {
		expect(answerMarkdown(message("A cat [1]."), PLAIN)).toBe("A cat [1](Folder/Note%201.md).");
		expect(answerMarkdown(message("A cat."), WIKI)).toBe("A cat.");
	});

	it("says that it is not whole when it is not", () => {
		expect(answerMarkdown(message("Half", { stopped: true }), WIKI)).toBe("Half\n\n*This answer is not complete.*");
	});

	it("leaves a source that cannot be linked as text", () => {
		expect(answerMarkdown(message("A [2]"), { ...WIKI, link: () => null })).toBe("A [2]\n\n**Sources**\n\n2. Note 2");
	});
});

describe("turnMarkdown", () => {
	it("quotes the question, line by line", () => {
		expect(turnMarkdown(message("Yes.", {}, "Is it?\r\n\r\n# really"), PLAIN)).toBe("> [!question] Question\n> Is it?\n>\n> # really\n\nYes.");
	});
});

describe("appended", () => {
	it("stands apart from what is there by one empty line", () => {
		for (const tail of ["a", "a\n", "a\n\n", "a\n \n"]) {
			expect((tail + appended(tail, "\nx\n\n")).replace("\n \n", "\n\n")).toBe("a\n\nx\n");
		}
		expect(appended("", "x")).toBe("x\n");
		expect(appended("\n\n", "x")).toBe("x\n");
	});
});

describe("appended", () => {
	it("ends lines as the note does", () => {
		expect(appended("a\r\nb\r\n", "One.\n\nTwo.")).toBe("\r\nOne.\r\n\r\nTwo.\r\n");
		expect(appended("a\r\nb", "One.")).toBe("\r\n\r\nOne.\r\n");
		expect(appended("a\r\n\r\n", "One.")).toBe("One.\r\n");
	});
});

describe("fileName", () => {
	const table: [string, string][] = [
		["Who is Otto?", "Who is Otto"],
		["a/b\\c: d", "a-b-c- d"],
		["#tag [[link|x]] ^b", "tag linkx b"],
		["  .hidden..  ", "hidden"],
		["../../etc/passwd", "etc-passwd"],
		["line\nbreak\ttab", "line break tab"],
		["CON", "_CON"],
		["nul.txt", "_nul.txt"],
		["console", "console"],
		["über 日本 🙂", "über 日本 🙂"],
		["\u202Eevil\u0000", "evil"],
		["???", "Chat"],
		["", "Chat"],
	];
	for (const [title, expected] of table) it(JSON.stringify(title), () => expect(fileName(title, "Chat")).toBe(expected));

	it("is short enough for every file system, and cut at a word", () => {
		expect(fileName("word ".repeat(40), "Chat")).toBe("word ".repeat(16).trim());
		expect(fileName("x".repeat(300), "Chat")).toBe("x".repeat(80));
		for (const letter of ["🙂", "日", "ü"]) {
			const name = fileName(letter.repeat(200), "Chat");
			expect(new TextEncoder().encode(name).length).toBeLessThanOrEqual(230);
			expect(name).toBe(letter.repeat(Array.from(name).length));
		}
	});
});
