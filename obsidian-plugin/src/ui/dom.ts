import { setIcon, type Component } from "obsidian";

/** A button that shows a picture and has a name. */
export function iconButton(
	parent: HTMLElement,
	component: Component,
	button: { icon: string; label: string; cls?: string; onClick: (event: MouseEvent) => void },
): HTMLButtonElement {
	const el = parent.createEl("button", {
		cls: ["clickable-icon", "tarsd-icon-button", ...(button.cls ? [button.cls] : [])],
		attr: { type: "button", "aria-label": button.label },
	});
	setIcon(el, button.icon);
	el.querySelector("svg")?.setAttribute("aria-hidden", "true");
	component.registerDomEvent(el, "click", button.onClick);
	return el;
}

/** A button with words on it. */
export function textButton(
	parent: HTMLElement,
	component: Component,
	button: { text: string; label?: string; cls?: string; onClick: (event: MouseEvent) => void },
): HTMLButtonElement {
	const el = parent.createEl("button", {
		cls: ["tarsd-button", ...(button.cls ? [button.cls] : [])],
		text: button.text,
		attr: { type: "button", ...(button.label ? { "aria-label": button.label } : {}) },
	});
	component.registerDomEvent(el, "click", button.onClick);
	return el;
}

/** Put text on the clipboard of the window that the element is in; false when the system does not let us. */
export async function copyText(el: HTMLElement, text: string): Promise<boolean> {
	try {
		await el.win.navigator.clipboard.writeText(text);
		return true;
	} catch {
		return false;
	}
}

let ids = 0;

/** An id that no other element has, to name it from another one. */
export function uniqueId(what: string): string {
	return `tarsd-${what}-${++ids}`;
}

/** Show or hide, for the eye and for assistive technology. */
export function show(el: HTMLElement, shown: boolean): void {
	el.hidden = !shown;
}
