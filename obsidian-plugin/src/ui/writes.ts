import { Component, Notice } from "obsidian";
import type { Message, WriteView } from "../chat/state";
import { en } from "../en";
import { show, textButton } from "./dom";
import { sentence } from "./errors";
import type { MessageContext } from "./message-context";

/** The notes that an answer changed, each with a way back; the conversation's own note is not one of them. */
export class Writes extends Component {
	private readonly el: HTMLElement;
	private shown: readonly WriteView[] = [];
	private rows: Component | null = null;

	constructor(
		parent: HTMLElement,
		private readonly context: MessageContext,
	) {
		super();
		this.el = parent.createDiv({ cls: "tarsd-writes", attr: { role: "group", "aria-label": en.writes.list } });
		show(this.el, false);
	}

	update({ id, writes }: Message): void {
		if (writes === this.shown) return;
		this.shown = writes;
		const listed = writes.filter((one) => one.kind !== "session");
		if (this.rows) this.removeChild(this.rows);
		const rows = this.addChild(new Component());
		this.rows = rows;
		const focused = this.el.contains(this.el.doc.activeElement);
		this.el.empty();
		show(this.el, listed.length > 0);
		const list = this.el.createEl("ul", "tarsd-write-list");
		for (const write of listed) this.row(list, rows, id, write);
		const open = listed.filter((one) => one.state === "written");
		if (open.length > 1) {
			textButton(this.el, rows, {
				text: en.writes.undoAll(open.length),
				onClick: () => {
					this.try(this.context.services.chats.undoAll(this.context.conversation(), id));
				},
			});
		}
		if (focused) this.context.focusBox();
	}

	private row(list: HTMLElement, rows: Component, turn: string, write: WriteView): void {
		const row = list.createEl("li", { cls: ["tarsd-write", `is-${write.state}`] });
		const text = row.createDiv("tarsd-write-text");
		text.createSpan({ text: told(write) });
		if (write.error) {
			text.createDiv({ cls: "tarsd-faint", text: [write.error.message, write.error.hint].filter(Boolean).join(" ") });
		}
		if (write.state !== "written") return;
		textButton(row, rows, {
			text: en.writes.undo,
			label: en.writes.undoOf(write.path),
			onClick: () => {
				this.try(this.context.services.chats.undo(this.context.conversation(), turn, write.id));
			},
		});
	}

	private try(work: Promise<void>): void {
		work.catch((error: unknown) => new Notice(sentence(error)));
	}
}

function told({ state, op, path }: WriteView): string {
	const words = en.writes;
	switch (state) {
		case "asked":
			return words.writing(path);
		case "failed":
			return words.failed(path);
		case "undone":
			return words.undone(path);
		case "written":
			return op === "create" ? words.created(path) : op === "append" ? words.appended(path) : words.modified(path);
	}
}
