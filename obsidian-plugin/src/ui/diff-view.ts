import { countChanges, parseDiff, pathOf, type DiffLine } from "../chat/diff";
import { en } from "../en";
import { add, addFold, AUTO, UNSPOKEN } from "./dom";

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
	const counts = en.writes.changes(added, removed);
	const box = fits(diff) ? parent : addFold(parent, "", `${counts}. ${en.writes.showDiff(lines.length)}`).el;
	if (box === parent) add(box, "div", "tarsd-faint", counts, AUTO);
	// the person may have to scroll in it, so the keyboard has to reach it
	const table = add(box, "div", "tarsd-diff-lines", "", { tabindex: 0, role: "group", "aria-label": en.writes.diffLabel });
	for (const line of lines) drawLine(table, line);
}

/** What stands before a line, and what is said instead of it. */
const SIGNS: Readonly<Record<DiffLine["kind"], readonly [string, string]>> = {
	file: ["", ""],
	hunk: ["", ""],
	note: ["", ""],
	context: [" ", ""],
	add: ["+", en.writes.addedLine],
	remove: ["−", en.writes.removedLine],
};

function drawLine(parent: HTMLElement, line: DiffLine): void {
	const { kind, text, segments } = line;
	// both names of a file are the same but for one that is new
	const shown = kind === "file" ? (text.startsWith("---") ? "" : pathOf(line)) : text;
	if (kind === "file" && shown === "") return;
	const [sign, spoken] = SIGNS[kind];
	const el = add(parent, "div", `tarsd-diff-line is-${kind}`);
	if (spoken !== "") add(el, "span", "tarsd-sr", spoken);
	add(el, "span", "tarsd-diff-sign", sign, UNSPOKEN);
	const content = add(el, "span", "tarsd-diff-text", "", AUTO);
	for (const part of segments ?? [{ text: shown, changed: false }]) add(content, "span", part.changed ? "tarsd-diff-changed" : "", part.text);
}
