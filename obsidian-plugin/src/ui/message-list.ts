import { Component } from "obsidian";
import { ended, latest, type ChatState, type Message } from "../chat/state";
import { anchored, earlier, grown, hidden, opened, type Shown } from "../chat/window";
import { en } from "../en";
import type { Source } from "../protocol/events";
import { show, textButton } from "./dom";
import { MessageView } from "./message";
import type { MessageContext } from "./message-context";
import { Scroller } from "./scroller";

/** So many messages are drawn in one frame, so that none of them is long. */
const SLICE = 5;

/** The messages of a conversation, the last ones of them in the document, with "Show earlier" and "Jump to latest". */
export class MessageList extends Component {
	readonly el: HTMLElement;
	private readonly content: HTMLElement;
	private readonly earlierButton: HTMLButtonElement;
	private readonly jumpButton: HTMLButtonElement;
	private readonly list: HTMLElement;
	private readonly scroller: Scroller;
	private readonly views = new Map<string, MessageView>();
	private shown: Shown = opened(0);
	/** The first message that is in the document; those from `shown.from` on follow, a slice in each frame. */
	private drawnFrom = 0;
	private filling = 0;
	private busy = false;
	private state: ChatState | null = null;

	constructor(
		parent: HTMLElement,
		private readonly context: MessageContext,
	) {
		super();
		const frame = parent.createDiv("tarsd-list-frame");
		this.el = frame.createDiv({
			cls: "tarsd-list",
			attr: { role: "region", "aria-label": en.chat.messages, tabindex: "0" },
		});
		this.content = this.el.createDiv("tarsd-list-content");
		this.earlierButton = textButton(this.content, this, {
			text: "",
			cls: "tarsd-earlier",
			onClick: () => {
				this.showEarlier();
			},
		});
		show(this.earlierButton, false);
		this.list = this.content.createDiv("tarsd-turns");
		this.jumpButton = textButton(frame, this, {
			text: en.chat.jump,
			cls: "tarsd-jump",
			onClick: () => {
				this.scroller.jump();
				this.el.focus({ preventScroll: true });
			},
		});
		show(this.jumpButton, false);
		this.scroller = this.addChild(
			new Scroller(this.el, this.content, (below) => {
				show(this.jumpButton, below);
			}),
		);
	}

	override onload(): void {
		const { el } = this;
		this.register(
			el.onWindowMigrated(() => {
				// the frames of a window that is gone never come
				this.stopFilling();
				void this.fill();
			}),
		);
		this.register(() => {
			this.stopFilling();
		});
	}

	/** Draw this state; another conversation begins at its end. */
	update(state: ChatState): void {
		const before = this.state;
		if (before === state) return;
		const other = before?.conversation !== state.conversation;
		this.state = state;
		if (other) this.clear();
		const total = state.messages.length;
		this.shown = other ? opened(total) : grown(this.shown, total, this.scroller.following);
		this.drawnFrom = this.firstToDraw(state.messages, other);
		this.draw();
		void this.fill();
		// what the person asked is to be seen, wherever they were reading
		const asked = latest(state);
		const fresh = asked?.local === true && !ended(asked) && latest(before ?? state)?.id !== asked.id;
		if (other || fresh) this.scroller.jump();
		else this.scroller.grew();
	}

	/** Something in a message changed its height. */
	grew(): void {
		this.scroller.grew();
	}

	/** The list may have been hidden, or have another size. */
	resized(): void {
		this.scroller.now();
	}

	/** The source that a link in the list stands for. */
	sourceOf(link: HTMLElement): Source | undefined {
		const n = Number(link.dataset["tarsdSource"] ?? "");
		const turn = link.closest<HTMLElement>(".tarsd-turn")?.dataset["turn"] ?? "";
		return n > 0 ? this.views.get(turn)?.sourceOf(n) : undefined;
	}

