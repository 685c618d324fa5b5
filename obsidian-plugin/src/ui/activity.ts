import type { Message, ToolUse } from "../chat/state";
import { en } from "../en";
import { add, addFold, AUTO, show } from "./dom";

/**
 * What is being done for an answer, folded: the thoughts of the model and the tools that it used. Returns what is to
 * be called with every state of the message.
 */
export function activity(parent: HTMLElement): (message: Message) => void {
	const thoughts = addFold(parent, "tarsd-thoughts", en.chat.thinking).el;
	const thoughtsText = add(thoughts, "div", "tarsd-thoughts-text", "", AUTO);
	const steps = addFold(parent, "tarsd-steps");
	const list = add(steps.el, "ol", "tarsd-step-list");
	const rows: HTMLElement[] = [];
	let thought = "";
	let drawn: readonly ToolUse[] = [];

	return ({ thinking, tools }) => {
		show(thoughts, thinking !== "");
		show(steps.el, tools.length > 0);
		if (thinking !== thought) {
			// long thoughts come in many pieces, and only the new one is put in
			if (thinking.startsWith(thought)) thoughtsText.append(thinking.slice(thought.length));
			else thoughtsText.setText(thinking);
			thought = thinking;
		}
		if (tools === drawn) return;
		const running = tools.filter((tool) => tool.state === "running");
		const now = (running.length > 0 ? running : tools.slice(-1)).map((tool) => toolName(tool.name)).join(", ");
		steps.summary.setText(`${en.chat.steps(tools.length)} · ${now}${running.length > 0 ? "…" : ""}`);
		tools.forEach((tool, at) => {
			if (tool !== drawn[at]) drawStep((rows[at] ??= add(list, "li", "")), tool);
		});
		for (const gone of rows.splice(tools.length)) gone.remove();
		drawn = tools;
	};
}

const KNOWN: Readonly<Record<string, string>> = en.chat.tools;
const NAMES = new Map(Object.entries(KNOWN));

/** A tool's name in words; one that came with a server has its own. */
export function toolName(name: string): string {
	return NAMES.get(name) ?? (name.replace(/_+/g, " ").trim() || en.writes.noTitle);
}

const STATES: Readonly<Record<ToolUse["state"], string>> = {
	running: en.chat.stepRunning,
	done: en.chat.stepDone,
	failed: en.chat.stepFailed,
	refused: en.chat.stepRefused,
	stopped: en.chat.stepStopped,
};

function drawStep(el: HTMLElement, { name, state, text, arguments: given }: ToolUse): void {
	el.empty();
	el.className = `tarsd-step is-${state}`;
	const head = add(el, "div", "tarsd-step-head");
	add(head, "span", "", toolName(name));
	add(head, "span", "tarsd-step-state", STATES[state]);
	const what = Object.entries(given).map(([key, value]) => `${key}: ${plain(value, 120)}`);
	if (what.length > 0) add(el, "div", "tarsd-faint", what.join(", "), AUTO);
	if (text !== "") add(el, "pre", "tarsd-step-text", text, { tabindex: 0, ...AUTO });
}

/** What a tool was given, as text of at most so many characters. */
export function plain(value: unknown, most = Infinity): string {
	const text = typeof value === "string" ? value : JSON.stringify(value);
	return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
