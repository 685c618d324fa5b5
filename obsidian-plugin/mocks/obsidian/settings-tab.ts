import type * as Real from "obsidian";
import { ExtraButtonComponent } from "./components";
import { Setting, SettingGroup } from "./setting";

type Item = Real.SettingDefinitionItem;
type Row = Real.SettingDefinition | Real.SettingDefinitionPage;
type Predicate = boolean | (() => boolean) | undefined;

const ask = (predicate: Predicate, otherwise: boolean): boolean =>
	typeof predicate === "function" ? predicate() : (predicate ?? otherwise);

/** A page behind a row, for settings that are drawn by hand. */
export abstract class SettingPage implements Real.SettingPage {
	rootEl = createDiv("setting-page");
	titlebarEl = this.rootEl.createDiv("setting-page-titlebar");
	containerEl = this.rootEl.createDiv("setting-page-content");
	title = "";
	abstract display(): void;
	hide(): void {}
}

/**
 * Draws what `getSettingDefinitions()` describes. The app calls `update()` when the tab is added and draws
 * when it is opened; here `update()` does both, so what a test sees is always the newest description.
 */
export abstract class SettingTab implements Real.SettingTab {
	icon = "";
	app: Real.App;
	containerEl = createDiv("vertical-tab-content");
	settingItems: Item[] = [];
	private refreshers: (() => void)[] = [];
	private cleanups: (() => void)[] = [];

	constructor(app: Real.App) {
		this.app = app;
	}
	getSettingDefinitions(): Item[] {
		return [];
	}
	abstract getControlValue(key: string): unknown;
	abstract setControlValue(key: string, value: unknown): void | Promise<void>;

	update(): void {
		this.settingItems = this.getSettingDefinitions();
		this.draw(this.settingItems);
	}
	refreshDomState(): void {
		for (const refresh of this.refreshers) refresh();
	}
	display(): void {
		this.update();
	}
	hide(): void {
		for (const cleanup of this.cleanups.splice(0)) cleanup();
		this.refreshers = [];
		this.containerEl.empty();
	}

	private draw(items: Item[]): void {
		this.hide();
		let loose: SettingGroup | null = null;
		for (const item of items) {
			if ("type" in item && item.type !== "page") {
				loose = null;
				this.drawGroup(item);
			} else {
				loose ??= new SettingGroup(this.containerEl);
				this.drawRow(item, loose, 0);
			}
		}
		this.refreshDomState();
	}

	private drawGroup(group: Real.SettingDefinitionGroup | Real.SettingDefinitionList): void {
		const box = new SettingGroup(this.containerEl);
		box.setHeading(group.heading ?? "").addClass(...(group.cls ?? "").split(" ").filter(Boolean));
		if (group.type === "list") box.addClass("mod-list");
		for (const run of group.extraButtons ?? []) box.addExtraButton(run);
		this.refreshers.push(() => box.groupEl.toggle(ask(group.visible, true)));
		const rows = group.items ?? [];
		rows.forEach((row, index) => this.drawRow(row, box, index, group));
		if ("emptyState" in group && rows.length === 0) box.listEl.createDiv("setting-empty-state").setText(group.emptyState ?? "");
		if ("addItem" in group && group.addItem) {
			const { name, action } = group.addItem;
			const button = box.listEl.createEl("button", { cls: "setting-add-item", text: name });
			button.addEventListener("click", () => action(button));
		}
	}

	private drawRow(row: Row, group: SettingGroup, index: number, list?: Real.SettingDefinitionGroup | Real.SettingDefinitionList): void {
		const setting = new Setting(group.listEl).setName(row.name).setDesc(row.desc ?? "");
		this.refreshers.push(() => setting.settingEl.toggle(ask(row.visible, true)));
		if ("type" in row) {
			this.drawPage(row, setting);
		} else if (row.action) {
			const action = row.action;
			setting.setClass("mod-action");
			setting.settingEl.addEventListener("click", () => {
				if (!ask(row.disabled, false)) action(setting.settingEl, index);
			});
			this.refreshers.push(() => {
				setting.setDisabled(ask(row.disabled, false));
			});
		} else if (row.render) {
			const cleanup = row.render(setting, group);
			if (cleanup) this.cleanups.push(cleanup);
		} else if (row.control) {
			const { disabled } = row.control;
			this.drawControl(row.control, setting);
			this.refreshers.push(() => {
				setting.setDisabled(ask(disabled, false));
			});
		}
		if (list && "onDelete" in list && list.onDelete) {
			const remove = list.onDelete;
			new ExtraButtonComponent(setting.controlEl).setIcon("x").setTooltip("Delete").onClick(() => remove(index));
		}
	}

