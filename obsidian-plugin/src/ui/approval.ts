import { parseDiff, pathOf } from "../chat/diff";
import type { ApprovalRequest, Message, WriteView } from "../chat/state";
import { en } from "../en";
import { plain, toolName } from "./activity";
import { told } from "./asking";
import { confirm } from "./confirm";
import { drawDiff, fits } from "./diff-view";
import { add, addButton, AUTO, hasFocus, show, uniqueId } from "./dom";
import type { MessageContext } from "./message-context";

/** So many changes at once are asked about a second time before all of them are allowed. */
const MANY = 5;

type Answer = { allow: boolean; always: boolean };

const YES: Answer = { allow: true, always: false };
const ALWAYS: Answer = { allow: true, always: true };
const NO: Answer = { allow: false, always: false };

/**
 * What waits for the person's yes, each in a card of its own with what would change; nothing happens without it.
 * Returns what is to be called with every state of the message.
 */
export function approvals(parent: HTMLElement, about: MessageContext): (message: Message) => void {
	const { app, chats } = about.services;
	const el = add(parent, "div", "");
	const all = add(el, "div", "tarsd-buttons");
	const cards = new Map<string, { approval: ApprovalRequest; el: HTMLElement }>();
	let shown: readonly ApprovalRequest[] = [];
	let turn = "";

	const answer = (which: readonly ApprovalRequest[], given: Answer): void => {
		for (const { call } of which) void told(() => chats.approve(about.conversation(), turn, call, given));
	};

	/** The keyboard goes on to the next question, or back to the box. */
	const goOn = (next?: ApprovalRequest): void => {
		const card = next && cards.get(next.call);
		if (card) card.el.focus();
		else about.focusBox();
	};

	const draw = (): void => {
		const waiting = shown.filter((one) => one.state === "asked");
		for (const approval of shown) {
			const known = cards.get(approval.call);
			if (known?.approval === approval) continue;
			const card = cardOf(approval, (given) => {
				answer([approval], given);
			});
			const focused = known !== undefined && hasFocus(known.el);
			el.insertBefore(card, known?.el ?? null);
			known?.el.remove();
			cards.set(approval.call, { approval, el: card });
			if (focused) goOn(waiting[0]);
			if (!known && approval.state === "asked") about.say(en.writes.approvalLabel(titleOf(approval)));
		}
		all.empty();
		show(all, waiting.length > 1);
		if (waiting.length > 1) drawAll(waiting);
	};

	const drawAll = (waiting: readonly ApprovalRequest[]): void => {
		const { length } = waiting;
		const yes = en.writes.allowAll(length);
		const unseen = length > MANY || waiting.some((one) => !fits(one.diff));
		const question = { title: en.writes.manyTitle, content: en.writes.manyText(length), yes };
		addButton(all, yes, async () => {
			if (!unseen || (await confirm(app, question))) answer(waiting, YES);
		});
		addButton(all, en.writes.denyAll(length), () => {
			answer(waiting, NO);
		});
	};

	return (message) => {
		turn = message.id;
		if (message.approvals !== shown) {
			shown = message.approvals;
			draw();
		}
		for (const one of cards.values()) show(one.el, !isTold(one.approval, message.writes));
	};
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
function cardOf(approval: ApprovalRequest, answer: (answer: Answer) => void): HTMLElement {
	const { state, diff } = approval;
	const id = uniqueId();
	const el = createDiv({ cls: `tarsd-approval is-${state}`, attr: { role: "group", "aria-labelledby": id } });
	add(el, "div", "tarsd-approval-title", titleOf(approval), { id, ...AUTO });
	if (state !== "asked") {
		add(el, "div", "tarsd-faint", ENDS[state]);
		return el;
	}
	el.tabIndex = 0;
	if (diff !== "") drawDiff(el, diff);
	else drawArguments(el, approval.arguments);
	const buttons = add(el, "div", "tarsd-buttons");
	const answers = { y: YES, a: ALWAYS, n: NO };
	const button = (key: keyof typeof answers, text: string, cls?: string): void => {
		const press = (): void => {
			answer(answers[key]);
		};
		addButton(buttons, text, press, cls, { "aria-keyshortcuts": key });
	};
	button("y", en.writes.allow, "mod-cta");
	button("a", en.writes.always);
	button("n", en.writes.deny);
	el.onkeydown = (event) => {
		if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
		const key = event.key.toLowerCase();
		if (key !== "y" && key !== "a" && key !== "n") return;
		event.preventDefault();
		answer(answers[key]);
	};
	return el;
}

/** What a tool would be called with, when it changes no note. */
function drawArguments(el: HTMLElement, given: ApprovalRequest["arguments"]): void {
	const list = add(el, "dl", "tarsd-arguments");
	for (const [name, value] of Object.entries(given)) {
		add(list, "dt", "", name);
		add(list, "dd", "", plain(value), AUTO);
	}
}
