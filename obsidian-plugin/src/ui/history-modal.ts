import { Keymap } from "obsidian";
import { daysAgo, filterHistory } from "../chat/history";
import { en } from "../en";
import type { ConversationSummary } from "../protocol/events";
import { clientOf, told } from "./asking";
import { confirm } from "./confirm";
import { add, addIconButton } from "./dom";
import { ListModal } from "./list-modal";
import type { Services } from "./services";

const words = en.history;

/** How many are drawn; what is older is found by its title. */
const LIMIT = 300;

/** Within a week, a day is called by its name; before that, names come again. */
const WEEK = 7;

/** A line of the list; the first of a day has that day's name as its heading, all others "". */
interface Row {
	readonly conversation: ConversationSummary;
	readonly heading: string;
}

/** The conversations that the daemon keeps, by day: find, open, rename, delete. */
export class HistoryModal extends ListModal<Row> {
	private all: ConversationSummary[] | null = null;

	constructor(services: Services) {
		super(services, words.find, [
			[[], "Enter", en.search.open],
			[["Mod"], "Enter", en.chat.openInTab],
			[[], "F2", words.rename],
			[["Mod"], "D", words.remove],
		]);
		this.limit = LIMIT;
	}

	protected async lookUp(query: string): Promise<Row[]> {
		this.all ??= await clientOf(this.services).conversations();
		this.emptyStateText = this.all.length === 0 ? words.empty : words.nothing;
		const found = filterHistory(this.all, query).sort((a, b) => b.updated - a.updated);
		const now = new Date();
		const days = found.map(({ updated }) => dayName(updated, now));
		return found.map((conversation, at) => ({ conversation, heading: days[at] === days[at - 1] ? "" : (days[at] ?? "") }));
	}

	renderSuggestion({ conversation, heading }: Row, el: HTMLElement): void {
		// beside the lines, so that it can be neither chosen nor clicked
		if (heading !== "") el.before(dayHeading(heading));
		el.addClass("mod-complex", "tarsd-history-row");
		const content = add(el, "div", "suggestion-content");
		add(add(content, "div", "suggestion-title"), "bdi", "", conversation.title || en.chat.untitled);
		const note = add(content, "div", "suggestion-note");
		add(note, "bdi", "", new Date(conversation.updated * 1000).toLocaleTimeString(undefined, { timeStyle: "short" }));
		note.append(` · ${words.turns(conversation.turns)}`);
		const buttons = add(el, "div", "suggestion-aux");
		addIconButton(buttons, "pencil", words.rename, () => void this.rename(conversation));
		addIconButton(buttons, "trash-2", words.remove, () => void this.remove(conversation));
		// a click on the rest of the row opens it
		buttons.onclick = (event) => {
			event.stopPropagation();
		};
	}

	/** Only what opens a conversation closes the list. */
	override selectSuggestion(row: Row, event: MouseEvent | KeyboardEvent): void {
		const key = "key" in event ? event.key : "";
		if (key === "F2") void this.rename(row.conversation);
		else if (key.toLowerCase() === "d") void this.remove(row.conversation);
		else super.selectSuggestion(row, event);
	}

	onChooseSuggestion({ conversation: { id } }: Row, event: MouseEvent | KeyboardEvent): void {
		const pane = Keymap.isModEvent(event);
		void this.services.openChat({ conversation: id, ...(pane ? { place: pane === "window" ? "window" : "tab" } : {}) });
	}

	private async rename(one: ConversationSummary): Promise<void> {
		const box = createEl("input", { cls: "tarsd-history-edit", type: "text", value: one.title, attr: { "aria-label": words.renameTo } });
		const asked = confirm(this.app, { title: words.renameTo, content: box, yes: words.rename });
		box.select();
		const title = (await asked) ? box.value.trim() : "";
		if (title === "" || title === one.title) return;
		await told(async () => {
			await clientOf(this.services).rename(one.id, title);
			one.title = title;
			this.services.chats.renamed(one.id, title);
			this.again();
		});
	}

	private async remove(one: ConversationSummary): Promise<void> {
		const content = words.removeText(one.title || en.chat.untitled);
		if (!(await confirm(this.app, { title: words.removeTitle, content, yes: words.remove }))) return;
		await told(async () => {
			await clientOf(this.services).remove(one.id);
			this.all = this.all?.filter((other) => other !== one) ?? null;
			this.services.chats.forget(one.id);
			this.again();
		});
	}
}

/** The day that a time was on, in words: as it is called from here, or by its date. */
function dayName(seconds: number, now: Date): string {
	const ago = daysAgo(seconds, now);
	if (ago === 0) return words.today;
	if (ago === 1) return words.yesterday;
	return new Date(seconds * 1000).toLocaleDateString(undefined, ago < WEEK ? { weekday: "long" } : { dateStyle: "long" });
}

function dayHeading(name: string): HTMLElement {
	const el = createDiv({ cls: "tarsd-history-day", attr: { role: "heading", "aria-level": 3 } });
	add(el, "bdi", "", name);
	return el;
}
