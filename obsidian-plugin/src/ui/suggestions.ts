import type { Prepared } from "../chat/mentions";
import { en } from "../en";
import { ICONS } from "./chips";
import { add, addHidden, addIcon, AUTO, show, uniqueId } from "./dom";

/** A list with one entry that is marked. */
export interface Suggestions {
	/** A long list scrolls, so the keyboard can go to it. */
	readonly el: HTMLElement;
	readonly set: (items: readonly Prepared[]) => void;
	/** To the next entry or the one before, around the ends. */
	readonly move: (by: 1 | -1) => void;
	/** The one that is marked; none in an empty list. */
	readonly selected: () => Prepared | undefined;
}

/** The list of what can be named, above the box. The focus stays in the box, which says which entry is meant. */
export function suggestions(parent: HTMLElement, box: HTMLTextAreaElement, choose: (item: Prepared) => void): Suggestions {
	const id = uniqueId();
	const el = addHidden(parent, "div", "tarsd-suggestions suggestion", { id, role: "listbox", "aria-label": en.composer.suggestions, tabindex: 0 });
	box.setAttribute("aria-controls", id);
	let items: readonly Prepared[] = [];
	let rows: HTMLElement[] = [];
	let index = 0;

	const mark = (next: number): void => {
		index = next;
		rows.forEach((row, at) => {
			row.toggleClass("is-selected", at === index);
			row.setAttribute("aria-selected", String(at === index));
		});
		rows[index]?.scrollIntoView?.({ block: "nearest" });
		box.setAttribute("aria-activedescendant", rows[index]?.id ?? "");
	};

	// a click must not take the focus from the box
	el.onmousedown = (event) => {
		event.preventDefault();
	};

	return {
		el,
		set: (next) => {
			items = next;
			el.empty();
			show(el, items.length > 0);
			rows = items.map((item, at) => {
				const { candidate, label } = item;
				const row = add(el, "div", "suggestion-item tarsd-suggestion", "", { id: `${id}-${at}`, role: "option" });
				addIcon(row, "tarsd-suggestion-icon", ICONS[candidate.kind]);
				const text = add(row, "div", "tarsd-suggestion-text");
				add(text, "div", "", label, AUTO);
				const { kind } = candidate;
				const place = kind === "note" ? candidate.path.replace(/[^/]*$/, "") : kind === "command" ? candidate.takes : "";
				if (place !== "") add(text, "div", "tarsd-faint", place, AUTO);
				row.onclick = () => {
					choose(item);
				};
				row.onmousemove = () => {
					if (at !== index) mark(at);
				};
				return row;
			});
			mark(0);
		},
		move: (by) => {
			mark((index + by + items.length) % items.length);
		},
		selected: () => items[index],
	};
}
