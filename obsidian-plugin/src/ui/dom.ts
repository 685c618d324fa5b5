import { setIcon } from "obsidian";
import { en } from "../en";

type Attributes = Readonly<Record<string, string | number>>;

/** For text that somebody wrote: it begins on the side that its first letter says. */
export const AUTO: Attributes = { dir: "auto" };

/** For what is only for the eye. */
export const UNSPOKEN: Attributes = { "aria-hidden": "true" };

/** A new element at the end of `parent`, with its classes, its text and its attributes. */
export function add<K extends keyof HTMLElementTagNameMap>(
	parent: HTMLElement,
	tag: K,
	cls: string,
	text = "",
	attr: Attributes = {},
): HTMLElementTagNameMap[K] {
	return parent.createEl(tag, { cls, text, attr });
}

/** As `add`, for a part of the page that has nothing in it yet, and is not shown until it has. */
export function addHidden<K extends keyof HTMLElementTagNameMap>(parent: HTMLElement, tag: K, cls: string, attr: Attributes = {}): HTMLElementTagNameMap[K] {
	const el = add(parent, tag, cls, "", attr);
	el.hidden = true;
	return el;
}

/** Something folded, with the line that unfolds it. */
export function addFold(parent: HTMLElement, cls: string, text = ""): { el: HTMLDetailsElement; summary: HTMLElement } {
	const el = add(parent, "details", cls);
	return { el, summary: add(el, "summary", "", text) };
}

/** A picture that says nothing that is not said in words beside it. */
export function addIcon(parent: HTMLElement, cls: string, icon: string): void {
	setIcon(add(parent, "span", cls, "", UNSPOKEN), icon);
}

/** A button with words on it. What it does ends with the button, so no component has to know of it. */
export function addButton(parent: HTMLElement, text: string, onClick: () => unknown, cls = "", attr: Attributes = {}): HTMLButtonElement {
	const el = add(parent, "button", cls, text, attr);
	el.onclick = onClick;
	return el;
}

/** A button that shows a picture and has a name. */
export function addIconButton(parent: HTMLElement, icon: string, label: string, onClick: () => unknown, cls = ""): HTMLButtonElement {
	const el = addButton(parent, "", onClick, `clickable-icon tarsd-icon-button ${cls}`, { "aria-label": label });
	setIcon(el, icon);
	el.firstElementChild?.setAttribute("aria-hidden", "true");
	return el;
}

/** The element of this kind that something happened in. */
export function within(event: Event, selector: string): HTMLElement | null {
	return (event.target as Element).closest<HTMLElement>(selector);
}

/** Whether what the person does with the keyboard happens in here. */
export function hasFocus(el: HTMLElement): boolean {
	return el.contains(el.doc.activeElement);
}

/** Put text on the clipboard of the window that the element is in; resolves with what is to be said of it. */
export function copyText(el: HTMLElement, text: string): Promise<string> {
	return el.win.navigator.clipboard.writeText(text).then(
		() => en.chat.copied,
		() => en.chat.copyFailed,
	);
}

let ids = 0;

/** An id that no other element has, to name it from another one. */
export function uniqueId(): string {
	return `tarsd-${++ids}`;
}

/** Show or hide, for the eye and for assistive technology. */
export function show(el: HTMLElement, shown: boolean): void {
	el.hidden = !shown;
}
