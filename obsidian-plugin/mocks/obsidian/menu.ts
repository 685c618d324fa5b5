import type * as Real from "obsidian";
import { Component } from "obsidian-test-mocks/obsidian";
import { setIcon } from "./icons";

/** One line of a menu. */
export class MenuItem implements Pick<Real.MenuItem, keyof Real.MenuItem> {
	readonly dom = createDiv("menu-item tappable");
	private readonly iconEl = this.dom.createDiv("menu-item-icon");
	private readonly titleEl = this.dom.createDiv("menu-item-title");

	constructor(private readonly menu: Menu) {}

	setTitle(title: string | DocumentFragment): this {
		this.titleEl.setText(title);
		return this;
	}
	setIcon(icon: string | null): this {
		if (icon === null) this.iconEl.empty();
		else setIcon(this.iconEl, icon);
		return this;
	}
	setChecked(checked: boolean | null): this {
		this.dom.toggleClass("mod-checked", checked === true);
		return this;
	}
	setDisabled(disabled: boolean): this {
		this.dom.toggleClass("is-disabled", disabled);
		return this;
	}
	setWarning(isWarning: boolean): this {
		this.dom.toggleClass("is-warning", isWarning);
		return this;
	}
	setIsLabel(isLabel: boolean): this {
		this.dom.toggleClass("is-label", isLabel);
		return this;
	}
	setSection(section: string): this {
		this.dom.dataset["section"] = section;
		return this;
	}
	onClick(callback: (evt: MouseEvent | KeyboardEvent) => unknown): this {
		this.dom.addEventListener("click", (event) => {
			if (this.dom.hasClass("is-disabled")) return;
			this.menu.hide();
			void callback(event);
		});
		return this;
	}
}

/** In the DOM from `showAt…` to `hide`. */
export class Menu extends Component {
	private readonly dom = createDiv("menu");
	private hidden: (() => unknown) | null = null;

	addItem(run: (item: MenuItem) => unknown): this {
		const item = new MenuItem(this);
		this.dom.append(item.dom);
		run(item);
		return this;
	}
	addSeparator(): this {
		this.dom.createDiv("menu-separator");
		return this;
	}
	setNoIcon(): this {
		return this;
	}
	setUseNativeMenu(): this {
		return this;
	}
	setParentElement(): this {
		return this;
	}
	showAtMouseEvent(): this {
		return this.showAtPosition();
	}
	showAtPosition(): this {
		document.body.append(this.dom);
		return this;
	}
	hide(): this {
		const shown = this.dom.isConnected;
		this.dom.remove();
		if (shown) void this.hidden?.();
		return this;
	}
	close(): void {
		this.hide();
	}
	onHide(callback: () => unknown): void {
		this.hidden = callback;
	}
	static forEvent(): Menu {
		const menu = new Menu();
		window.setTimeout(() => menu.showAtPosition(), 0);
		return menu;
	}
}

// Its base comes from the package, whose hidden members differ; what is public is the app's.
type Shown = Pick<Real.Menu, "hide" | "close" | "onHide">;
const _menu: new () => { [K in keyof Shown]: (...values: Parameters<Shown[K]>) => unknown } = Menu;
void _menu;
