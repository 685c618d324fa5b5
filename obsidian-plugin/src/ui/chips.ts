import { Component, setIcon } from "obsidian";
import { chips, keyOf, type Chip, type Context } from "../chat/context";
import { en } from "../en";
import { iconButton, show } from "./dom";

const ICONS: Readonly<Record<Chip["kind"], string>> = {
	note: "file-text",
	current: "file-text",
	selection: "text-select",
	folder: "folder",
	tag: "tag",
};

/** What goes along with the question, each with a button that takes it away. */
export class Chips extends Component {
	private readonly el: HTMLElement;
	private rows: Component | null = null;
	private key = "";

	constructor(
		parent: HTMLElement,
		private readonly remove: (chip: Chip) => void,
	) {
		super();
		this.el = parent.createEl("ul", { cls: "tarsd-chips", attr: { "aria-label": en.composer.context } });
		show(this.el, false);
	}

	update(context: Context): void {
		const shown = chips(context);
		const key = shown.map(keyOf).join("\n");
		if (key === this.key) return;
		this.key = key;
		if (this.rows) this.removeChild(this.rows);
		const rows = this.addChild(new Component());
		this.rows = rows;
		this.el.empty();
		show(this.el, shown.length > 0);
		for (const chip of shown) {
			const name = nameOf(chip);
			const item = this.el.createEl("li", { cls: ["tarsd-chip", `is-${chip.kind}`], attr: { title: placeOf(chip) } });
			setIcon(item.createSpan({ cls: "tarsd-chip-icon", attr: { "aria-hidden": "true" } }), ICONS[chip.kind]);
			item.createSpan({ cls: "tarsd-chip-name", text: name, attr: { dir: "auto" } });
			iconButton(item, rows, {
				icon: "x",
				label: en.composer.remove(name),
				onClick: () => {
					this.remove(chip);
				},
			});
		}
	}
}

function nameOf(chip: Chip): string {
	switch (chip.kind) {
		case "note":
			return chip.name;
		case "current":
			return en.composer.current(chip.name);
		case "selection":
			return en.composer.selection(chip.name, chip.text.length);
		case "folder":
			return en.composer.folder(chip.path);
		case "tag":
			return `#${chip.tag}`;
	}
}

function placeOf(chip: Chip): string {
	return chip.kind === "tag" ? `#${chip.tag}` : chip.path;
}
