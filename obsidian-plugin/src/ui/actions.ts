import { Component, normalizePath, Notice, TFile } from "obsidian";
import { answerMarkdown, appended, fileName, turnMarkdown, type ExportStyle } from "../chat/export";
import { ended, titleOf, type Message } from "../chat/state";
import { en } from "../en";
import { linkTo } from "../vault/links";
import { copyText, iconButton, show, textButton, uniqueId } from "./dom";
import { NotConnected, sentence } from "./errors";
import type { MessageContext } from "./message-context";
import type { Services } from "./services";

/** What can be done with an answer that has ended: to keep it, and to say what it was worth. */
export class Actions extends Component {
	private readonly el: HTMLElement;
	private readonly form: HTMLElement;
	private readonly verdicts: Record<"good" | "wrong", HTMLElement>;
	private formParts: Component | null = null;
	private message: Message | null = null;

	constructor(
		parent: HTMLElement,
		private readonly context: MessageContext,
	) {
		super();
		const { services } = context;
		this.el = parent.createDiv({ cls: "tarsd-actions", attr: { role: "group", "aria-label": en.chat.actions } });
		this.form = parent.createDiv("tarsd-feedback");
		show(this.el, false);
		show(this.form, false);
		const add = (icon: string, label: string, act: (message: Message) => unknown): HTMLButtonElement =>
			iconButton(this.el, this, {
				icon,
				label,
				onClick: () => {
					if (this.message) void act(this.message);
				},
			});
		add("copy", en.chat.copy, (message) => this.copy(message));
		add("text-cursor-input", en.chat.insert, (message) => {
			const source = services.app.workspace.getActiveFile()?.path ?? "";
			if (!services.insertAtCursor(answerMarkdown(message, style(services, source, false)))) new Notice(en.chat.noEditor);
		});
		add("file-plus-2", en.chat.append, (message) => attempt(appendToNote(services, message)));
		add("file-output", en.chat.saveNote, (message) => attempt(saveAsNote(services, message)));
		this.verdicts = {
			good: add("thumbs-up", en.chat.good, () => {
				this.openForm("good");
			}),
			wrong: add("thumbs-down", en.chat.wrong, () => {
				this.openForm("wrong");
			}),
		};
	}

	update(message: Message): void {
		this.message = message;
		show(this.el, ended(message) && !message.local && message.text !== "");
	}

	private async copy(message: Message): Promise<void> {
		const done = await copyText(this.el, answerMarkdown(message, style(this.context.services, "", true)));
		new Notice(done ? en.chat.copied : en.chat.copyFailed);
	}

	private openForm(verdict: "good" | "wrong"): void {
		this.closeForm();
		const parts = this.addChild(new Component());
		this.formParts = parts;
		show(this.form, true);
		const id = uniqueId("feedback");
		this.form.createEl("label", { cls: "tarsd-feedback-label", text: verdict === "good" ? en.chat.feedbackGood : en.chat.feedbackWrong, attr: { for: id } });
		const box = this.form.createEl("textarea", { cls: "tarsd-feedback-text", attr: { id, rows: "2", dir: "auto" } });
		const row = this.form.createDiv("tarsd-buttons");
		textButton(row, parts, { text: en.chat.feedbackSend, cls: "mod-cta", onClick: () => void this.sendFeedback(verdict, box.value) });
		const cancel = (): void => {
			this.closeForm();
			this.verdicts[verdict].focus();
		};
		textButton(row, parts, { text: en.chat.feedbackCancel, onClick: cancel });
		parts.registerDomEvent(this.form, "keydown", (event) => {
			if (event.key !== "Escape" || event.isComposing) return;
			event.preventDefault();
			event.stopPropagation();
			cancel();
		});
		box.focus();
		this.context.grew();
	}

	private closeForm(): void {
		if (this.formParts) this.removeChild(this.formParts);
		this.formParts = null;
		this.form.empty();
		show(this.form, false);
	}

	private async sendFeedback(verdict: "good" | "wrong", note: string): Promise<void> {
		const { connection } = this.context.services;
		if (!this.message) return;
		try {
			if (!connection.client) throw new NotConnected(connection);
			await connection.client.feedback(this.message.id, verdict, note.trim());
		} catch (error) {
			new Notice(sentence(error));
			return;
		}
		this.closeForm();
		for (const [name, button] of Object.entries(this.verdicts)) button.setAttribute("aria-pressed", String(name === verdict));
		this.verdicts[verdict].focus();
		new Notice(en.chat.feedbackKept);
	}
}

async function attempt(work: Promise<string>): Promise<void> {
	try {
		new Notice(await work);
	} catch (error) {
		new Notice(sentence(error));
	}
}

/** How an answer is written for the note at `source`: with links as this person writes them. */
function style({ app }: Services, source: string, list: boolean): ExportStyle {
	const words = {
		sources: en.chat.exportSources,
		question: en.chat.exportQuestion,
		answer: en.chat.exportAnswer,
		incomplete: en.chat.exportIncomplete,
	};
	return { words, list, link: (place, text) => linkTo(app, place, source, text) };
}

async function appendToNote(services: Services, message: Message): Promise<string> {
	const file = services.app.workspace.getActiveFile();
	if (!(file instanceof TFile) || file.extension !== "md") return en.chat.noNote;
	const text = answerMarkdown(message, style(services, file.path, true));
	await services.vault.flush(file.path);
	await services.vault.process(file.path, (before) => before + appended(before, text));
	return en.chat.appendedTo(file.basename);
}

async function saveAsNote(services: Services, message: Message): Promise<string> {
	const { vault, app } = services;
	const from = app.workspace.getActiveFile()?.path ?? "";
	const folder = services.settings().noteFolder || vault.newNoteFolder(from);
	const path = normalizePath(await vault.freePath(folder, fileName(titleOf(message.question), en.chat.noteFallback)));
	const text = turnMarkdown(message, style(services, path, true));
	// what was drawn from private notes must not become readable for a remote model by being saved
	const closed = message.private ? "---\nlocal_only: true\n---\n\n" : "";
	await vault.create(path, `${closed}${text}\n`);
	return en.chat.savedAs(path);
}
