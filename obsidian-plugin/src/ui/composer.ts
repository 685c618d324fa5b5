import { Component, Notice, Platform } from "obsidian";
import {
	renamed,
	sendable,
	sent,
	toRequest,
	withChip,
	withCurrent,
	without,
	withSelection,
	type Chip,
	type Context,
} from "../chat/context";
import { keyAction } from "../chat/keys";
import { insert, mentionAt, suggest, type Mention, type Prepared } from "../chat/mentions";
import { ended } from "../chat/state";
import { en } from "../en";
import { candidates, notesOf } from "./candidates";
import { Chips } from "./chips";
import { iconButton, show, uniqueId } from "./dom";
import { NotConnected, sentence } from "./errors";
import type { MessageContext } from "./message-context";
import { Suggestions } from "./suggestions";

/** Text that is marked while the box is in use is looked for again this often, at most. */
const LOOK_MS = 200;

/** The box in which a person writes, what goes along with it, and the buttons that send and stop. */
export class Composer extends Component {
	private readonly el: HTMLElement;
	private readonly box: HTMLTextAreaElement;
	private readonly chips: Chips;
	private readonly suggestions: Suggestions;
	private readonly sendButton: HTMLButtonElement;
	private readonly stopButton: HTMLButtonElement;
	private context: Context;
	private mention: Mention | null = null;
	private known: Prepared[] | null = null;
	private looking = 0;

	constructor(
		parent: HTMLElement,
		private readonly about: MessageContext,
	) {
		super();
		this.context = about.services.chats.draft(about.conversation()).context;
		this.el = parent.createDiv("tarsd-composer");
		this.chips = this.addChild(
			new Chips(this.el, (chip) => {
				this.change(without(this.context, chip));
				this.focus();
			}),
		);
		const frame = this.el.createDiv("tarsd-box-frame");
		const id = uniqueId("box");
		frame.createEl("label", { cls: "tarsd-sr", text: en.composer.label, attr: { for: id } });
		this.box = frame.createEl("textarea", {
			cls: "tarsd-box",
			placeholder: en.composer.placeholder,
			attr: { id, rows: "1", dir: "auto", "aria-autocomplete": "list", enterkeyhint: "enter" },
		});
		this.suggestions = this.addChild(
			new Suggestions(frame, this.box, (item) => {
				this.choose(item);
			}),
		);
		const buttons = frame.createDiv("tarsd-box-buttons");
		const button = (icon: string, label: string, cls: string, onClick: () => void): HTMLButtonElement =>
			iconButton(buttons, this, { icon, label, cls, onClick });
		button("at-sign", en.composer.addContext, "tarsd-add", () => {
			this.beginMention();
		});
		this.stopButton = button("square", en.composer.stop, "tarsd-stop", () => {
			this.stop();
		});
		this.sendButton = button("arrow-up", en.composer.send, "tarsd-send", () => {
			this.send();
		});
	}

	override onload(): void {
		const { box } = this;
		this.registerDomEvent(box, "input", () => {
			this.edited();
		});
		this.registerDomEvent(box, "keydown", (event) => {
			this.pressed(event);
		});
		for (const name of ["keyup", "click", "compositionend"] as const) {
			this.registerDomEvent(box, name, () => {
				this.suggestAt();
			});
		}
		this.registerDomEvent(box, "focus", () => {
			this.look();
		});
		this.registerDomEvent(box, "blur", () => {
			this.endMention();
		});
		const { app } = this.about.services;
		this.registerEvent(app.workspace.on("active-leaf-change", () => {
			this.look();
		}));
		this.registerEvent(app.workspace.on("file-open", () => {
			this.look();
		}));
		this.registerEvent(app.vault.on("rename", (file, before) => {
			this.change(renamed(this.context, before, file.path));
		}));
		this.watchSelection();
		this.register(this.el.onWindowMigrated(() => {
			this.watchSelection();
		}));
		this.register(() => {
			window.clearTimeout(this.looking);
		});
		this.restore();
	}

	/** Show what was written in the conversation that is open now. */
	restore(): void {
		const { chats } = this.about.services;
		const draft = chats.draft(this.about.conversation());
		this.box.value = draft.text;
		this.context = draft.context;
		this.endMention();
		this.look();
		this.fit();
		this.update();
	}

	/** The conversation changed: there is something to stop, or nothing any more. */
	update(): void {
		const { services, conversation } = this.about;
		show(this.stopButton, services.chats.running(conversation()) !== undefined);
		this.sendButton.disabled = !sendable(this.box.value);
	}

	focus(): void {
		this.box.focus();
	}

	/** Put text behind what is written. */
	add(text: string): void {
		const gap = this.box.value === "" || /\s$/.test(this.box.value) ? "" : "\n";
		this.box.value += gap + text;
		this.edited();
	}

	/** Text comes back, unless something else is being written already. */
	giveBack(text: string): void {
		if (this.box.value.trim() !== "") return;
		this.box.value = text;
		this.edited();
		this.focus();
	}

	attach(chip: Chip): void {
		this.change(withChip(this.context, chip));
	}

