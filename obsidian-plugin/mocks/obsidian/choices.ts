import type * as Real from "obsidian";
import { BaseComponent, ValueComponent } from "./components";

/** The controls that hold a choice or only show a value. */
export class DropdownComponent extends ValueComponent<string> implements Real.DropdownComponent {
	selectEl: HTMLSelectElement;

	constructor(containerEl: HTMLElement) {
		super();
		this.selectEl = containerEl.createEl("select", "dropdown");
	}
	override setDisabled(disabled: boolean): this {
		this.selectEl.disabled = disabled;
		return super.setDisabled(disabled);
	}
	addOption(value: string, display: string): this {
		this.selectEl.createEl("option", { value, text: display });
		return this;
	}
	addOptions(options: Record<string, string>): this {
		for (const [value, display] of Object.entries(options)) this.addOption(value, display);
		return this;
	}
	getValue(): string {
		return this.selectEl.value;
	}
	setValue(value: string): this {
		this.selectEl.value = value;
		return this;
	}
	onChange(callback: (value: string) => unknown): this {
		this.selectEl.addEventListener("change", () => void callback(this.getValue()));
		return this;
	}
}

export class SliderComponent extends ValueComponent<number> implements Real.SliderComponent {
	sliderEl: HTMLInputElement;
	private format: (value: number) => string = String;

	constructor(containerEl: HTMLElement) {
		super();
		this.sliderEl = containerEl.createEl("input", { cls: "slider", type: "range" });
	}
	override setDisabled(disabled: boolean): this {
		this.sliderEl.disabled = disabled;
		return super.setDisabled(disabled);
	}
	setInstant(): this {
		return this;
	}
	setLimits(min: number | null, max: number | null, step: number | "any"): this {
		Object.assign(this.sliderEl, { min: String(min ?? ""), max: String(max ?? ""), step: String(step) });
		return this;
	}
	getValue(): number {
		return Number(this.sliderEl.value);
	}
	setValue(value: number): this {
		this.sliderEl.value = String(value);
		return this;
	}
	getValuePretty(): string {
		return this.format(this.getValue());
	}
	setDisplayFormat(format: (value: number) => string): this {
		this.format = format;
		return this;
	}
	setDynamicTooltip(): this {
		return this;
	}
	onChange(callback: (value: number) => unknown): this {
		this.sliderEl.addEventListener("change", () => void callback(this.getValue()));
		return this;
	}
}

export class DisplayValueComponent implements Real.DisplayValueComponent {
	valueEl: HTMLElement;

	constructor(containerEl: HTMLElement) {
		this.valueEl = containerEl.createDiv("setting-item-display-value");
	}
	setValue(value: string | null): this {
		this.valueEl.setText(value ?? "");
		return this;
	}
	setStatus(status: "warning" | null): this {
		this.valueEl.toggleClass("mod-warning", status === "warning");
		return this;
	}
}

/**
 * Chooses a secret by its name: what it hands out is the name, never the secret. The app shows a button and a
 * list; here a text field takes the name.
 */
export class SecretComponent extends BaseComponent implements Real.SecretComponent {
	private readonly input: HTMLInputElement;

	constructor(_app: Real.App, containerEl: HTMLElement) {
		super();
		this.input = containerEl.createEl("input", { cls: "secret-name", type: "text" });
	}
	override setDisabled(disabled: boolean): this {
		this.input.disabled = disabled;
		return super.setDisabled(disabled);
	}
	setValue(value: string): this {
		this.input.value = value;
		return this;
	}
	onChange(callback: (value: string) => unknown): this {
		this.input.addEventListener("input", () => void callback(this.input.value));
		return this;
	}
}
