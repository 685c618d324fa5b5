import { countChanges, parseDiff, pathOf, type DiffLine } from "../chat/diff";
import { en } from "../en";

/** A diff with more lines than this is folded. */
const SHOWN_LINES = 40;

/** Whether all of a diff is seen without unfolding it. */
export function fits(diff: string): boolean {
	return diff.split("\n").length <= SHOWN_LINES;
}

/** Draw a unified diff: what comes and goes is told by signs and words, not by colours alone. */
export function drawDiff(parent: HTMLElement, diff: string): void {
	const lines = parseDiff(diff);
	if (lines.length === 0) return;
	const { added, removed } = countChanges(lines);
	const box = parent.createDiv("tarsd-diff");
	const counts = en.writes.changes(added, removed);
	let list: HTMLElement = box;
	if (fits(diff)) {
		box.createDiv({ cls: "tarsd-faint", text: counts, attr: { dir: "auto" } });
	} else {
		list = box.createEl("details");
		list.createEl("summary", { text: `${counts}. ${en.writes.showDiff(lines.length)}` });
	}
	// the person may have to scroll in it, so the keyboard has to reach it
	const table = list.createDiv({
		cls: "tarsd-diff-lines",
		attr: { tabindex: "0", role: "group", "aria-label": en.writes.diffLabel },
	});
	for (const line of lines) drawLine(table, line);
}

const SIGNS: Readonly<Record<DiffLine["kind"], string>> = { file: "", hunk: "", context: " ", add: "+", remove: "−", note: "" };

function drawLine(parent: HTMLElement, line: DiffLine): void {
	// both names of a file are the same but for one that is new
	const text = line.kind === "file" ? pathOf(line) : line.text;
	if (line.kind === "file" && (text === "" || line.text.startsWith("---"))) return;
	const el = parent.createDiv(`tarsd-diff-line is-${line.kind}`);
	if (line.kind === "add" || line.kind === "remove") {
		const spoken = line.kind === "add" ? en.writes.addedLine : en.writes.removedLine;
		el.createSpan({ cls: "tarsd-sr", text: spoken });
	}
	el.createSpan({ cls: "tarsd-diff-sign", text: SIGNS[line.kind], attr: { "aria-hidden": "true" } });
	const content = el.createSpan({ cls: "tarsd-diff-text", attr: { dir: "auto" } });
	for (const part of line.segments ?? [{ text, changed: false }]) {
		content.createSpan({ cls: part.changed ? ["tarsd-diff-changed"] : [], text: part.text });
	}
}
