import { Component, debounce, Notice, Platform } from "obsidian";
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
import { ended } from "../chat/state";
import { en } from "../en";
import { object, text } from "../protocol/values";
import { notesOf } from "./candidates";
import { Chips } from "./chips";
import { iconButton, show, uniqueId } from "./dom";
import { NotConnected, sentence } from "./errors";
import { Mentioning } from "./mentioning";
import type { MessageContext } from "./message-context";

/** Text that is marked while the box is in use is looked for again this often, at most. */
const LOOK_MS = 200;
/** How long after a key what is written is kept on the device. */
const STORE_MS = 500;
const DRAFT_KEY = "tarsd-draft";

/** The box in which a person writes, what goes along with it, and the buttons that send and stop. */
export class Composer extends Component {
	private readonly el: HTMLElement;
	private readonly box: HTMLTextAreaElement;
	private readonly chips: Chips;
	private readonly mentioning: Mentioning;
	private readonly sendButton: HTMLButtonElement;
	private readonly stopButton: HTMLButtonElement;
	private context: Context;
	private looking = 0;
	private fitted = 0; // the width that its height belongs to
	private readonly store = debounce(
		() => {
			const { services, conversation } = this.about;
			services.app.saveLocalStorage(DRAFT_KEY, { conversation: conversation(), text: this.box.value });
		},
		STORE_MS,
		true,
	);

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
		this.mentioning = this.addChild(
			new Mentioning(frame, this.box, {
				app: about.services.app,
				say: (words) => {
					about.say(words);
				},
				changed: (chip) => {
					if (chip) this.change(withChip(this.context, chip));
					this.edited();
				},
			}),
		);
		const buttons = frame.createDiv("tarsd-box-buttons");
		const button = (icon: string, label: string, cls: string, onClick: () => void): HTMLButtonElement =>
			iconButton(buttons, this, { icon, label, cls, onClick });
		button("at-sign", en.composer.addContext, "tarsd-add", () => {
			this.mentioning.begin();
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
		this.registerDomEvent(box, "focus", () => {
			this.look();
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
			this.store.run();
		});
		this.restore();
	}

	/** Show what was written in the conversation that is open now. */
	restore(): void {
		const { chats } = this.about.services;
		const draft = chats.draft(this.about.conversation());
		this.box.value = draft.text || this.saved();
		this.context = draft.context;
		this.mentioning.end();
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

	/** The pane may have another width, so that the text has other lines. */
	resized(): void {
		const { clientWidth } = this.box;
		if (clientWidth > 0 && clientWidth !== this.fitted) this.fit();
	}

	/** Put text behind what is written. */
	add(more: string): void {
		const gap = this.box.value === "" || /\s$/.test(this.box.value) ? "" : "\n";
		this.box.value += gap + more;
		this.edited();
	}

	/** Text comes back, unless something else is being written already. */
	giveBack(question: string): void {
		if (this.box.value.trim() !== "") return;
		this.box.value = question;
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
		this.mentioning.end();
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
		const before = services.chats.draft(conversation()).text;
		services.chats.keepDraft(conversation(), { text: this.box.value, context: this.context });
		if (before !== this.box.value) this.store();
	}

	/** What is written outlives the app, too: the last draft is kept on this device. */
	private saved(): string {
		const kept = object(this.about.services.app.loadLocalStorage(DRAFT_KEY));
		return kept["conversation"] === this.about.conversation() ? text(kept["text"]) : "";
	}

	// ------------------------------------------------------------------------------------------ writing

	private edited(): void {
		this.keep();
		this.fit();
		this.update();
		this.mentioning.look();
	}

	/** As high as its text, up to what the styles allow. */
	private fit(): void {
		this.box.setCssProps({ "--tarsd-box-height": "auto" });
		this.fitted = this.box.clientWidth;
		this.box.setCssProps({ "--tarsd-box-height": `${this.box.scrollHeight}px` });
	}

	private pressed(event: KeyboardEvent): void {
		const action = keyAction(event, {
			sendKey: this.about.services.settings().sendKey,
			phone: Platform.isMobile,
			mac: Platform.isMacOS,
			suggesting: this.mentioning.open,
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
				this.mentioning.move(1);
				break;
			case "previous":
				this.mentioning.move(-1);
				break;
			case "choose":
				this.mentioning.chooseSelected();
				break;
			case "dismiss":
				// the app would take it for leaving the pane
				event.stopPropagation();
				this.mentioning.dismiss();
				break;
			case "swallow":
				break;
		}
	}
}
