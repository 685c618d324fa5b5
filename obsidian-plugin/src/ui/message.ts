import { Component } from "obsidian";
import { ended, type Message } from "../chat/state";
import { en } from "../en";
import type { Source } from "../protocol/events";
import { Actions } from "./actions";
import { Activity } from "./activity";
import { AnswerBody } from "./answer";
import { Approvals } from "./approval";
import { uniqueId } from "./dom";
import type { MessageContext } from "./message-context";
import { SourceList } from "./sources";
import { NoticeLines, StateLine } from "./state-line";
import { Writes } from "./writes";

/** A part of a message that draws what changed since it was told last. */
interface Part extends Component {
	update(message: Message): void;
}

/** A question with its answer. Told of every state of the message; each part draws only what changed for it. */
export class MessageView extends Component {
	readonly el: HTMLElement;
	private readonly body: AnswerBody;
	private readonly parts: Part[];
	private readonly answerEl: HTMLElement;
	private message: Message;

	constructor(
		message: Message,
		number: number,
		private readonly context: MessageContext,
	) {
		super();
		this.message = message;
		this.el = createDiv({ cls: "tarsd-turn" });
		this.drawQuestion(message, number);
		const el = this.article("tarsd-reply", en.chat.assistant, en.chat.answerNumber(number));
		const parts: Part[] = [];
		this.answerEl = el;
		const add = <T extends Part>(part: T): void => {
			parts.push(this.addChild(part));
		};
		add(new Activity(el));
		this.body = this.addChild(
			new AnswerBody(
				el,
				context.services,
				() => context.source(),
				() => {
					context.grew();
				},
			),
		);
		add(new StateLine(el, context));
		add(new Approvals(el, context));
		add(new Writes(el, context));
		add(new NoticeLines(el));
		add(new SourceList(el, context.services));
		add(new Actions(el, context));
		this.parts = parts;
		this.draw(message);
	}

	/** Show this state of the message; an end that is reached here is said, once. */
	update(message: Message): void {
		if (message === this.message) return;
		const before = this.message;
		this.message = message;
		this.draw(message);
		this.context.grew();
		if (!ended(before) && ended(message)) void this.announce(message);
	}

	/** Resolves when the answer is drawn, and has its height. */
	settled(): Promise<void> {
		return this.body.settled();
	}

	/** Whether the daemon has not given this question its name yet. */
	waitsForName(): boolean {
		return this.message.local && !ended(this.message);
	}

	/** The source that `[n]` stands for in this answer. */
	sourceOf(n: number): Source | undefined {
		const { sources, citations, closest } = this.message;
		return [...sources, ...citations, ...closest].find((source) => source.n === n);
	}

	private draw(message: Message): void {
		const known = message.sources.length > 0 ? message.sources : message.citations;
		this.body.update({ text: message.text, sources: known, growing: !ended(message) });
		this.answerEl.setAttribute("aria-busy", String(!ended(message)));
		this.el.dataset["turn"] = message.id;
		for (const part of this.parts) part.update(message);
	}

	private async announce(message: Message): Promise<void> {
		await this.body.settled();
		const { state, error } = message;
		if (state === "failed" || state === "interrupted") {
			const words = state === "interrupted" ? en.chat.interrupted : (error?.message ?? "");
			this.context.say([en.chat.failed, words].filter(Boolean).join(" "));
		} else {
			const text = (this.body.el.textContent ?? "").replace(/\s+/g, " ").trim();
			this.context.say(state === "stopped" ? `${en.chat.answerStopped} ${text}`.trim() : en.chat.answerDone + text);
		}
	}

	private article(cls: string, name: string, label: string): HTMLElement {
		const id = uniqueId("message");
		const el = this.el.createEl("article", { cls, attr: { "aria-labelledby": id } });
		const heading = el.createEl("h3", { cls: "tarsd-message-name", attr: { id } });
		heading.createSpan({ text: name, attr: { "aria-hidden": "true" } });
		heading.createSpan({ cls: "tarsd-sr", text: label });
		return el;
	}

	private drawQuestion({ question, notes, selection }: Message, number: number): void {
		const el = this.article("tarsd-question", en.chat.you, en.chat.questionNumber(number));
		el.createDiv({ cls: "tarsd-question-text", text: question, attr: { dir: "auto" } });
		if (notes.length === 0 && selection === "") return;
		const list = el.createEl("ul", { cls: "tarsd-sent", attr: { "aria-label": en.composer.context } });
		for (const path of notes) {
			const target = path.replace(/\.md$/i, "");
			const item = list.createEl("li");
			item.createEl("a", { cls: "internal-link", text: target, href: target, attr: { "data-href": target } });
		}
		if (selection !== "") {
			const folded = list.createEl("li").createEl("details");
			folded.createEl("summary", { text: en.chat.selectionSent(selection.length) });
			folded.createEl("blockquote", { text: selection, attr: { dir: "auto" } });
		}
	}
}
