import type * as Real from "obsidian";
import { ColorComponent, MomentFormatComponent, ProgressBarComponent } from "obsidian-test-mocks/obsidian";
import { DisplayValueComponent, DropdownComponent, SliderComponent } from "./choices";
import {
	type BaseComponent,
	ButtonComponent,
	ExtraButtonComponent,
	SearchComponent,
	TextAreaComponent,
	TextComponent,
	ToggleComponent,
} from "./components";

/** One row of settings, with the classes of the app. */
export class Setting implements Real.Setting {
	settingEl: HTMLElement;
	infoEl: HTMLElement;
	nameEl: HTMLElement;
	descEl: HTMLElement;
	controlEl: HTMLElement;
	components: BaseComponent[] = [];
	errorEl: HTMLElement | null = null;

	constructor(containerEl: HTMLElement) {
		this.settingEl = containerEl.createDiv("setting-item");
		this.infoEl = this.settingEl.createDiv("setting-item-info");
		this.nameEl = this.infoEl.createDiv("setting-item-name");
		this.descEl = this.infoEl.createDiv("setting-item-description");
		this.controlEl = this.settingEl.createDiv("setting-item-control");
	}

	private add<T>(component: T, run: (component: T) => unknown): this {
		if (component instanceof Object && "setDisabled" in component) this.components.push(component as unknown as BaseComponent);
		run(component);
		return this;
	}
	addButton(run: (component: ButtonComponent) => unknown): this {
		return this.add(new ButtonComponent(this.controlEl), run);
	}
	addExtraButton(run: (component: ExtraButtonComponent) => unknown): this {
		return this.add(new ExtraButtonComponent(this.controlEl), run);
	}
	addToggle(run: (component: ToggleComponent) => unknown): this {
		this.settingEl.addClass("mod-toggle");
		return this.add(new ToggleComponent(this.controlEl), run);
	}
	addText(run: (component: TextComponent) => unknown): this {
		return this.add(new TextComponent(this.controlEl), run);
	}
	addSearch(run: (component: SearchComponent) => unknown): this {
		return this.add(new SearchComponent(this.controlEl), run);
	}
	addTextArea(run: (component: TextAreaComponent) => unknown): this {
		return this.add(new TextAreaComponent(this.controlEl), run);
	}
	addDropdown(run: (component: DropdownComponent) => unknown): this {
		return this.add(new DropdownComponent(this.controlEl), run);
	}
	addSlider(run: (component: SliderComponent) => unknown): this {
		return this.add(new SliderComponent(this.controlEl), run);
	}
	addDisplayValue(run: (component: DisplayValueComponent) => unknown): this {
		return this.add(new DisplayValueComponent(this.controlEl), run);
	}
	addComponent<T extends Real.BaseComponent>(make: (el: HTMLElement) => T): this {
		return this.add(make(this.controlEl), () => undefined);
	}
	addMomentFormat(run: (component: Real.MomentFormatComponent) => unknown): this {
		return this.add(MomentFormatComponent.create2__(this.controlEl).asOriginalType5__(), run);
	}
	addColorPicker(run: (component: Real.ColorComponent) => unknown): this {
		return this.add(ColorComponent.create__(this.controlEl).asOriginalType3__(), run);
	}
	addProgressBar(run: (component: Real.ProgressBarComponent) => unknown): this {
		return this.add(ProgressBarComponent.create__(this.controlEl).asOriginalType3__(), run);
	}

	setName(name: string | DocumentFragment): this {
		this.nameEl.setText(name);
		return this;
	}
	setDesc(desc: string | DocumentFragment): this {
		this.descEl.setText(desc);
		return this;
	}
	setClass(cls: string): this {
		this.settingEl.addClass(cls);
		return this;
	}
	setTooltip(tooltip: string): this {
		this.nameEl.setAttribute("aria-label", tooltip);
		return this;
	}
	setHeading(): this {
		return this.setClass("setting-item-heading");
	}
	setDisabled(disabled: boolean): this {
		this.settingEl.toggleClass("is-disabled", disabled);
		for (const component of this.components) component.setDisabled(disabled);
		return this;
	}
	setErrorMessage(message: string | null): this {
		this.errorEl?.remove();
		this.errorEl = message === null ? null : this.infoEl.createDiv({ cls: "setting-item-error", text: message });
		this.settingEl.toggleClass("is-invalid", message !== null);
		return this;
	}
	then(run: (setting: this) => unknown): this {
		run(this);
		return this;
	}
	clear(): this {
		this.controlEl.empty();
		this.components = [];
		return this;
	}
}

/** A box of rows under one heading. */
export class SettingGroup implements Real.SettingGroup {
	/** The box itself: not public in the app, and needed to hide a group. */
	readonly groupEl: HTMLElement;
	listEl: HTMLElement;
	private readonly headerEl: HTMLElement;
	private readonly controlEl: HTMLElement;

	constructor(containerEl: HTMLElement) {
		this.groupEl = containerEl.createDiv("setting-group");
		const header = this.groupEl.createDiv("setting-item setting-item-heading");
		this.headerEl = header.createDiv("setting-item-name");
		this.controlEl = header.createDiv("setting-item-control");
		this.listEl = this.groupEl.createDiv("setting-items");
	}
	setHeading(text: string | DocumentFragment): this {
		this.headerEl.setText(text);
		return this;
	}
	addClass(...classes: string[]): this {
		this.groupEl.addClass(...classes);
		return this;
	}
	addSetting(run: (setting: Setting) => void): this {
		run(new Setting(this.listEl));
		return this;
	}
	addSearch(run: (component: SearchComponent) => unknown): this {
		run(new SearchComponent(this.controlEl));
		return this;
	}
	addExtraButton(run: (component: ExtraButtonComponent) => unknown): this {
		run(new ExtraButtonComponent(this.controlEl));
		return this;
	}
}
