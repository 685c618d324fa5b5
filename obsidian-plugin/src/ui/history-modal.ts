import { Keymap, setIcon, SuggestModal } from "obsidian";
import { filterHistory } from "../chat/history";
import { en } from "../en";
import type { ConversationSummary } from "../protocol/events";
import { chooseWith, clientOf, told } from "./asking";
import { confirm } from "./confirm";
import { sentence } from "./errors";
import type { Services } from "./services";

const words = en.history;

/** How many are drawn; what is older is found by its title. */
const LIMIT = 300;

/** The conversations that the daemon keeps: find, open, rename, delete. */
export class HistoryModal extends SuggestModal<ConversationSummary> {
	private all: ConversationSummary[] | null = null;

	constructor(private readonly services: Services) {
		super(services.app);
		this.limit = LIMIT;
		this.setPlaceholder(words.find);
		chooseWith(this, [
			[[], "Enter", en.search.open],
			[["Mod"], "Enter", en.chat.openInTab],
			[[], "F2", words.rename],
			[["Mod"], "D", words.remove],
		]);
	}

	async getSuggestions(query: string): Promise<ConversationSummary[]> {
		try {
			this.all ??= await clientOf(this.services).conversations();
		} catch (error) {
			this.emptyStateText = sentence(error);
			return [];
		}
		this.emptyStateText = this.all.length === 0 ? words.empty : words.nothing;
		return filterHistory(this.all, query).sort((a, b) => b.updated - a.updated);
	}

	renderSuggestion(one: ConversationSummary, el: HTMLElement): void {
		el.addClass("mod-complex", "tarsd-history-row");
		const content = el.createDiv("suggestion-content");
		content.createDiv({ cls: "suggestion-title", text: one.title || en.chat.untitled });
		const time = new Date(one.updated * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
		content.createDiv({ cls: "suggestion-note", text: `${time} · ${words.turns(one.turns)}` });
		const buttons = el.createDiv("suggestion-aux");
		const button = (icon: string, label: string, act: () => Promise<void>): void => {
			const buttonEl = buttons.createEl("button", { cls: "clickable-icon", attr: { "aria-label": label } });
			setIcon(buttonEl, icon);
			buttonEl.addEventListener("click", (event) => {
				// a click on the row opens it
				event.stopPropagation();
				void act();
			});
		};
		button("pencil", words.rename, () => this.rename(one));
		button("trash-2", words.remove, () => this.remove(one));
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
			this.redraw();
		});
	}

	private async remove(one: ConversationSummary): Promise<void> {
		const content = words.removeText(one.title || en.chat.untitled);
		if (!(await confirm(this.app, { title: words.removeTitle, content, yes: words.remove }))) return;
		await told(async () => {
			await clientOf(this.services).remove(one.id);
			this.all = this.all?.filter((other) => other !== one) ?? null;
			this.services.chats.forget(one.id);
			this.redraw();
		});
	}

	/** As if the same had been typed again. */
	private redraw(): void {
		this.inputEl.dispatchEvent(new Event("input"));
	}
}
