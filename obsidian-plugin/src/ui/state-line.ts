import { ended, type Message } from "../chat/state";
import { en } from "../en";
import { add, addButton, addHidden, hasFocus, show } from "./dom";
import type { MessageContext } from "./message-context";

const words = en.chat;

/**
 * Where an answer is, why it is not there, and what can be done then. Returns what is to be called with every state of
 * the message.
 */
export function stateLine(parent: HTMLElement, context: MessageContext): (message: Message) => void {
	const el = addHidden(parent, "div", "tarsd-state");
	let drawn = "";
	return (message) => {
		const { state, local, error, id } = message;
		const text = stateText(message);
		const key = JSON.stringify([text, state, local, error, message.text !== "", id]);
		if (key === drawn) return;
		drawn = key;
		const focused = hasFocus(el);
		el.empty();
		el.toggleClass("is-failed", state === "failed" || state === "interrupted");
		el.toggleClass("is-busy", !ended(message));
		show(el, text !== "");
		if (text === "") return;
		add(el, "span", "tarsd-state-text", text);
		if (error && error.hint !== "" && state !== "stopped") add(el, "div", "tarsd-faint", error.hint);
		if (ended(message)) addButtons(add(el, "div", "tarsd-buttons"), message, context);
		if (focused) context.focusBox();
	};
}

function addButtons(row: HTMLElement, { id, question, local, text, state }: Message, context: MessageContext): void {
	const { chats } = context.services;
	if (text !== "" && state !== "failed") {
		addButton(row, words.goOn, () => void chats.send(context.conversation(), { message: words.goOnText }));
	}
	addButton(row, words.retry, () => void chats.retry(context.conversation(), id));
	if (!local) return;
	addButton(row, words.takeBack, () => {
		chats.withdraw(context.conversation(), id);
		context.giveBack(question);
	});
}

function stateText({ state, waiting, text, position, error, local }: Message): string {
	switch (state) {
		case "queued":
			return words.queued(Math.max(1, position));
		case "retrieving":
			return waiting || words.retrieving;
		case "answering":
			return waiting || (text === "" ? words.answering : "");
		case "done":
			return "";
		case "stopped":
			return words.stopped;
		case "interrupted":
			return words.interrupted;
		case "failed":
			return `${local ? words.notSent : words.failed} ${error?.message ?? ""}`.trim();
	}
}

/**
 * What has to be known about an answer: how fresh the index was, what was left out, which model it was. Returns what is
 * to be called with every state of the message.
 */
export function noticeLines(parent: HTMLElement): (message: Message) => void {
	const el = addHidden(parent, "ul", "tarsd-notices", { "aria-label": words.noticesLabel });
	let drawn = "";
	return (message) => {
		const lines = noticesOf(message);
		const key = lines.join("\n");
		if (key === drawn) return;
		drawn = key;
		el.empty();
		show(el, lines.length > 0);
		for (const line of lines) add(add(el, "li", ""), "bdi", "", line);
	};
}

function noticesOf(message: Message): string[] {
	const { withheld, behind, notices, model, modelIsLocal } = message;
	const lines = [...notices, behind > 0 ? en.state.behind(behind) : ""];
	if (withheld.length > 0) lines.push(words.withheld(withheld.join(", ")));
	if (message.private) lines.push(words.privateAnswer);
	if (ended(message) && model !== "") lines.push(modelIsLocal ? words.model(model) : words.remoteModel(model));
	lines.push(message.usage);
	return [...new Set(lines.filter(Boolean))];
}
