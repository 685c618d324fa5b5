import { Component, setIcon } from "obsidian";
import type { Prepared } from "../chat/mentions";
import { en } from "../en";
import { show, uniqueId } from "./dom";

const ICONS = { note: "file-text", folder: "folder", tag: "tag" } as const;

/** The list of what can be named, above the box. The focus stays in the box, which says which entry is meant. */
export class Suggestions extends Component {
	readonly el: HTMLElement;
	private items: readonly Prepared[] = [];
	private index = 0;

	constructor(
		parent: HTMLElement,
		private readonly box: HTMLTextAreaElement,
		private readonly choose: (item: Prepared) => void,
	) {
		super();
		const id = uniqueId("suggestions");
		this.el = parent.createDiv({
			cls: "tarsd-suggestions suggestion",
			attr: { id, role: "listbox", "aria-label": en.composer.suggestions },
		});
		show(this.el, false);
		box.setAttribute("aria-controls", id);
		// a click must not take the focus from the box
		this.registerDomEvent(this.el, "mousedown", (event) => {
			event.preventDefault();
		});
		this.registerDomEvent(this.el, "click", (event) => {
			const at = this.indexOf(event);
			const item = at === null ? undefined : this.items[at];
			if (item) this.choose(item);
		});
		this.registerDomEvent(this.el, "mousemove", (event) => {
			const at = this.indexOf(event);
			if (at !== null && at !== this.index) this.mark(at);
		});
	}

	/** Whether there is something to choose. */
	get open(): boolean {
		return this.items.length > 0;
	}

	get selected(): Prepared | undefined {
		return this.items[this.index];
	}

	set(items: readonly Prepared[]): void {
		this.items = items;
		this.el.empty();
		show(this.el, items.length > 0);
		items.forEach((item, index) => {
			const row = this.el.createDiv({
				cls: "suggestion-item tarsd-suggestion",
				attr: { id: `${this.el.id}-${index}`, role: "option", "data-index": String(index) },
			});
			setIcon(row.createSpan({ cls: "tarsd-suggestion-icon", attr: { "aria-hidden": "true" } }), ICONS[item.candidate.kind]);
			const text = row.createDiv("tarsd-suggestion-text");
			text.createDiv({ text: item.label, attr: { dir: "auto" } });
			const place = item.candidate.kind === "note" ? item.candidate.path.replace(/[^/]*$/, "") : "";
			if (place !== "") text.createDiv({ cls: "tarsd-faint", text: place, attr: { dir: "auto" } });
		});
		this.mark(0);
	}

	/** To the next entry or the one before, around the ends. */
	move(by: 1 | -1): void {
		if (this.open) this.mark((this.index + by + this.items.length) % this.items.length);
	}

	close(): void {
		if (this.open) this.set([]);
	}

	private mark(index: number): void {
		this.index = index;
		Array.from(this.el.children).forEach((row, at) => {
			row.toggleClass("is-selected", at === index);
			row.setAttribute("aria-selected", String(at === index));
			if (at === index && "scrollIntoView" in row) row.scrollIntoView({ block: "nearest" });
		});
		if (this.open) this.box.setAttribute("aria-activedescendant", `${this.el.id}-${index}`);
		else this.box.removeAttribute("aria-activedescendant");
	}

	private indexOf(event: Event): number | null {
		const { target } = event;
		const row = target !== null && "closest" in target ? (target as Element).closest<HTMLElement>("[data-index]") : null;
		return row ? Number(row.dataset["index"]) : null;
	}
}
