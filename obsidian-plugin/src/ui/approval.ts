import { Component, ConfirmationModal, Notice } from "obsidian";
import { parseDiff, pathOf } from "../chat/diff";
import type { ApprovalRequest, Message, WriteView } from "../chat/state";
import { en } from "../en";
import { toolName } from "./activity";
import { drawDiff, fits } from "./diff-view";
import { show, textButton, uniqueId } from "./dom";
import { sentence } from "./errors";
import type { MessageContext } from "./message-context";

/** So many changes at once are asked about a second time before all of them are allowed. */
const MANY = 5;

type Answer = { allow: boolean; always: boolean };

/** What waits for the person's yes, each in a card of its own with what would change; nothing happens without it. */
export class Approvals extends Component {
	private readonly el: HTMLElement;
	private readonly all: HTMLElement;
	private readonly cards = new Map<string, Card>();
	private shown: readonly ApprovalRequest[] = [];
	private turn = "";

	constructor(
		parent: HTMLElement,
		private readonly context: MessageContext,
	) {
		super();
		this.el = parent.createDiv("tarsd-approvals");
		this.all = this.el.createDiv("tarsd-approval-all");
		show(this.all, false);
	}

	update(message: Message): void {
		this.turn = message.id;
		if (message.approvals !== this.shown) this.draw(message);
		for (const { approval, el } of this.cards.values()) show(el, !isTold(approval, message.writes));
	}

	private draw(message: Message): void {
		const before = this.shown;
		this.shown = message.approvals;
		for (const approval of message.approvals) {
			const known = this.cards.get(approval.call);
			if (known?.approval === approval) continue;
			const focused = known?.el.contains(this.el.doc.activeElement) ?? false;
			const card = new Card(approval, (answer) => this.answer([approval], answer));
			this.addChild(card);
			if (known) {
				known.el.replaceWith(card.el);
				this.removeChild(known);
			} else {
				this.el.append(card.el);
			}
			this.cards.set(approval.call, card);
			if (focused) this.goOn();
			if (approval.state === "asked" && !before.some((one) => one.call === approval.call)) {
				this.context.say(en.writes.approvalLabel(titleOf(approval)));
			}
		}
		this.drawAll();
	}

	/** The keyboard goes on to the next question, or back to the box. */
	private goOn(): void {
		const next = this.waiting()[0];
		const card = next && this.cards.get(next.call);
		if (card) card.el.focus();
		else this.context.focusBox();
	}

	private waiting(): ApprovalRequest[] {
		return this.shown.filter((one) => one.state === "asked");
	}

	private drawAll(): void {
		const waiting = this.waiting();
		this.all.empty();
		show(this.all, waiting.length > 1);
		if (waiting.length < 2) return;
		textButton(this.all, this, {
			text: en.writes.allowAll(waiting.length),
			onClick: () => {
				const unseen = waiting.length > MANY || waiting.some((one) => !fits(one.diff));
				if (unseen) this.confirm(waiting);
				else this.answer(waiting, { allow: true, always: false });
			},
		});
		textButton(this.all, this, {
			text: en.writes.denyAll(waiting.length),
			onClick: () => {
				this.answer(waiting, { allow: false, always: false });
			},
		});
	}

	private confirm(waiting: readonly ApprovalRequest[]): void {
		const modal = new ConfirmationModal(this.context.services.app);
		modal.setTitle(en.writes.manyTitle);
		modal.setContent(en.writes.manyText(waiting.length));
		modal.addCancelButton(en.writes.cancel);
		modal.addButton((button) =>
			button.setButtonText(en.writes.allowAll(waiting.length)).onClick(() => {
				this.answer(waiting, { allow: true, always: false });
			}),
		);
		modal.open();
	}

	private answer(which: readonly ApprovalRequest[], answer: Answer): void {
		const { services, conversation } = this.context;
		for (const { call } of which) {
			services.chats.approve(conversation(), this.turn, call, answer).catch((error: unknown) => new Notice(sentence(error)));
		}
	}
}

/** Whether the list of changes says already what became of it. */
function isTold(approval: ApprovalRequest, writes: readonly WriteView[]): boolean {
	if (approval.state !== "allowed" || writes.length === 0) return false;
	const changed = parseDiff(approval.diff).filter((line) => line.kind === "file").map(pathOf);
	return writes.some((write) => write.kind !== "session" && changed.includes(write.path));
}

function titleOf(approval: ApprovalRequest): string {
	return approval.title || toolName(approval.name);
}

const ENDS: Readonly<Record<Exclude<ApprovalRequest["state"], "asked">, string>> = {
	answered: en.writes.answered,
	allowed: en.writes.allowed,
	refused: en.writes.refused,
	lapsed: en.writes.lapsed,
};

/** One question; its keys work while the focus is in it and nothing is being written. */
class Card extends Component {
	readonly el: HTMLElement;

	constructor(
		readonly approval: ApprovalRequest,
		answer: (answer: Answer) => void,
	) {
		super();
		const title = titleOf(approval);
		const id = uniqueId("approval");
		this.el = createDiv({
			cls: ["tarsd-approval", `is-${approval.state}`],
			attr: { role: "group", "aria-labelledby": id, tabindex: "-1" },
		});
		this.el.createDiv({ cls: "tarsd-approval-title", text: title, attr: { id, dir: "auto" } });
		if (approval.state !== "asked") {
			this.el.createDiv({ cls: "tarsd-faint", text: ENDS[approval.state] });
			return;
		}
		this.el.tabIndex = 0;
		if (approval.diff !== "") drawDiff(this.el, approval.diff);
		else this.drawArguments();
		const buttons = this.el.createDiv("tarsd-buttons");
		const choices: { key: string; text: string; cls?: string; answer: Answer }[] = [
			{ key: "y", text: en.writes.allow, cls: "mod-cta", answer: { allow: true, always: false } },
			{ key: "a", text: en.writes.always, answer: { allow: true, always: true } },
			{ key: "n", text: en.writes.deny, answer: { allow: false, always: false } },
		];
		for (const { text, cls, answer: given, key } of choices) {
			const button = textButton(buttons, this, {
				text,
				...(cls ? { cls } : {}),
				onClick: () => {
					answer(given);
				},
			});
			button.setAttribute("aria-keyshortcuts", key);
		}
		this.registerDomEvent(this.el, "keydown", (event) => {
			if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
			const choice = choices.find(({ key }) => key === event.key.toLowerCase());
			if (!choice) return;
			event.preventDefault();
			answer(choice.answer);
		});
	}

	/** What a tool would be called with, when it changes no note. */
	private drawArguments(): void {
		const given = Object.entries(this.approval.arguments);
		if (given.length === 0) return;
		const list = this.el.createEl("dl", "tarsd-arguments");
		for (const [name, value] of given) {
			list.createEl("dt", { text: name });
			list.createEl("dd", { text: typeof value === "string" ? value : (JSON.stringify(value) ?? ""), attr: { dir: "auto" } });
		}
	}
}
