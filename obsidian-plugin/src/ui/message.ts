import { Component } from "obsidian";
import { oneLine } from "../chat/fold";
import { ended, type Message } from "../chat/state";
import { en } from "../en";
import { actions } from "./actions";
import { activity } from "./activity";
import { answerBody } from "./answer";
import { approvals } from "./approval";
import { add, addFold, AUTO, uniqueId, UNSPOKEN } from "./dom";
import type { MessageContext } from "./message-context";
import { addLink, sourceList } from "./sources";
import { noticeLines, stateLine } from "./state-line";
import { writeList } from "./writes";

/** A question with its answer. */
export interface MessageView {
	readonly el: HTMLElement;
	/** What it shows. */
	readonly message: () => Message;
	/** Show this state of the message; an end that is reached here is said, once. */
	readonly update: (message: Message) => void;
	/** Resolves when the answer is drawn, and has its height. */
	readonly settled: () => Promise<void>;
	readonly remove: () => void;
}

/** Draw a message, outside of the document. Told of every state of it; each part draws only what changed for it. */
export function messageView(first: Message, number: number, about: MessageContext, owner: Component): MessageView {
	const component = owner.addChild(new Component());
	const el = createDiv("tarsd-turn");
	drawQuestion(article(el, "tarsd-question", en.chat.you, en.chat.questionNumber(number)), first);
	const reply = article(el, "tarsd-reply", en.chat.assistant, en.chat.answerNumber(number));
	const above = activity(reply);
	const body = answerBody(reply, about, component);
	const parts = [
		above,
		stateLine(reply, about),
		approvals(reply, about),
		writeList(reply, about),
		noticeLines(reply),
		sourceList(reply, about.services.settings().showSources),
		actions(reply, about),
	];
	let message = first;

	const draw = (): void => {
		const { text, sources, citations, id } = message;
		const growing = !ended(message);
		body.update({ text, sources: sources.length > 0 ? sources : citations, growing });
		reply.setAttribute("aria-busy", String(growing));
		el.dataset["turn"] = id;
		for (const update of parts) update(message);
	};
	const announce = async (): Promise<void> => {
		await body.settled();
		const { state, error } = message;
		if (state === "failed") about.say(`${en.chat.failed} ${error?.message ?? ""}`);
		else if (state === "interrupted") about.say(`${en.chat.failed} ${en.chat.interrupted}`);
		else about.say((state === "stopped" ? `${en.chat.answerStopped} ` : en.chat.answerDone) + oneLine(body.el.textContent ?? ""));
	};
	draw();

	return {
		el,
		message: () => message,
		update: (next) => {
			if (next === message) return;
			const wasEnded = ended(message);
			message = next;
			draw();
			about.grew();
			if (!wasEnded && ended(message)) void announce();
		},
		settled: body.settled,
		remove: () => {
			el.remove();
			owner.removeChild(component);
		},
	};
}

function article(parent: HTMLElement, cls: string, name: string, label: string): HTMLElement {
	const id = uniqueId();
	const el = add(parent, "article", cls, "", { "aria-labelledby": id });
	const heading = add(el, "h3", "tarsd-message-name", "", { id });
	add(heading, "span", "", name, UNSPOKEN);
	add(heading, "span", "tarsd-sr", label);
	return el;
}

function drawQuestion(el: HTMLElement, { question, notes, selection }: Message): void {
	add(el, "div", "tarsd-question-text", question, AUTO);
	if (notes.length === 0 && selection === "") return;
	const list = add(el, "ul", "tarsd-sent", "", { "aria-label": en.composer.context });
	for (const path of notes) {
		const target = path.replace(/\.md$/i, "");
		addLink(add(list, "li", ""), target, target);
	}
	if (selection !== "") add(addFold(add(list, "li", ""), "", en.chat.selectionSent(selection.length)).el, "blockquote", "", selection, AUTO);
}