	/** Send what is written, if there is anything and somebody to send it to. */
	send(): void {
		const { services, conversation } = this.about;
		const { chats, connection, app } = services;
		if (!sendable(this.box.value)) return;
		if (!connection.client) {
			new Notice(sentence(new NotConnected(connection)));
			return;
		}
		this.look();
		const question = { conversation: conversation(), request_id: "", message: this.box.value };
		const { body, leftOut } = toRequest(question, this.context, (chip) => notesOf(app, chip));
		if (leftOut > 0) new Notice(en.composer.leftOut(leftOut));
		this.box.value = "";
		this.context = sent(this.context);
		this.endMention();
		this.edited();
		this.change(this.context);
		void chats.send(conversation(), body);
	}

	/** End what runs; a question whose turn had not come yet is given back. */
	stop(): void {
		const { services, conversation } = this.about;
		const running = services.chats.running(conversation());
		if (!running || ended(running)) return;
		if (running.state === "queued") this.giveBack(running.question);
		services.chats.stop(conversation(), running.id).catch((error: unknown) => new Notice(sentence(error)));
		this.focus();
	}

	// ------------------------------------------------------------------------------------------ what goes along

	private watchSelection(): void {
		this.registerDomEvent(this.el.doc, "selectionchange", () => {
			if (this.looking !== 0) return;
			this.looking = window.setTimeout(() => {
				this.looking = 0;
				this.look();
			}, LOOK_MS);
		});
	}

	/** Which note is in front, and what is marked in it. */
	private look(): void {
		const { services } = this.about;
		const { attachCurrentNote, attachSelection } = services.settings();
		const file = attachCurrentNote ? services.app.workspace.getActiveFile() : null;
		const note = file?.extension === "md" ? { path: file.path, name: file.basename } : null;
		this.change(withSelection(withCurrent(this.context, note), attachSelection ? services.markedText() : null));
	}

	private change(context: Context): void {
		this.context = context;
		this.chips.update(context);
		this.keep();
	}

	private keep(): void {
		const { services, conversation } = this.about;
		services.chats.keepDraft(conversation(), { text: this.box.value, context: this.context });
	}

	// ------------------------------------------------------------------------------------------ writing

	private edited(): void {
		this.keep();
		this.fit();
		this.update();
		this.suggestAt();
	}

	/** As high as its text, up to what the styles allow. */
	private fit(): void {
		this.box.setCssProps({ "--tarsd-box-height": "auto" });
		this.box.setCssProps({ "--tarsd-box-height": `${this.box.scrollHeight}px` });
	}

	private pressed(event: KeyboardEvent): void {
		const action = keyAction(event, {
			sendKey: this.about.services.settings().sendKey,
			phone: Platform.isMobile,
			mac: Platform.isMacOS,
			suggesting: this.suggestions.open,
		});
		if (action === "leave") return;
		event.preventDefault();
		switch (action) {
			case "send":
				this.send();
				break;
			case "newline":
				this.box.setRangeText("\n", this.box.selectionStart, this.box.selectionEnd, "end");
				this.edited();
				break;
			case "next":
				this.suggestions.move(1);
				break;
			case "previous":
				this.suggestions.move(-1);
				break;
			case "choose":
				if (this.suggestions.selected) this.choose(this.suggestions.selected);
				break;
			case "dismiss":
				// the app would take it for leaving the pane
				event.stopPropagation();
				this.dismissed = this.mention?.from ?? -1;
				this.endMention();
				break;
			case "swallow":
				break;
		}
	}

	// ------------------------------------------------------------------------------------------ mentions

	/** Where a list was closed by the person: it stays closed until another mention begins. */
	private dismissed = -1;

	private beginMention(): void {
		const { box } = this;
		this.focus();
		const before = box.value.slice(0, box.selectionStart);
		const gap = before === "" || /\s$/.test(before) ? "" : " ";
		this.dismissed = -1;
		box.setRangeText(`${gap}@`, box.selectionStart, box.selectionEnd, "end");
		this.edited();
	}

	private suggestAt(): void {
		const { box } = this;
		const found = box.selectionStart === box.selectionEnd ? mentionAt(box.value, box.selectionStart) : null;
		if (!found || found.from === this.dismissed) {
			if (!found) this.dismissed = -1;
			this.endMention();
			return;
		}
		const before = this.mention;
		if (before && before.from === found.from && before.to === found.to && before.query === found.query) return;
		this.mention = found;
		// read once for each mention: a vault may have many thousand notes
		this.known ??= candidates(this.about.services.app);
		const items = suggest(this.known, found);
		this.suggestions.set(items);
		if (!before) this.about.say(items.length > 0 ? en.composer.suggestionCount(items.length) : en.composer.noSuggestions);
	}

	private endMention(): void {
		this.mention = null;
		this.known = null;
		this.suggestions.close();
	}

	private choose(item: Prepared): void {
		if (!this.mention) return;
		const { text, caret, chip } = insert(this.box.value, this.mention, item.candidate);
		this.box.value = text;
		this.box.setSelectionRange(caret, caret);
		this.endMention();
		this.dismissed = -1;
		if (chip) this.change(withChip(this.context, chip));
		this.edited();
		this.focus();
	}
}
