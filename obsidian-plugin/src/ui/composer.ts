import { debounce, Notice, Platform, type Component } from "obsidian";
import {
	MOST_CHARACTERS,
	renamed,
	sendable,
	sent,
	tooLong,
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
import { told } from "./asking";
import { notesOf } from "./candidates";
import { chipList } from "./chips";
import { add, addIconButton, show, uniqueId } from "./dom";
import { NotConnected, sentence } from "./errors";
import { mentioning } from "./mentioning";
import type { MessageContext } from "./message-context";

/** Text that is marked while the box is in use is looked for again this often, at most. */
const LOOK_MS = 200;
/** How long after a key what is written is kept on the device. */
const STORE_MS = 500;
/** So much text makes the box as high as it gets. */
const TALLEST = 10_000;
const DRAFT_KEY = "tarsd-draft";

/** The box in which a person writes, what goes along with it, and the buttons that send and stop. */
export interface Composer {
	/** Show what was written in the conversation that is open now. */
	restore(): void;
	/** The conversation or the text changed: there is something to stop and to send, or nothing any more. */
	update(): void;
	focus(): void;
	/** Put text behind what is written. */
	append(text: string): void;
	/** Text comes back, unless something else is being written already. */
	giveBack(question: string): void;
	/** Have this go along with the next question. */
	attach(chip: Chip): void;
	/** End what runs; a question whose turn had not come yet is given back. */
	stop(): void;
}

/** A composer at the end of `parent`; it looks at the notes as long as `owner` lives. */
export function makeComposer(parent: HTMLElement, about: MessageContext, owner: Component): Composer {
	const { services, conversation } = about;
	const { app, chats, connection } = services;
	const { workspace } = app;
	let context = chats.draft(conversation()).context;

	const el = add(parent, "div", "tarsd-composer");
	const showChips = chipList(el, (chip) => {
		change(without(context, chip));
		box.focus();
	});
	const frame = add(el, "div", "tarsd-box-frame");
	const id = uniqueId();
	add(frame, "label", "tarsd-sr", en.composer.label, { for: id });
	const sizer = add(frame, "div", "tarsd-box-sizer");
	const box = add(sizer, "textarea", "tarsd-box", "", {
		id,
		rows: 1,
		dir: "auto",
		placeholder: en.composer.placeholder,
		"aria-autocomplete": "list",
		enterkeyhint: "enter",
	});
	const mentions = mentioning(frame, box, {
		app,
		say: about.say,
		// an older daemon has none
		prompts: () => connection.client?.prompts() ?? Promise.resolve([]),
		changed: (chip) => {
			if (chip) change(withChip(context, chip));
			edited();
		},
	});
	const buttons = add(frame, "div", "tarsd-box-buttons");
	addIconButton(buttons, "at-sign", en.composer.addContext, mentions.begin, "tarsd-add");
	const stopButton = addIconButton(buttons, "square", en.composer.stop, stop);
	const sendButton = addIconButton(buttons, "arrow-up", en.composer.send, send, "tarsd-send");

	// ------------------------------------------------------------------------------------------ what goes along

	/** Which note is in front, and what is marked in it. */
	function look(): void {
		const { attachCurrentNote, attachSelection } = services.settings();
		const file = attachCurrentNote ? workspace.getActiveFile() : null;
		const note = file?.extension === "md" ? { path: file.path, name: file.basename } : null;
		change(withSelection(withCurrent(context, note), attachSelection ? services.markedText() : null));
	}

	function change(next: Context): void {
		context = next;
		showChips(context);
		// the text is another pane's where the same conversation is written in
		chats.keepDraft(conversation(), { ...chats.draft(conversation()), context });
	}

	/** What is written outlives the pane, and the app too: the last draft is kept on this device. */
	const store = debounce(
		(draft: { conversation: string; text: string }) => {
			app.saveLocalStorage(DRAFT_KEY, draft);
		},
		STORE_MS,
		true,
	);

	// ------------------------------------------------------------------------------------------ writing

	function update(): void {
		show(stopButton, chats.running(conversation()) !== undefined);
		sendButton.disabled = !sendable(box.value);
	}

	/** The box is as high as the text that the styles put behind it; there is a highest, so the beginning is enough. */
	function fit(): void {
		const beginning = box.value.slice(0, TALLEST);
		if (sizer.dataset["text"] !== beginning) sizer.dataset["text"] = beginning;
		update();
	}

	function edited(): void {
		const draft = { conversation: conversation(), text: box.value };
		chats.keepDraft(draft.conversation, { text: draft.text, context });
		store(draft);
		fit();
		mentions.look();
	}

	function restore(): void {
		const draft = chats.draft(conversation());
		const kept = object(app.loadLocalStorage(DRAFT_KEY));
		box.value = draft.text || (kept["conversation"] === conversation() ? text(kept["text"]) : "");
		context = draft.context;
		mentions.end();
		look();
		fit();
	}

	function append(more: string): void {
		box.value += (/\S$/.test(box.value) ? "\n" : "") + more;
		edited();
	}

	function giveBack(question: string): void {
		if (sendable(box.value)) return;
		box.value = question;
		edited();
		box.focus();
	}

	/** Send what is written, if there is anything and somebody to send it to. */
	function send(): void {
		if (!sendable(box.value)) return;
		if (!connection.client) {
			new Notice(sentence(new NotConnected(connection)));
			return;
		}
		if (tooLong(box.value)) {
			new Notice(en.composer.tooLong(MOST_CHARACTERS));
			return;
		}
		look();
		const question = { conversation: conversation(), request_id: "", message: box.value };
		const { body, leftOut } = toRequest(question, context, (chip) => notesOf(app, chip));
		if (leftOut > 0) new Notice(en.composer.leftOut(leftOut));
		box.value = "";
		change(sent(context));
		edited();
		void chats.send(conversation(), body);
	}

	function stop(): void {
		const running = chats.running(conversation());
		if (!running || ended(running)) return;
		if (running.state === "queued") giveBack(running.question);
		void told(() => chats.stop(conversation(), running.id));
		box.focus();
	}

	function pressed(event: KeyboardEvent): void {
		const action = keyAction(event, {
			sendKey: services.settings().sendKey,
			phone: Platform.isMobile,
			mac: Platform.isMacOS,
			suggesting: mentions.open(),
		});
		if (action === "leave") return;
		event.preventDefault();
		// the app would take Escape for leaving the pane
		event.stopPropagation();
		if (action === "send") send();
		else if (action === "newline") {
			box.setRangeText("\n", box.selectionStart, box.selectionEnd, "end");
			edited();
		} else mentions.pressed(action);
	}

	box.oninput = edited;
	box.onkeydown = pressed;
	box.onfocus = look;
	const later = debounce(look, LOOK_MS);
	const watchSelection = (): void => {
		owner.registerDomEvent(el.doc, "selectionchange", later);
	};
	watchSelection();
	owner.register(el.onWindowMigrated(watchSelection));
	owner.registerEvent(workspace.on("active-leaf-change", look));
	owner.registerEvent(workspace.on("file-open", look));
	owner.registerEvent(
		app.vault.on("rename", (file, before) => {
			change(renamed(context, before, file.path));
		}),
	);
	owner.register(() => {
		later.cancel();
		store.run();
	});
	restore();

	return {
		restore,
		update,
		focus: () => {
			box.focus();
		},
		append,
		giveBack,
		attach: (chip) => {
			change(withChip(context, chip));
		},
		stop,
	};
}
