import type * as Real from "obsidian";

/** A message in the corner: in the DOM, gone after its time, after a click, or when it is told. */
export class Notice implements Real.Notice {
	containerEl: HTMLElement;
	messageEl: HTMLElement;
	/** Its old name, which the app still has. */
	readonly noticeEl: HTMLElement = createDiv();

	constructor(message: string | DocumentFragment, duration = 5000) {
		const corner = document.body.querySelector<HTMLElement>(".notice-container") ?? document.body.createDiv("notice-container");
		this.containerEl = corner.createDiv("notice");
		this.messageEl = this.containerEl.createDiv("notice-message");
		this.setMessage(message);
		this.containerEl.addEventListener("click", () => this.hide());
		if (duration > 0) window.setTimeout(() => this.hide(), duration);
	}
	setMessage(message: string | DocumentFragment): this {
		this.messageEl.setText(message);
		return this;
	}
	hide(): void {
		this.containerEl.remove();
	}
}
