import { Component } from "obsidian";
import { citationOf } from "../chat/citations";
import { ended, type Message } from "../chat/state";
import { en } from "../en";
import type { Source } from "../protocol/events";
import { show } from "./dom";
import type { Services } from "./services";

/** The passages under an answer, folded: those that it cites, those that were found, or the nearest when none fitted. */
export class SourceList extends Component {
	private readonly el: HTMLDetailsElement;
	private readonly summary: HTMLElement;
	private readonly list: HTMLElement;
	private shown: readonly Source[] = [];

	constructor(parent: HTMLElement, services: Services) {
		super();
		this.el = parent.createEl("details", "tarsd-sources");
		this.el.open = services.settings().showSources;
		this.summary = this.el.createEl("summary");
		this.list = this.el.createEl("ol", { cls: "tarsd-source-list", attr: { role: "list" } });
		show(this.el, false);
	}

	update(message: Message): void {
		const { sources, near } = listed(message);
		if (sources === this.shown) return;
		this.shown = sources;
		show(this.el, sources.length > 0);
		const count = en.chat.sources(sources.length);
		this.summary.setText(near ? `${en.chat.closest}: ${count}` : count);
		this.list.empty();
		for (const source of sources) sourceRow(this.list, source);
	}
}

const NONE: readonly Source[] = [];

function listed(message: Message): { sources: readonly Source[]; near: boolean } {
	if (message.citations.length > 0) return { sources: message.citations, near: false };
	if (!ended(message) && message.sources.length > 0) return { sources: message.sources, near: false };
	if (message.sources.length === 0 && message.closest.length > 0) return { sources: message.closest, near: true };
	return { sources: NONE, near: false };
}

function sourceRow(list: HTMLElement, source: Source): void {
	const row = list.createEl("li", { cls: "tarsd-source", attr: { value: String(source.n) } });
	row.createSpan({ cls: "tarsd-source-number", text: String(source.n), attr: { "aria-hidden": "true" } });
	const citation = citationOf(source.n, [source]);
	const text = row.createDiv("tarsd-source-text");
	if (citation.kind === "here") {
		text.createEl("a", {
			cls: "internal-link",
			text: source.title,
			href: citation.target,
			attr: { "data-href": citation.target, "data-tarsd-source": String(source.n) },
		});
	} else {
		text.createSpan({ text: en.chat.elsewhere(source.title, source.collection) });
	}
	const about = [source.heading];
	if (source.start_line > 0) about.push(en.chat.lines(source.start_line, Math.max(source.start_line, source.end_line)));
	if (source.attached) about.push(en.chat.attached);
	text.createDiv({ cls: "tarsd-faint", text: about.filter(Boolean).join(" · ") });
}
