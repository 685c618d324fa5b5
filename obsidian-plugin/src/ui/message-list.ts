import type { Component } from "obsidian";
import { ended, latest, type ChatState, type Message } from "../chat/state";
import { earlier, grown, hidden, opened, type Shown } from "../chat/window";
import { en } from "../en";
import type { Source } from "../protocol/events";
import { add, addButton, show } from "./dom";
import { messageView, type MessageView } from "./message";
import type { MessageContext } from "./message-context";
import { scroller } from "./scroller";

/** So many messages are drawn in one frame, so that none of them is long. */
const SLICE = 5;

export interface MessageList {
	readonly el: HTMLElement;
	/** Draw this state; another conversation begins at its end. */
	readonly update: (state: ChatState) => void;
	/** Something in a message changed its height. */
	readonly grew: () => void;
	/** The list may have been hidden, or have another size. */
	readonly resized: () => void;
	/** The source that a link in the list stands for. */
	readonly sourceOf: (link: HTMLElement) => Source | undefined;
}

/** The messages of a conversation, the last ones of them in the document, with "Show earlier" and "Jump to latest". */
export function messageList(parent: HTMLElement, about: MessageContext, owner: Component): MessageList {
	const frame = add(parent, "div", "tarsd-list-frame");
	const el = add(frame, "div", "tarsd-list", "", { role: "region", "aria-label": en.chat.messages, tabindex: 0 });
	const content = add(el, "div", "tarsd-list-content");
	const earlierButton = addButton(content, "", showEarlier, "tarsd-earlier");
	const list = add(content, "div", "tarsd-turns");
	const jump = (): void => {
		scroll.jump();
		focus();
	};
	const jumpButton = addButton(frame, en.chat.jump, jump, "tarsd-jump");
	show(jumpButton, false);
	const scroll = scroller(el, content, owner, (below) => {
		show(jumpButton, below);
	});
	const views = new Map<string, MessageView>();
	let state: ChatState | null = null;
	let shown: Shown = opened(0);
	/** The first message that is in the document; those from `shown.from` on follow, a slice in each frame. */
	let drawnFrom = 0;
	/** The number of the filling that goes on; another number ends it. */
	let filling = 0;
	let busy = false;

	const messages = (): readonly Message[] => state?.messages ?? [];

	function focus(): void {
		el.focus({ preventScroll: true });
	}

	function update(next: ChatState): void {
		const before = state;
		if (before === next) return;
		const other = before?.conversation !== next.conversation;
		state = next;
		if (other) {
			stopFilling();
			views.forEach(drop);
		}
		const total = messages().length;
		shown = other ? opened(total) : grown(shown, total, scroll.following());
		drawnFrom = firstToDraw(other);
		draw();
		void fill();
		// what the person asked is to be seen, wherever they were reading
		const asked = latest(next);
		const fresh = asked?.local === true && !ended(asked) && latest(before ?? next)?.id !== asked.id;
		if (other || fresh) scroll.jump();
		else scroll.grew();
	}

	/** Where to begin in this frame: at what is drawn already, unless so much has come that it would take too long. */
	function firstToDraw(other: boolean): number {
		const all = messages();
		let from = other ? shown.from : Math.max(shown.from, Math.min(drawnFrom, all.length));
		if (!other && !scroll.following()) return from;
		for (let at = all.length - 1, fresh = 0; at >= from; at--) {
			if (!views.has(all[at]?.id ?? "") && ++fresh > SLICE) from = at + 1;
		}
		return from;
	}

	function draw(): void {
		const visible = messages().slice(drawnFrom);
		const ids = new Set(visible.map(({ id }) => id));
		const gone = new Map([...views].filter(([id]) => !ids.has(id)));
		for (const message of visible) if (!views.has(message.id)) adopt(message, gone);
		// before the others find their places: what stays is not moved
		gone.forEach(drop);
		let at = list.firstElementChild;
		visible.forEach((message, index) => {
			const view = views.get(message.id) ?? messageView(message, drawnFrom + index + 1, about, owner);
			views.set(message.id, view);
			view.update(message);
			if (view.el === at) at = at.nextElementSibling;
			else list.insertBefore(view.el, at);
		});
		const count = hidden(shown);
		show(earlierButton, count > 0);
		earlierButton.setText(en.chat.showEarlier(count));
	}

	/** A question that just got its turn's name keeps its view. */
	function adopt({ id, question }: Message, gone: Map<string, MessageView>): void {
		for (const [old, view] of gone) {
			const own = view.message();
			if (!own.local || ended(own) || own.question !== question) continue;
			gone.delete(old);
			views.delete(old);
			views.set(id, view);
			return;
		}
	}

	function drop(view: MessageView, id: string): void {
		view.remove();
		views.delete(id);
	}

	function stopFilling(): void {
		filling++;
		busy = false;
	}

	/**
	 * Draw what is still missing above, the nearest first. A slice is made outside of the document and put there when it
	 * has its height, so that what the reader looks at stays in its place.
	 */
	async function fill(): Promise<void> {
		if (busy) return;
		busy = true;
		const own = ++filling;
		while (drawnFrom > shown.from) {
			await nextFrame();
			if (own !== filling) return;
			const to = drawnFrom;
			const from = Math.max(shown.from, to - SLICE);
			const slice = messages().slice(from, to);
			const made = slice.map((message, index) => messageView(message, from + index + 1, about, owner));
			await Promise.all(made.map((view) => view.settled()));
			await nextFrame();
			const valid = to === drawnFrom && from >= shown.from && slice.every(({ id }, index) => messages()[from + index]?.id === id);
			if (own === filling && valid) {
				slice.forEach(({ id }, index) => made[index] && views.set(id, made[index]));
				drawnFrom = from;
				above();
			} else {
				for (const view of made) view.remove();
				if (own !== filling) return;
			}
		}
		busy = false;
	}

	function nextFrame(): Promise<unknown> {
		return new Promise((resolve) => el.win.requestAnimationFrame(resolve));
	}

	/** Draw what comes above the first message that is drawn, which stays where it is. */
	function above(): void {
		scroll.keep(list.firstElementChild, draw);
	}

	function showEarlier(): void {
		shown = earlier(shown);
		above();
		void fill();
		// the button may be gone now, and the focus with it
		if (hidden(shown) === 0) focus();
	}

	owner.register(stopFilling);
	owner.register(
		el.onWindowMigrated(() => {
			// the frames of a window that is gone never come
			stopFilling();
			void fill();
		}),
	);
	return {
		el,
		update,
		grew: scroll.grew,
		resized: scroll.now,
		sourceOf: (link) => {
			const n = Number(link.dataset["tarsdSource"] ?? "");
			const turn = link.closest<HTMLElement>(".tarsd-turn")?.dataset["turn"];
			const message = messages().find(({ id }) => id === turn);
			return message && [...message.sources, ...message.citations, ...message.closest].find((source) => source.n === n);
		},
	};
}
