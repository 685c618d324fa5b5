import { normalizePath, Notice } from "obsidian";
import { answerMarkdown, appended, fileName, turnMarkdown, type ExportStyle } from "../chat/export";
import { ended, titleOf, type Message } from "../chat/state";
import { en } from "../en";
import { linkTo } from "../vault/links";
import { textOf } from "../vault/notes";
import { clientOf, told } from "./asking";
import { add, addButton, addHidden, addIconButton, AUTO, copyText, show, uniqueId } from "./dom";
import type { MessageContext } from "./message-context";
import type { Services } from "./services";

type Verdict = "good" | "wrong";

/**
 * What can be done with an answer that has ended: to keep it, and to say what it was worth. Returns what is to be
 * called with every state of the message.
 */
export function actions(parent: HTMLElement, about: MessageContext): (message: Message) => void {
	const { services } = about;
	const el = addHidden(parent, "div", "tarsd-actions", { role: "group", "aria-label": en.chat.actions });
	const form = addHidden(parent, "div", "tarsd-feedback");
	let message: Message;

	/** A button that does something with the answer, and tells in the corner what it did. */
	const action = (icon: string, label: string, act: (message: Message) => Promise<string>): void => {
		addIconButton(el, icon, label, () => told(async () => void new Notice(await act(message))));
	};
	action("copy", en.chat.copy, (answer) => copyText(el, answerMarkdown(answer, style(services, "", true))));
	addIconButton(el, "text-cursor-input", en.chat.insert, () => {
		const text = answerMarkdown(message, style(services, activePath(services), false));
		if (!services.insertAtCursor(text)) new Notice(en.chat.noEditor);
	});
	action("file-plus-2", en.chat.append, (answer) => appendToNote(services, answer));
	action("file-output", en.chat.saveNote, (answer) => saveAsNote(services, answer));

	const verdict = (icon: string, label: string, name: Verdict): HTMLElement =>
		addIconButton(el, icon, label, () => {
			openForm(name);
		});
	const verdicts = { good: verdict("thumbs-up", en.chat.good, "good"), wrong: verdict("thumbs-down", en.chat.wrong, "wrong") };

	const openForm = (name: Verdict): void => {
		form.empty();
		show(form, true);
		const id = uniqueId();
		add(form, "label", "tarsd-feedback-label", name === "good" ? en.chat.feedbackGood : en.chat.feedbackWrong, { for: id });
		const box = add(form, "textarea", "tarsd-feedback-text", "", { id, rows: 2, ...AUTO });
		const row = add(form, "div", "tarsd-buttons");
		const close = (): void => {
			show(form, false);
			verdicts[name].focus();
		};
		const keep = async (): Promise<void> => {
			await clientOf(services).feedback(message.id, name, box.value.trim());
			close();
			for (const [one, button] of Object.entries(verdicts)) button.setAttribute("aria-pressed", String(one === name));
			new Notice(en.chat.feedbackKept);
		};
		addButton(row, en.chat.feedbackSend, () => told(keep), "mod-cta");
		addButton(row, en.chat.feedbackCancel, close);
		form.onkeydown = (event) => {
			if (event.key !== "Escape" || event.isComposing) return;
			// the app would take it for leaving the pane
			event.stopPropagation();
			close();
		};
		box.focus();
		about.grew();
	};

	return (next) => {
		message = next;
		show(el, ended(message) && !message.local && message.text !== "");
	};
}

function activePath({ app }: Services): string {
	return app.workspace.getActiveFile()?.path ?? "";
}

/** How an answer is written for the note at `source`: with links as this person writes them. */
function style({ app }: Services, source: string, list: boolean): ExportStyle {
	const words = { sources: en.chat.exportSources, question: en.chat.exportQuestion, incomplete: en.chat.exportIncomplete };
	return { words, list, link: (place, text) => linkTo(app, place, source, text) };
}

async function appendToNote(services: Services, message: Message): Promise<string> {
	const { app, vault } = services;
	const file = app.workspace.getActiveFile();
	if (file?.extension !== "md") return en.chat.noNote;
	const text = answerMarkdown(message, style(services, file.path, true));
	await vault.flush(file.path);
	// other bytes would not come through unchanged
	if (textOf(await vault.bytes(file.path)) === null) return en.chat.notText;
	await vault.process(file.path, (before) => before + appended(before, text));
	return en.chat.appendedTo(file.basename);
}

async function saveAsNote(services: Services, message: Message): Promise<string> {
	const { vault } = services;
	const folder = services.settings().noteFolder || vault.newNoteFolder(activePath(services));
	const path = normalizePath(await vault.freePath(folder, fileName(titleOf(message.question), en.chat.noteFallback)));
	const text = turnMarkdown(message, style(services, path, true));
	// what was drawn from private notes must not become readable for a remote model by being saved
	const closed = message.private ? "---\nlocal_only: true\n---\n\n" : "";
	await vault.create(path, `${closed}${text}\n`);
	return en.chat.savedAs(path);
}
