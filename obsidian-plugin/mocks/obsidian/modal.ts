import type * as Real from "obsidian";
import { ButtonComponent } from "./components";
import { Scope } from "./scope";

/** The modals that are open, the newest last: only that one gets the keys. */
const open: Modal[] = [];

function onKey(event: KeyboardEvent): void {
	open.at(-1)?.scope.handleKey(event);
}

/** Lives in the DOM while it is open, and closes when it is told to; the package's closes by itself. */
export class Modal implements Real.Modal {
	app: Real.App;
	scope = new Scope();
	containerEl = createDiv("modal-container mod-dim");
	modalEl: HTMLElement;
	titleEl: HTMLElement;
	contentEl: HTMLElement;
	shouldRestoreSelection = true;
	private closed: (() => unknown) | null = null;

	constructor(app: Real.App) {
		this.app = app;
		const background = this.containerEl.createDiv("modal-bg");
		this.modalEl = this.containerEl.createDiv({ cls: "modal", attr: { role: "dialog", "aria-modal": "true" } });
		const button = this.modalEl.createDiv({ cls: "modal-close-button", attr: { "aria-label": "Close" } });
		this.titleEl = this.modalEl.createDiv("modal-header").createDiv("modal-title");
		this.contentEl = this.modalEl.createDiv("modal-content");
		for (const el of [background, button]) el.addEventListener("click", () => this.close());
		this.scope.register([], "Escape", () => {
			this.close();
			return false;
		});
	}
	open(): void {
		if (open.includes(this)) return;
		if (open.length === 0) document.addEventListener("keydown", onKey);
		open.push(this);
		document.body.append(this.containerEl);
		void this.onOpen();
	}
	close(): void {
		const index = open.indexOf(this);
		if (index < 0) return;
		open.splice(index, 1);
		if (open.length === 0) document.removeEventListener("keydown", onKey);
		this.containerEl.remove();
		this.onClose();
		this.closed?.();
	}
	onOpen(): Promise<void> | void {}
	onClose(): void {}
	setTitle(title: string): this {
		this.titleEl.setText(title);
		return this;
	}
	setContent(content: string | DocumentFragment): this {
		this.contentEl.setText(content);
		return this;
	}
	setCloseCallback(callback: () => unknown): this {
		this.closed = callback;
		return this;
	}
}

/** Closes what a test left open, so that the next one starts without it. */
export function closeModals(): void {
	for (const modal of [...open]) modal.close();
}

/** A button of a question; the app makes them, a plugin only sets them up. */
export class ConfirmationButton extends ButtonComponent {
	constructor(
		containerEl: HTMLElement,
		private readonly modal: Modal,
	) {
		super(containerEl);
	}
	/** The question closes once the handler is done, unless that says something truthy. */
	override onClick(handler: (evt: MouseEvent) => unknown): this {
		this.buttonEl.addEventListener("click", (event) => {
			void Promise.resolve(handler(event)).then((stay) => {
				if (!stay) this.modal.close();
			});
		});
		return this;
	}
	setInitialFocus(): this {
		window.setTimeout(() => this.buttonEl.focus(), 0);
		return this;
	}
	setSecondary(): this {
		return this.setClass("mod-secondary");
	}
	setCancel(): this {
		return this.setClass("mod-cancel");
	}
}

export class ConfirmationModal extends Modal {
	buttonContainerEl = this.modalEl.createDiv("modal-button-container");

	addClass(cls: string): this {
		this.modalEl.addClass(cls);
		return this;
	}
	addCheckbox(label: string, changed: (value: boolean) => unknown): this {
		const el = this.buttonContainerEl.createEl("label", "mod-checkbox");
		const box = el.createEl("input", { type: "checkbox", attr: { tabindex: "-1" } });
		el.appendText(label);
		box.addEventListener("change", () => void changed(box.checked));
		return this;
	}
	addButton(run: (button: ConfirmationButton) => unknown): this {
		run(new ConfirmationButton(this.buttonContainerEl, this));
		return this;
	}
	addCancelButton(text = "Cancel"): this {
		return this.addButton((button) => button.setButtonText(text).setCancel().onClick(() => undefined));
	}
}

// What a plugin can see of them is what the app has; the constructor of the button is the app's own.
const _modal: typeof Real.Modal = Modal;
const _confirmation: new (app: Real.App) => Pick<Real.ConfirmationModal, "buttonContainerEl" | "addClass" | "addCheckbox" | "addCancelButton"> =
	ConfirmationModal;
const _button: new (el: HTMLElement, modal: Modal) => Pick<Real.ConfirmationButton, keyof Real.ConfirmationButton> = ConfirmationButton;
void [_modal, _confirmation, _button];