	/** Where to begin in this frame: at what is drawn already, unless so much has come that it would take too long. */
	private firstToDraw(messages: readonly Message[], other: boolean): number {
		let from = other ? this.shown.from : Math.max(this.shown.from, Math.min(this.drawnFrom, messages.length));
		if (!other && !this.scroller.following) return from;
		for (let at = messages.length - 1, fresh = 0; at >= from; at--) {
			if (!this.views.has(messages[at]?.id ?? "") && ++fresh > SLICE) from = at + 1;
		}
		return from;
	}

	private stopFilling(): void {
		this.filling++;
		this.busy = false;
	}

	/**
	 * Draw what is still missing above, the nearest first. A slice is made outside of the document and put there when it
	 * has its height, so that what the reader looks at stays in its place.
	 */
	private async fill(): Promise<void> {
		if (this.busy) return;
		this.busy = true;
		const filling = ++this.filling;
		while (this.drawnFrom > this.shown.from) {
			await this.frame();
			if (filling !== this.filling) return;
			const to = this.drawnFrom;
			const from = Math.max(this.shown.from, to - SLICE);
			const messages = this.state?.messages.slice(from, to) ?? [];
			const made = messages.map((message, index) => this.addChild(new MessageView(message, from + index + 1, this.context)));
			await Promise.all(made.map((view) => view.settled()));
			await this.frame();
			const stale = filling !== this.filling || to !== this.drawnFrom || from < this.shown.from;
			if (stale || messages.some(({ id }, index) => this.state?.messages[from + index]?.id !== id)) {
				for (const view of made) this.removeChild(view);
				if (filling !== this.filling) return;
				continue;
			}
			messages.forEach((message, index) => {
				const view = made[index];
				if (view) this.views.set(message.id, view);
			});
			this.drawnFrom = from;
			this.above(() => {
				this.draw();
			});
		}
		this.busy = false;
	}

	private frame(): Promise<unknown> {
		return new Promise((resolve) => this.el.win.requestAnimationFrame(resolve));
	}

	private clear(): void {
		this.stopFilling();
		for (const view of this.views.values()) {
			view.el.remove();
			this.removeChild(view);
		}
		this.views.clear();
	}

	private draw(): void {
		const messages = this.state?.messages ?? [];
		const visible = messages.slice(this.drawnFrom);
		this.adopt(visible.map((message) => message.id));
		let at: Element | null = this.list.firstElementChild;
		visible.forEach((message, index) => {
			let view = this.views.get(message.id);
			if (view) {
				view.update(message);
			} else {
				view = this.addChild(new MessageView(message, this.drawnFrom + index + 1, this.context));
				this.views.set(message.id, view);
			}
			if (view.el === at) at = at.nextElementSibling;
			else this.list.insertBefore(view.el, at);
		});
		const count = hidden(this.shown);
		show(this.earlierButton, count > 0);
		this.earlierButton.setText(en.chat.showEarlier(count));
	}

	/** Views of what is not shown any more go; the one of a question that just got its turn's name keeps its place. */
	private adopt(ids: readonly string[]): void {
		const gone = [...this.views.keys()].filter((id) => !ids.includes(id));
		const come = ids.filter((id) => !this.views.has(id));
		const [old, fresh] = [gone[0], come[0]];
		const view = old === undefined ? undefined : this.views.get(old);
		if (old !== undefined && fresh !== undefined && view && gone.length === 1 && come.length === 1 && view.waitsForName()) {
			this.views.delete(old);
			this.views.set(fresh, view);
			return;
		}
		for (const id of gone) {
			const one = this.views.get(id);
			if (!one) continue;
			one.el.remove();
			this.removeChild(one);
			this.views.delete(id);
		}
	}

	/** Change what is above the first message that is drawn, which stays where it is. */
	private above(change: () => void): void {
		this.scroller.keep(this.list.querySelector<HTMLElement>(":scope > .tarsd-turn"), change, anchored);
	}

	private showEarlier(): void {
		this.shown = earlier(this.shown);
		this.above(() => {
			this.draw();
		});
		void this.fill();
		// the button may be gone now, and the focus with it
		if (hidden(this.shown) === 0) this.el.focus({ preventScroll: true });
	}
}
