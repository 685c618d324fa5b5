import type * as Real from "obsidian";
import { Modal } from "./modal";
import { Scope } from "./scope";
import { prepareFuzzySearch, renderMatches } from "./search";

/** A prompt with a list under it, driven by typing, the arrow keys, Enter and the mouse, as in the app. */
export abstract class SuggestModal<T> extends Modal implements Real.SuggestModal<T> {
	limit = 100;
	emptyStateText = "No results found.";
	inputEl: HTMLInputElement;
	resultContainerEl: HTMLElement;
	private values: T[] = [];
	/** The lines, in the order of their values; one may have put something else before itself. */
	private itemEls: HTMLElement[] = [];
	private selected = 0;
	private asked = 0;

	constructor(app: Real.App) {
		super(app);
		this.modalEl.className = "prompt";
		this.modalEl.empty();
		this.inputEl = this.modalEl.createDiv("prompt-input-container").createEl("input", { cls: "prompt-input", type: "text" });
		this.resultContainerEl = this.modalEl.createDiv("prompt-results");
		this.inputEl.addEventListener("input", () => this.refresh());
		const move = (step: number) => () => {
			if (this.values.length > 0) this.select((this.selected + step + this.values.length) % this.values.length);
			return false as const;
		};
		this.scope.register([], "ArrowDown", move(1));
		this.scope.register([], "ArrowUp", move(-1));
		this.scope.register([], "Enter", (event) => {
			if (!event.isComposing) this.selectActiveSuggestion(event);
			return false;
		});
	}

	abstract getSuggestions(query: string): T[] | Promise<T[]>;
	abstract renderSuggestion(value: T, el: HTMLElement): void;
	abstract onChooseSuggestion(item: T, evt: MouseEvent | KeyboardEvent): void;

	/** The first list comes from here, so a subclass that forgets `super.onOpen()` starts empty. */
	override onOpen(): Promise<void> | void {
		this.inputEl.focus();
		this.refresh();
	}
	setPlaceholder(placeholder: string): void {
		this.inputEl.placeholder = placeholder;
	}
	setInstructions(instructions: Real.Instruction[]): void {
		this.modalEl.querySelector(".prompt-instructions")?.remove();
		const list = this.modalEl.createDiv("prompt-instructions");
		for (const { command, purpose } of instructions) {
			const el = list.createDiv("prompt-instruction");
			el.createSpan({ cls: "prompt-instruction-command", text: command });
			el.createSpan({ text: purpose });
		}
	}
	onNoSuggestion(): void {
		this.resultContainerEl.empty();
		if (this.emptyStateText !== "") this.resultContainerEl.createDiv({ cls: "suggestion-empty", text: this.emptyStateText });
	}
	/** Closes first and chooses then: `onClose` runs before `onChooseSuggestion`, as in the app. */
	selectSuggestion(value: T, evt: MouseEvent | KeyboardEvent): void {
		this.close();
		this.onChooseSuggestion(value, evt);
	}
	selectActiveSuggestion(evt: MouseEvent | KeyboardEvent): void {
		const value = this.values[this.selected];
		if (value !== undefined) this.selectSuggestion(value, evt);
	}

	/** An answer that comes after a newer question is dropped. */
	private refresh(): void {
		const turn = ++this.asked;
		const found = this.getSuggestions(this.inputEl.value);
		if (found instanceof Promise) {
			void found.then((values) => {
				if (turn === this.asked) this.show(values);
			});
		} else {
			this.show(found);
		}
	}
	private show(values: T[]): void {
		this.values = values.slice(0, this.limit);
		this.resultContainerEl.empty();
		if (this.values.length === 0) {
			this.onNoSuggestion();
			return;
		}
		this.itemEls = this.values.map((value, index) => {
			const el = this.resultContainerEl.createDiv("suggestion-item");
			this.renderSuggestion(value, el);
			el.addEventListener("mousemove", () => this.select(index));
			el.addEventListener("click", (event) => this.selectSuggestion(value, event));
			el.addEventListener("auxclick", (event) => {
				if (event.button === 1) this.selectSuggestion(value, event);
			});
			return el;
		});
		this.select(0);
	}
	private select(index: number): void {
		this.selected = index;
		this.itemEls.forEach((el, at) => el.toggleClass("is-selected", at === index));
	}
}

export abstract class FuzzySuggestModal<T> extends SuggestModal<Real.FuzzyMatch<T>> implements Real.FuzzySuggestModal<T> {
	abstract getItems(): T[];
	abstract getItemText(item: T): string;
	abstract onChooseItem(item: T, evt: MouseEvent | KeyboardEvent): void;

	getSuggestions(query: string): Real.FuzzyMatch<T>[] {
		const search = prepareFuzzySearch(query.trim());
		const found: Real.FuzzyMatch<T>[] = [];
		for (const item of this.getItems()) {
			const match = search(this.getItemText(item));
			if (match) found.push({ item, match });
		}
		return query.trim() === "" ? found : found.sort((a, b) => b.match.score - a.match.score);
	}
	renderSuggestion(item: Real.FuzzyMatch<T>, el: HTMLElement): void {
		renderMatches(el, this.getItemText(item.item), item.match.matches);
	}
	onChooseSuggestion(item: Real.FuzzyMatch<T>, evt: MouseEvent | KeyboardEvent): void {
		this.onChooseItem(item.item, evt);
	}
}

/** Suggestions under a text field. A test types into the field and picks from `.suggestion-container`. */
export abstract class AbstractInputSuggest<T> {
	app: Real.App;
	limit = 100;
	scope = new Scope();
	private readonly box = createDiv("suggestion-container");
	private chosen: ((value: T, evt: MouseEvent | KeyboardEvent) => unknown) | null = null;

	constructor(
		app: Real.App,
		private readonly field: HTMLInputElement | HTMLDivElement,
	) {
		this.app = app;
		const ask = () => {
			void Promise.resolve(this.getSuggestions(this.getValue())).then((values) => this.show(values.slice(0, this.limit)));
		};
		field.addEventListener("input", ask);
		field.addEventListener("focus", ask);
	}
	protected abstract getSuggestions(query: string): T[] | Promise<T[]>;
	abstract renderSuggestion(value: T, el: HTMLElement): void;

	getValue(): string {
		return this.field instanceof HTMLInputElement ? this.field.value : (this.field.textContent ?? "");
	}
	setValue(value: string): void {
		if (this.field instanceof HTMLInputElement) this.field.value = value;
		else this.field.setText(value);
	}
	open(): void {
		document.body.append(this.box);
	}
	close(): void {
		this.box.remove();
	}
	selectSuggestion(value: T, evt: MouseEvent | KeyboardEvent): void {
		void this.chosen?.(value, evt);
	}
	onSelect(callback: (value: T, evt: MouseEvent | KeyboardEvent) => unknown): this {
		this.chosen = callback;
		return this;
	}
	private show(values: T[]): void {
		this.box.empty();
		for (const value of values) {
			const el = this.box.createDiv("suggestion-item");
			this.renderSuggestion(value, el);
			el.addEventListener("click", (event) => this.selectSuggestion(value, event));
		}
		if (values.length > 0) this.open();
		else this.close();
	}
}
