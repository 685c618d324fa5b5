import { FuzzySuggestModal, Notice, type FuzzyMatch } from "obsidian";
import type { MemoryKind } from "../daemon/client";
import { en } from "../en";
import type { Memory, MemoryLine } from "../protocol/events";
import { clientOf, told } from "./asking";
import { confirm } from "./confirm";
import type { Services } from "./services";

const words = en.memory;

/** A line, and what it is: "Fact · Tea · 2026-05-01". */
type Remembered = readonly [line: string, about: string];

/** Everything that is remembered, to look through and to forget a line of. */
export class MemoryModal extends FuzzySuggestModal<Remembered> {
	private readonly lines: Remembered[];

	constructor(
		private readonly services: Services,
		{ facts, rules, noticed, problem, enabled }: Memory,
	) {
		super(services.app);
		const of = (kind: string, lines: readonly MemoryLine[]): Remembered[] =>
			lines.map(({ line, section, date, private: closed }) => [line, joined(kind, section, date, closed && words.private)]);
		this.lines = [...of(words.fact, facts), ...of(words.rule, rules), ...of(words.noticed, noticed)];
		this.setPlaceholder(words.find);
		this.emptyStateText = problem || (enabled ? words.empty : words.off);
	}

	getItems(): Remembered[] {
		return this.lines;
	}

	getItemText([line]: Remembered): string {
		return line;
	}

	override renderSuggestion(match: FuzzyMatch<Remembered>, el: HTMLElement): void {
		super.renderSuggestion(match, el.createDiv());
		el.createDiv({ cls: "tarsd-hit-place", text: match.item[1] });
	}

	onChooseItem([line]: Remembered): void {
		void this.forget(line);
	}

	private async forget(line: string): Promise<void> {
		if (!(await confirm(this.app, { title: words.forgetTitle, content: line, yes: words.forgetYes }))) return;
		await told(async () => {
			await clientOf(this.services).forget(line);
			noticeWithUndo(this.services, words.forgotten);
		});
	}
}

/** What is known of a line of the memory, in one line. */
export function joined(...parts: (string | false)[]): string {
	return parts.filter(Boolean).join(" · ");
}

/** Show what is remembered. */
export async function showMemory(services: Services): Promise<void> {
	await told(async () => {
		new MemoryModal(services, await clientOf(services).memory()).open();
	});
}

/** Remember a text as one line: a fact, or a rule for answers. */
export async function remember(services: Services, text: string, kind: MemoryKind = "semantic"): Promise<void> {
	await told(async () => {
		const { path, diff } = await clientOf(services).remember(text.trim().replace(/\s+/g, " "), kind);
		if (diff === "") new Notice(words.alreadyKnown);
		else noticeWithUndo(services, words.remembered(path));
	});
}

/** Take back the last change of the memory. */
export async function undoMemory(services: Services): Promise<void> {
	await told(async () => {
		await clientOf(services).undoMemory();
		new Notice(words.undone);
	});
}

/** Long enough to read it and to decide otherwise. */
const UNDO_MS = 10_000;

function noticeWithUndo(services: Services, text: string): void {
	const content = createFragment((el) => {
		el.createSpan({ text: `${text} ` });
		el.createEl("button", { text: en.writes.undo }).addEventListener("click", () => void undoMemory(services));
	});
	new Notice(content, UNDO_MS);
}
