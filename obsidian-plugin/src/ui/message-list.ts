import { Component } from "obsidian";
import { ended, latest, type ChatState } from "../chat/state";
import { anchored, earlier, grown, hidden, opened, type Shown } from "../chat/window";
import { en } from "../en";
import type { Source } from "../protocol/events";
import { show, textButton } from "./dom";
import { MessageView } from "./message";
import type { MessageContext } from "./message-context";
import { Scroller } from "./scroller";

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

	/** Draw this state; another conversation begins at its end. */
	update(state: ChatState): void {
		const before = this.state;
		if (before === state) return;
		const other = before?.conversation !== state.conversation;
		this.state = state;
		if (other) this.clear();
		const total = state.messages.length;
		this.shown = other ? opened(total) : grown(this.shown, total, this.scroller.following);
		this.draw();
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

	private clear(): void {
		for (const view of this.views.values()) {
			view.el.remove();
			this.removeChild(view);
		}
		this.views.clear();
	}

	private draw(): void {
		const messages = this.state?.messages ?? [];
		const visible = messages.slice(this.shown.from);
		this.adopt(visible.map((message) => message.id));
		let at: Element | null = this.list.firstElementChild;
		visible.forEach((message, index) => {
			let view = this.views.get(message.id);
			if (view) {
				view.update(message);
			} else {
				view = this.addChild(new MessageView(message, this.shown.from + index + 1, this.context));
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

	private showEarlier(): void {
		const anchor = this.list.querySelector<HTMLElement>(":scope > .tarsd-turn");
		this.scroller.keep(
			anchor,
			() => {
				this.shown = earlier(this.shown);
				this.draw();
			},
			anchored,
		);
		// the button may be gone now, and the focus with it
		if (hidden(this.shown) === 0) this.el.focus({ preventScroll: true });
	}
}
