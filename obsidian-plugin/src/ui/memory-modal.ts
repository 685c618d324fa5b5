import { FuzzySuggestModal, Notice, type FuzzyMatch } from "obsidian";
import type { Memory, MemoryLine } from "../protocol/events";
import { clientOf, told } from "./asking";
import { confirm } from "./confirm";
import type { Services } from "./services";

type Kind = "fact" | "rule" | "noticed";

interface Remembered {
	readonly kind: Kind;
	readonly line: MemoryLine;
}

/** Everything that is remembered, to look through and to forget a line of. */
export class MemoryModal extends FuzzySuggestModal<Remembered> {
	private readonly lines: Remembered[];

	constructor(
		private readonly services: Services,
		memory: Memory,
	) {
		super(services.app);
		const words = services.t.memory;
		const of = (kind: Kind, lines: readonly MemoryLine[]): Remembered[] => lines.map((line) => ({ kind, line }));
		this.lines = [...of("fact", memory.facts), ...of("rule", memory.rules), ...of("noticed", memory.noticed)];
		this.setPlaceholder(words.find);
		this.emptyStateText = memory.problem || (memory.enabled ? words.empty : words.off);
	}

	getItems(): Remembered[] {
		return this.lines;
	}

	getItemText({ line }: Remembered): string {
		return line.line;
	}

	override renderSuggestion(match: FuzzyMatch<Remembered>, el: HTMLElement): void {
		super.renderSuggestion(match, el.createDiv());
		const words = this.services.t.memory;
		const { kind, line } = match.item;
		const about = [words[kind], line.section, line.date, line.private ? words.private : ""].filter(Boolean);
		el.createDiv({ cls: "tarsd-hit-place", text: about.join(" · ") });
	}

	onChooseItem({ line }: Remembered): void {
		void this.forget(line.line);
	}

	private async forget(line: string): Promise<void> {
		const words = this.services.t.memory;
		if (!(await confirm(this.app, { title: words.forgetTitle, text: line, yes: words.forgetYes, no: words.cancel }))) return;
		await told(async () => {
			await clientOf(this.services).forget(line);
			noticeWithUndo(this.services, words.forgotten);
		});
	}
}

/** Show what is remembered. */
export async function showMemory(services: Services): Promise<void> {
	await told(async () => {
		new MemoryModal(services, await clientOf(services).memory()).open();
	});
}

/** Remember a text as it stands. */
export async function remember(services: Services, text: string, kind: "semantic" | "procedural"): Promise<void> {
	const words = services.t.memory;
	const note = text.split(/\s+/).filter(Boolean).join(" ");
	if (note === "") {
		new Notice(words.nothingMarked);
		return;
	}
	await told(async () => {
		const { path, diff } = await clientOf(services).remember(note, kind);
		if (diff === "") new Notice(words.alreadyKnown);
		else noticeWithUndo(services, words.remembered(path));
	});
}

/** Take back the last change of the memory. */
export async function undoMemory(services: Services): Promise<void> {
	await told(async () => {
		await clientOf(services).undoMemory();
		new Notice(services.t.memory.undone);
	});
}

/** Long enough to read it and to decide otherwise. */
const UNDO_MS = 10_000;

function noticeWithUndo(services: Services, text: string): void {
	const content = createFragment((fragment) => {
		fragment.createSpan({ text: `${text} ` });
		const button = fragment.createEl("button", { text: services.t.memory.undo });
		button.addEventListener("click", () => void undoMemory(services));
	});
	new Notice(content, UNDO_MS);
}
