import { Component } from "obsidian";
import { behindText } from "../chat/freshness";
import { ended, type Message } from "../chat/state";
import { en } from "../en";
import { show, textButton } from "./dom";
import type { MessageContext } from "./message-context";

/** Where an answer is, why it is not there, and what can be done then. */
export class StateLine extends Component {
	private readonly el: HTMLElement;
	private buttons: Component | null = null;
	private key = "";

	constructor(
		parent: HTMLElement,
		private readonly context: MessageContext,
	) {
		super();
		this.el = parent.createDiv("tarsd-state");
		show(this.el, false);
	}

	update(message: Message): void {
		const words = stateWords(message);
		const key = JSON.stringify([words, message.state, message.local, message.error, message.text !== "", message.id]);
		if (key === this.key) return;
		this.key = key;
		if (this.buttons) this.removeChild(this.buttons);
		this.buttons = null;
		const focused = this.el.contains(this.el.doc.activeElement);
		this.el.empty();
		this.el.toggleClass("is-failed", message.state === "failed" || message.state === "interrupted");
		this.el.toggleClass("is-busy", !ended(message));
		show(this.el, words !== "");
		if (words === "") return;
		this.el.createSpan({ cls: "tarsd-state-text", text: words });
		if (message.error && message.state !== "stopped") {
			const { hint } = message.error;
			if (hint !== "") this.el.createDiv({ cls: "tarsd-faint", text: hint });
		}
		if (ended(message)) this.drawButtons(message);
		if (focused) this.context.focusBox();
	}

	private drawButtons({ id, question, local, text, state }: Message): void {
		const { services, conversation, giveBack } = this.context;
		const buttons = this.addChild(new Component());
		this.buttons = buttons;
		const row = this.el.createDiv("tarsd-buttons");
		if (text !== "" && (state === "stopped" || state === "interrupted")) {
			textButton(row, buttons, {
				text: en.chat.goOn,
				onClick: () => void services.chats.send(conversation(), { message: en.chat.goOnText }),
			});
		}
		textButton(row, buttons, { text: en.chat.retry, onClick: () => void services.chats.retry(conversation(), id) });
		if (local) {
			textButton(row, buttons, {
				text: en.chat.takeBack,
				onClick: () => {
					services.chats.withdraw(conversation(), id);
					giveBack(question);
				},
			});
		}
	}
}

function stateWords(message: Message): string {
	const { state, waiting, text, position, error, local } = message;
	switch (state) {
		case "queued":
			return en.chat.queued(Math.max(1, position));
		case "retrieving":
			return waiting || en.chat.retrieving;
		case "answering":
			return waiting || (text === "" ? en.chat.answering : "");
		case "done":
			return "";
		case "stopped":
			return en.chat.stopped;
		case "interrupted":
			return en.chat.interrupted;
		case "failed":
			return [local ? en.chat.notSent : en.chat.failed, error?.message ?? ""].filter(Boolean).join(" ");
	}
}

/** What has to be known about an answer: how fresh the index was, what was left out, which model it was. */
export class NoticeLines extends Component {
	private readonly el: HTMLElement;
	private key = "";

	constructor(parent: HTMLElement) {
		super();
		this.el = parent.createEl("ul", { cls: "tarsd-notices", attr: { "aria-label": en.chat.noticesLabel } });
		show(this.el, false);
	}

	update(message: Message): void {
		const lines = noticesOf(message);
		const key = lines.join("\n");
		if (key === this.key) return;
		this.key = key;
		this.el.empty();
		show(this.el, lines.length > 0);
		for (const line of lines) this.el.createEl("li").createEl("bdi", { text: line });
	}
}

function noticesOf(message: Message): string[] {
	const { withheld, behind, notices, model, modelIsLocal } = message;
	const lines = [...notices, behindText(behind, en.chat)];
	if (withheld.length > 0) lines.push(en.chat.withheld(withheld.join(", ")));
	if (message.private) lines.push(en.chat.privateAnswer);
	if (ended(message) && model !== "") lines.push(modelIsLocal ? en.chat.model(model) : en.chat.remoteModel(model));
	return [...new Set(lines.filter(Boolean))];
}
