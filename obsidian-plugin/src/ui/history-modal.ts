import { Keymap } from "obsidian";
import { filterHistory } from "../chat/history";
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

/** The conversations that the daemon keeps: find, open, rename, delete. */
export class HistoryModal extends ListModal<ConversationSummary> {
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

	protected async lookUp(query: string): Promise<ConversationSummary[]> {
		this.all ??= await clientOf(this.services).conversations();
		this.emptyStateText = this.all.length === 0 ? words.empty : words.nothing;
		return filterHistory(this.all, query).sort((a, b) => b.updated - a.updated);
	}

	renderSuggestion(one: ConversationSummary, el: HTMLElement): void {
		el.addClass("mod-complex", "tarsd-history-row");
		const content = add(el, "div", "suggestion-content");
		add(content, "div", "suggestion-title", one.title || en.chat.untitled);
		const time = new Date(one.updated * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
		add(content, "div", "suggestion-note", `${time} · ${words.turns(one.turns)}`);
		const buttons = add(el, "div", "suggestion-aux");
		addIconButton(buttons, "pencil", words.rename, () => void this.rename(one));
		addIconButton(buttons, "trash-2", words.remove, () => void this.remove(one));
		// a click on the rest of the row opens it
		buttons.onclick = (event) => {
			event.stopPropagation();
		};
	}

	/** Only what opens a conversation closes the list. */
	override selectSuggestion(one: ConversationSummary, event: MouseEvent | KeyboardEvent): void {
		const key = "key" in event ? event.key : "";
		if (key === "F2") void this.rename(one);
		else if (key.toLowerCase() === "d") void this.remove(one);
		else super.selectSuggestion(one, event);
	}

	onChooseSuggestion({ id }: ConversationSummary, event: MouseEvent | KeyboardEvent): void {
		void this.services.openChat({ conversation: id, ...(Keymap.isModEvent(event) ? { place: "tab" } : {}) });
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
