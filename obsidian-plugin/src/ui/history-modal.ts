import { Keymap, Modal, Notice, SearchComponent, setIcon } from "obsidian";
import { byDay, filterHistory } from "../chat/history";
import type { ConversationSummary } from "../protocol/events";
import { clientOf } from "./asking";
import { confirm } from "./confirm";
import { sentence } from "./errors";
import type { Services } from "./services";

/** The conversations that the daemon keeps: find, open, rename, delete. */
export class HistoryModal extends Modal {
	private all: ConversationSummary[] = [];
	private query = "";
	private listEl: HTMLElement = this.contentEl;
	private readonly gone = new AbortController();

	constructor(private readonly services: Services) {
		super(services.app);
		this.modalEl.addClass("tarsd-history");
	}

	override async onOpen(): Promise<void> {
		const words = this.services.t.history;
		this.setTitle(words.title);
		const search = new SearchComponent(this.contentEl).setPlaceholder(words.find).onChange((query) => {
			this.query = query;
			this.draw();
		});
		search.inputEl.setAttr("aria-label", words.find);
		search.inputEl.addEventListener("keydown", (event) => {
			if (event.isComposing) return;
			if (event.key === "Enter") this.rows()[0]?.click();
			else if (event.key === "ArrowDown") this.rows()[0]?.focus();
			else return;
			event.preventDefault();
		});
		this.listEl = this.contentEl.createDiv("tarsd-history-list");
		this.listEl.addEventListener("keydown", (event) => {
			this.move(event, search.inputEl);
		});
		search.inputEl.focus();
		await this.load();
	}

	override onClose(): void {
		this.gone.abort();
		this.contentEl.empty();
	}

	private async load(): Promise<void> {
		try {
			this.all = await clientOf(this.services).conversations(this.gone.signal);
			this.draw();
		} catch (error) {
			if (!this.gone.signal.aborted) this.say(sentence(error));
		}
	}

	private say(text: string): void {
		this.listEl.empty();
		this.listEl.createDiv({ cls: "tarsd-history-none", text, attr: { role: "status" } });
	}

	private draw(): void {
		const words = this.services.t.history;
		const found = filterHistory(this.all, this.query);
		if (found.length === 0) {
			this.say(this.all.length === 0 ? words.empty : words.nothing);
			return;
		}
		this.listEl.empty();
		for (const day of byDay(found, new Date())) {
			const name = day.kind === "day" ? day.date.toLocaleDateString(undefined, { dateStyle: "full" }) : words[day.kind];
			this.listEl.createEl("h3", { cls: "tarsd-history-day", text: name });
			const list = this.listEl.createEl("ul");
			for (const one of day.items) this.drawRow(list.createEl("li", "tarsd-history-row"), one);
		}
	}

	private drawRow(row: HTMLElement, one: ConversationSummary): void {
		const words = this.services.t.history;
		const title = one.title || words.untitled;
		row.empty();
		const main = row.createEl("button", "tarsd-history-open");
		main.createSpan({ cls: "tarsd-history-title", text: title });
		const time = new Date(one.updated * 1000).toLocaleTimeString(undefined, { timeStyle: "short" });
		main.createSpan({ cls: "tarsd-history-about", text: `${time} · ${words.turns(one.turns)}` });
		main.addEventListener("click", (event) => {
			this.choose(one, Keymap.isModEvent(event) !== false);
		});
		this.button(row, "square-arrow-out-up-right", words.openTab(title), () => {
			this.choose(one, true);
		});
		this.button(row, "pencil", words.rename(title), () => {
			this.edit(row, one);
		});
		this.button(row, "trash-2", words.remove(title), () => void this.remove(one));
	}

	private button(row: HTMLElement, icon: string, label: string, act: () => void): void {
		const button = row.createEl("button", { cls: "clickable-icon", attr: { "aria-label": label } });
		setIcon(button, icon);
		button.addEventListener("click", act);
	}

	private choose(one: ConversationSummary, tab: boolean): void {
		this.close();
		void this.services.openChat({ conversation: one.id, ...(tab ? { place: "tab" as const } : {}) });
	}

	/** The title in a box in its place: Enter keeps it, Escape and leaving the box do not. */
	private edit(row: HTMLElement, one: ConversationSummary): void {
		row.empty();
		const box = row.createEl("input", { type: "text", cls: "tarsd-history-edit", value: one.title });
		box.setAttr("aria-label", this.services.t.history.renameTo);
		let over = false;
		const end = (): void => {
			if (over) return;
			over = true;
			this.drawRow(row, one);
			row.querySelector("button")?.focus();
		};
		box.addEventListener("keydown", (event) => {
			if (event.isComposing || (event.key !== "Enter" && event.key !== "Escape")) return;
			// Escape would close the whole list
			event.preventDefault();
			event.stopPropagation();
			if (event.key === "Escape") end();
			else void this.rename(one, box.value.trim()).then(end);
		});
		box.addEventListener("blur", end);
		box.focus();
		box.select();
	}

	private async rename(one: ConversationSummary, title: string): Promise<void> {
		if (title === "" || title === one.title) return;
		try {
			await clientOf(this.services).rename(one.id, title);
			one.title = title;
			this.services.chats.renamed(one.id, title);
		} catch (error) {
			new Notice(sentence(error));
		}
	}

	private async remove(one: ConversationSummary): Promise<void> {
		const words = this.services.t.history;
		const text = words.removeText(one.title || words.untitled);
		if (!(await confirm(this.app, { title: words.removeTitle, text, yes: words.removeYes, no: words.cancel }))) return;
		try {
			await clientOf(this.services).remove(one.id);
			this.all = this.all.filter((other) => other !== one);
			this.services.chats.forget(one.id);
			this.draw();
		} catch (error) {
			new Notice(sentence(error));
		}
	}

	private rows(): HTMLElement[] {
		return this.listEl.findAll(".tarsd-history-open");
	}

	/** The arrow keys go from one conversation to the next, and up from the first to the search. */
	private move(event: KeyboardEvent, search: HTMLElement): void {
		if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
		const rows = this.rows();
		const at = rows.findIndex((row) => row.parentElement?.contains(row.doc.activeElement));
		if (at < 0) return;
		event.preventDefault();
		const next = event.key === "ArrowDown" ? rows[at + 1] : (rows[at - 1] ?? search);
		next?.focus();
	}
}
