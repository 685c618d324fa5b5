import { Component } from "obsidian";
import type { Message, ToolUse } from "../chat/state";
import { en } from "../en";
import { show } from "./dom";

/** What is being done for an answer, folded: the thoughts of the model and the tools that it used. */
export class Activity extends Component {
	private readonly thoughts: HTMLDetailsElement;
	private readonly thoughtsText: HTMLElement;
	private readonly steps: HTMLDetailsElement;
	private readonly summary: HTMLElement;
	private readonly list: HTMLElement;
	private readonly rows = new Map<string, { tool: ToolUse; el: HTMLElement }>();
	private thinking = "";
	private tools: readonly ToolUse[] = [];

	constructor(parent: HTMLElement) {
		super();
		this.thoughts = parent.createEl("details", "tarsd-thoughts");
		this.thoughts.createEl("summary", { text: en.chat.thinking });
		this.thoughtsText = this.thoughts.createDiv({ cls: "tarsd-thoughts-text", attr: { dir: "auto" } });
		this.steps = parent.createEl("details", "tarsd-steps");
		this.summary = this.steps.createEl("summary");
		this.list = this.steps.createEl("ol", "tarsd-step-list");
		show(this.thoughts, false);
		show(this.steps, false);
	}

	update({ thinking, tools }: Message): void {
		if (thinking !== this.thinking) {
			// long thoughts come in many pieces, and only the new one is put in
			const more = thinking.startsWith(this.thinking) ? thinking.slice(this.thinking.length) : null;
			if (more === null) this.thoughtsText.setText(thinking);
			else this.thoughtsText.appendText(more);
			this.thinking = thinking;
			show(this.thoughts, thinking !== "");
		}
		if (tools !== this.tools) this.showTools(tools);
	}

	private showTools(tools: readonly ToolUse[]): void {
		this.tools = tools;
		show(this.steps, tools.length > 0);
		const running = tools.filter((tool) => tool.state === "running");
		const now = (running.length > 0 ? running : tools.slice(-1)).map((tool) => toolName(tool.name)).join(", ");
		this.summary.setText(`${en.chat.steps(tools.length)} · ${now}${running.length > 0 ? "…" : ""}`);
		for (const tool of tools) {
			const known = this.rows.get(tool.call);
			if (known?.tool === tool) continue;
			const el = row(tool);
			if (known) known.el.replaceWith(el);
			else this.list.append(el);
			this.rows.set(tool.call, { tool, el });
		}
		for (const [call, { el }] of this.rows) {
			if (tools.some((tool) => tool.call === call)) continue;
			el.remove();
			this.rows.delete(call);
		}
	}
}

/** A tool's name in words; one that came with a server has its own. */
export function toolName(name: string): string {
	const known: Readonly<Record<string, string>> = en.chat.tools;
	if (Object.prototype.hasOwnProperty.call(known, name)) return known[name] ?? name;
	return name.replace(/_+/g, " ").trim() || en.writes.noTitle;
}

const STATES: Readonly<Record<ToolUse["state"], string>> = {
	running: en.chat.stepRunning,
	done: en.chat.stepDone,
	failed: en.chat.stepFailed,
	refused: en.chat.stepRefused,
	stopped: en.chat.stepStopped,
};

function row(tool: ToolUse): HTMLElement {
	const el = createEl("li", { cls: ["tarsd-step", `is-${tool.state}`] });
	const head = el.createDiv("tarsd-step-head");
	head.createSpan({ cls: "tarsd-step-name", text: toolName(tool.name) });
	head.createSpan({ cls: "tarsd-step-state", text: STATES[tool.state] });
	const given = Object.entries(tool.arguments).map(([key, value]) => `${key}: ${plain(value)}`);
	if (given.length > 0) el.createDiv({ cls: "tarsd-faint", text: given.join(", "), attr: { dir: "auto" } });
	if (tool.text !== "") el.createEl("pre", { cls: "tarsd-step-text", text: tool.text, attr: { tabindex: "0", dir: "auto" } });
	return el;
}

function plain(value: unknown): string {
	const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
	return text.length > 120 ? `${text.slice(0, 119)}…` : text;
}
