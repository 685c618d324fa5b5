import type * as Real from "obsidian";
import { setIcon } from "./icons";

/** The controls of a settings row. Unlike the package's they answer to the DOM: a click is a click. */
export abstract class BaseComponent implements Real.BaseComponent {
	disabled = false;

	then(run: (component: this) => unknown): this {
		run(this);
		return this;
	}

	setDisabled(disabled: boolean): this {
		this.disabled = disabled;
		return this;
	}
}

export abstract class ValueComponent<T> extends BaseComponent implements Real.ValueComponent<T> {
	registerOptionListener(): this {
		return this;
	}
	abstract getValue(): T;
	abstract setValue(value: T): this;
}

export class ButtonComponent extends BaseComponent implements Real.ButtonComponent {
	buttonEl: HTMLButtonElement;

	constructor(containerEl: HTMLElement) {
		super();
		this.buttonEl = containerEl.createEl("button");
	}
	override setDisabled(disabled: boolean): this {
		this.buttonEl.disabled = disabled;
		return super.setDisabled(disabled);
	}
	setCta(): this {
		return this.setClass("mod-cta");
	}
	removeCta(): this {
		this.buttonEl.removeClass("mod-cta");
		return this;
	}
	setWarning(): this {
		return this.setClass("mod-warning");
	}
	setDestructive(): this {
		return this.setClass("mod-destructive");
	}
	removeDestructive(): this {
		this.buttonEl.removeClass("mod-destructive");
		return this;
	}
	setTooltip(tooltip: string): this {
		this.buttonEl.setAttribute("aria-label", tooltip);
		return this;
	}
	setButtonText(name: string): this {
		this.buttonEl.setText(name);
		return this;
	}
	setIcon(icon: string): this {
		setIcon(this.buttonEl, icon);
		return this;
	}
	setClass(cls: string): this {
		this.buttonEl.addClass(cls);
		return this;
	}
	onClick(callback: (evt: MouseEvent) => unknown): this {
		this.buttonEl.addEventListener("click", (event) => void callback(event));
		return this;
	}
}

export class ExtraButtonComponent extends BaseComponent implements Real.ExtraButtonComponent {
	extraSettingsEl: HTMLElement;

	constructor(containerEl: HTMLElement) {
		super();
		this.extraSettingsEl = containerEl.createDiv("clickable-icon extra-setting-button");
	}
	override setDisabled(disabled: boolean): this {
		this.extraSettingsEl.toggleClass("is-disabled", disabled);
		return super.setDisabled(disabled);
	}
	setTooltip(tooltip: string): this {
		this.extraSettingsEl.setAttribute("aria-label", tooltip);
		return this;
	}
	setIcon(icon: string): this {
		setIcon(this.extraSettingsEl, icon);
		return this;
	}
	onClick(callback: () => unknown): this {
		this.extraSettingsEl.addEventListener("click", () => {
			if (!this.disabled) void callback();
		});
		return this;
	}
}

export class ToggleComponent extends ValueComponent<boolean> implements Real.ToggleComponent {
	toggleEl: HTMLElement;
	private readonly input: HTMLInputElement;
	private changed: ((value: boolean) => unknown) | null = null;

	constructor(containerEl: HTMLElement) {
		super();
		this.toggleEl = containerEl.createDiv("checkbox-container");
		this.input = this.toggleEl.createEl("input", { type: "checkbox", attr: { tabindex: "0" } });
		this.toggleEl.addEventListener("click", (event) => {
			event.preventDefault();
			this.onClick();
		});
	}
	override setDisabled(disabled: boolean): this {
		this.toggleEl.toggleClass("is-disabled", disabled);
		return super.setDisabled(disabled);
	}
	getValue(): boolean {
		return this.toggleEl.hasClass("is-enabled");
	}
	setValue(on: boolean): this {
		const before = this.getValue();
		this.toggleEl.toggleClass("is-enabled", on);
		this.input.checked = on;
		if (before !== on) void this.changed?.(on);
		return this;
	}
	setTooltip(tooltip: string): this {
		this.toggleEl.setAttribute("aria-label", tooltip);
		return this;
	}
	onClick(): void {
		if (!this.disabled) this.setValue(!this.getValue());
	}
	onChange(callback: (value: boolean) => unknown): this {
		this.changed = callback;
		return this;
	}
}

export class AbstractTextComponent<T extends HTMLInputElement | HTMLTextAreaElement>
	extends ValueComponent<string>
	implements Real.AbstractTextComponent<T>
{
	inputEl: T;
	private changed: ((value: string) => unknown) | null = null;

	constructor(inputEl: T) {
		super();
		this.inputEl = inputEl;
		inputEl.addEventListener("input", () => this.onChanged());
	}
	override setDisabled(disabled: boolean): this {
		this.inputEl.disabled = disabled;
		return super.setDisabled(disabled);
	}
	getValue(): string {
		return this.inputEl.value;
	}
	setValue(value: string): this {
		this.inputEl.value = value;
		return this;
	}
	setPlaceholder(placeholder: string): this {
		this.inputEl.placeholder = placeholder;
		return this;
	}
	onChanged(): void {
		void this.changed?.(this.getValue());
	}
	onChange(callback: (value: string) => unknown): this {
		this.changed = callback;
		return this;
	}
}

export class TextComponent extends AbstractTextComponent<HTMLInputElement> implements Real.TextComponent {
	constructor(containerEl: HTMLElement) {
		super(containerEl.createEl("input", { type: "text", attr: { spellcheck: "false" } }));
	}
}

export class TextAreaComponent extends AbstractTextComponent<HTMLTextAreaElement> implements Real.TextAreaComponent {
	constructor(containerEl: HTMLElement) {
		super(containerEl.createEl("textarea", { attr: { spellcheck: "false" } }));
	}
}

export class SearchComponent extends AbstractTextComponent<HTMLInputElement> implements Real.SearchComponent {
	clearButtonEl: HTMLElement;

	constructor(containerEl: HTMLElement) {
		const box = containerEl.createDiv("search-input-container");
		super(box.createEl("input", { type: "search", attr: { enterkeyhint: "search", spellcheck: "false" } }));
		this.clearButtonEl = box.createDiv("search-input-clear-button");
		this.clearButtonEl.addEventListener("click", () => this.setValue("").onChanged());
	}
}
