import type { Message, WriteView } from "../chat/state";
import { en } from "../en";
import { told } from "./asking";
import { add, addButton, addHidden, hasFocus, show } from "./dom";
import { faultText } from "./errors";
import type { MessageContext } from "./message-context";

const words = en.writes;

/**
 * The notes that an answer changed, each with a way back; the conversation's own note is not one of them. Returns what
 * is to be called with every state of the message.
 */
export function writeList(parent: HTMLElement, context: MessageContext): (message: Message) => void {
	const el = addHidden(parent, "div", "tarsd-writes", { role: "group", "aria-label": words.list });
	let drawn: readonly WriteView[] = [];
	return ({ id, writes }) => {
		if (writes === drawn) return;
		drawn = writes;
		const { chats } = context.services;
		const listed = writes.filter(({ kind }) => kind !== "session");
		const focused = hasFocus(el);
		el.empty();
		show(el, listed.length > 0);
		const list = add(el, "ul", "tarsd-write-list");
		for (const write of listed) {
			const { state, error, path } = write;
			const row = add(list, "li", `tarsd-write is-${state}`);
			const text = add(row, "div", "tarsd-write-text");
			add(text, "span", "", textOf(write));
			if (error) add(text, "div", "tarsd-faint", faultText(error));
			if (state !== "written") continue;
			const undo = (): Promise<void> => chats.undo(context.conversation(), id, write.id);
			addButton(row, words.undo, () => void told(undo), "", { "aria-label": words.undoOf(path) });
		}
		const open = listed.filter(({ state }) => state === "written").length;
		if (open > 1) addButton(el, words.undoAll(open), () => void told(() => chats.undoAll(context.conversation(), id)));
		if (focused) context.focusBox();
	};
}

function textOf({ state, op, path }: WriteView): string {
	switch (state) {
		case "asked":
			return words.writing(path);
		case "failed":
			return words.failed(path);
		case "undone":
			return words.undone(path);
		case "written":
			return op === "create" ? words.created(path) : op === "append" ? words.appended(path) : words.modified(path);
	}
}