	private drawPage(row: Real.SettingDefinitionPage, setting: Setting): void {
		setting.setClass("mod-page").addDisplayValue((value) => {
			this.refreshers.push(() => {
				value.setValue(typeof row.displayValue === "function" ? row.displayValue() : (row.displayValue ?? null));
				value.setStatus(typeof row.status === "function" ? row.status() : (row.status ?? null));
			});
		});
		setting.settingEl.addEventListener("click", () => {
			const back = () => this.update();
			if (row.page) {
				const page = row.page();
				this.hide();
				page.display();
				this.containerEl.append(page.rootEl);
				this.cleanups.push(() => page.hide());
			} else {
				this.draw(row.items ?? []);
			}
			const button = createDiv({ cls: "clickable-icon setting-page-back", attr: { "aria-label": "Back" } });
			button.addEventListener("click", back);
			this.containerEl.prepend(button);
		});
	}

	private drawControl(control: Real.SettingControl, setting: Setting): void {
		const value = this.getControlValue(control.key) ?? control.defaultValue;
		const text = typeof value === "string" || typeof value === "number" ? String(value) : "";
		/** A value that does not pass is shown with its reason and is not kept. */
		const keep = async <V>(next: V, validate: ((value: V) => string | void | Promise<string | void>) | undefined) => {
			const problem = await validate?.(next);
			setting.setErrorMessage(typeof problem === "string" && problem !== "" ? problem : null);
			if (setting.errorEl) return;
			await this.setControlValue(control.key, next);
			this.refreshDomState();
		};
		const change = <V>(next: V, validate: ((value: V) => string | void | Promise<string | void>) | undefined): void => {
			void keep(next, validate);
		};
		switch (control.type) {
			case "toggle":
				setting.addToggle((toggle) => toggle.setValue(value === true).onChange((next) => change(next, control.validate)));
				break;
			case "dropdown":
				setting.addDropdown((dropdown) =>
					dropdown.addOptions(control.options).setValue(text).onChange((next) => change(next, control.validate)),
				);
				break;
			case "textarea":
				setting.addTextArea((area) => {
					area.setPlaceholder(control.placeholder ?? "").setValue(text).onChange((next) => change(next, control.validate));
					if (control.rows !== undefined) area.inputEl.rows = control.rows;
				});
				break;
			case "number":
				setting.addText((input) => {
					input.inputEl.type = "number";
					input.setPlaceholder(control.placeholder ?? "").setValue(text).onChange((next) => change(Number(next), control.validate));
				});
				break;
			case "slider":
				setting.addSlider((slider) =>
					slider.setLimits(control.min, control.max, control.step).setValue(Number(text)).onChange((next) => change(next, control.validate)),
				);
				break;
			case "text":
			case "file":
			case "folder":
				setting.addText((input) =>
					input.setPlaceholder(control.placeholder ?? "").setValue(text).onChange((next) => change(next, control.validate)),
				);
				break;
			case "color":
				setting.addText((input) => input.setValue(text).onChange((next) => change(next, control.validate)));
				break;
		}
	}
}

/** Reads and writes `plugin.settings`, and saves it, as the app's own does. */
export abstract class PluginSettingTab extends SettingTab implements Real.PluginSettingTab {
	private readonly owner: Real.Plugin;

	constructor(app: Real.App, plugin: Real.Plugin) {
		super(app);
		this.owner = plugin;
	}
	getControlValue(key: string): unknown {
		const settings = this.owner.settings;
		return settings instanceof Object ? (settings as Record<string, unknown>)[key] : undefined;
	}
	async setControlValue(key: string, value: unknown): Promise<void> {
		const settings = this.owner.settings instanceof Object ? this.owner.settings : {};
		this.owner.settings = Object.assign(settings, { [key]: value });
		await this.owner.saveData(this.owner.settings);
	}
}
