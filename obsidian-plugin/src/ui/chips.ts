import { chips, keyOf, type Chip, type Context } from "../chat/context";
import { en } from "../en";
import { add, addHidden, addIcon, addIconButton, AUTO, show } from "./dom";

/** The icon of what a question can name. */
export const ICONS = { note: "file-text", current: "file-text", selection: "text-select", folder: "folder", tag: "tag", command: "terminal" } as const;

/**
 * What goes along with the question, each with a button that takes it away. Returns what is to be called with every
 * state of it.
 */
export function chipList(parent: HTMLElement, remove: (chip: Chip) => void): (context: Context) => void {
	const el = addHidden(parent, "ul", "tarsd-chips", { "aria-label": en.composer.context });
	let shown = "";
	return (context) => {
		const all = chips(context);
		const key = all.map(keyOf).join("\n");
		if (key === shown) return;
		shown = key;
		el.empty();
		show(el, key !== "");
		for (const chip of all) {
			const [name, place] = wordsOf(chip);
			const item = add(el, "li", `tarsd-chip is-${chip.kind}`, "", { title: place });
			addIcon(item, "tarsd-chip-icon", ICONS[chip.kind]);
			add(item, "span", "tarsd-chip-name", name, AUTO);
			addIconButton(item, "x", en.composer.remove(name), () => {
				remove(chip);
			});
		}
	};
}

/** What is read, and where it is. */
function wordsOf(chip: Chip): [string, string] {
	switch (chip.kind) {
		case "note":
			return [chip.name, chip.path];
		case "current":
			return [en.composer.current(chip.name), chip.path];
		case "selection":
			return [en.composer.selection(chip.name, chip.text.length), chip.path];
		case "folder":
			return [`${chip.path || en.composer.vault}/`, chip.path];
		case "tag":
			return [`#${chip.tag}`, `#${chip.tag}`];
	}
}
