import { citationOf } from "../chat/citations";
import { ended, type Message } from "../chat/state";
import { en } from "../en";
import type { Source } from "../protocol/events";
import { add, addFold, show, UNSPOKEN } from "./dom";

/**
 * The passages under an answer, folded: those that it cites, those that were found, or the nearest when none fitted.
 * Returns what is to be called with every state of the message.
 */
export function sourceList(parent: HTMLElement, open: boolean): (message: Message) => void {
	const { el, summary } = addFold(parent, "tarsd-sources");
	const list = add(el, "ol", "tarsd-source-list", "", { role: "list" });
	let shown: readonly Source[] | null = null;
	el.open = open;
	return (message) => {
		const near = message.sources.length === 0 && message.citations.length === 0;
		const sources = near ? message.closest : message.citations.length > 0 || ended(message) ? message.citations : message.sources;
		if (sources === shown) return;
		shown = sources;
		show(el, sources.length > 0);
		const count = en.chat.sources(sources.length);
		summary.setText(near ? `${en.chat.closest}: ${count}` : count);
		list.empty();
		for (const source of sources) addSource(list, source);
	};
}

function addSource(list: HTMLElement, source: Source): void {
	const { n, title, heading, collection, start_line, end_line, attached } = source;
	const row = add(list, "li", "tarsd-source");
	add(row, "span", "tarsd-source-number", String(n), UNSPOKEN);
	const text = add(row, "div", "tarsd-source-text");
	const citation = citationOf(n, [source]);
	if (citation.kind === "here") addLink(text, title, citation.target, { "data-tarsd-source": n });
	else add(text, "span", "", en.chat.elsewhere(title, collection));
	const about = [heading, start_line > 0 ? en.chat.lines(start_line, Math.max(start_line, end_line)) : "", attached ? en.chat.attached : ""];
	add(text, "div", "tarsd-faint", about.filter(Boolean).join(" · "));
}

/** A link to a note of this vault; the list that it is in makes it work. */
export function addLink(parent: HTMLElement, text: string, target: string, attr: Record<string, string | number> = {}): void {
	add(parent, "a", "internal-link", text, { href: target, "data-href": target, ...attr });
}
