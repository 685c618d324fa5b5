import { ItemView, Notice, Platform, type HoverParent, type HoverPopover, type ViewStateResult, type WorkspaceLeaf } from "obsidian";
import { nameOf } from "../chat/context";
import { en } from "../en";
import { CHAT_VIEW } from "./chat-types";
import { makeComposer, type Composer } from "./composer";
import { connectionPanel } from "./connection-panel";
import { add, addButton, addIconButton, AUTO, show } from "./dom";
import { live } from "./live";
import { NotConnected, sentence } from "./errors";
import { TASK, wireLinks } from "./markdown";
import type { MessageContext } from "./message-context";
import { messageList, type MessageList } from "./message-list";
import type { OpenChat, Services } from "./services";

export { CHAT_VIEW } from "./chat-types";
export const CHAT_ICON = "message-circle";

/** A pane with one conversation. It only shows what `Chats` holds, so that closing it loses nothing. */
export class ChatView extends ItemView implements HoverParent {
	override navigation = false;
	hoverPopover: HoverPopover | null = null;
	/** The id of the conversation that is shown; `show` changes it. */
	shownConversation = "";
	private parts: Parts | null = null;

	constructor(
		leaf: WorkspaceLeaf,
		private readonly services: Services,
	) {
		super(leaf);
		this.icon = CHAT_ICON;
	}

	getViewType(): string {
		return CHAT_VIEW;
	}

	getDisplayText(): string {
		return (this.shownConversation && this.services.chats.state(this.shownConversation).title) || en.chat.viewName;
	}

	override getState(): Record<string, unknown> {
		return { ...super.getState(), conversation: this.shownConversation };
	}

	override async setState(state: { conversation?: unknown } | null, result: ViewStateResult): Promise<void> {
		const given = state?.conversation;
		if (typeof given === "string" && given !== "") this.go(given);
		await super.setState(state, result);
	}

	override async onOpen(): Promise<void> {
		const { chats, connection } = this.services;
		this.shownConversation ||= chats.create();
		const parts = this.build();
		this.parts = parts;
		this.register(
			chats.onChange(({ conversation }) => {
				if (conversation === this.shownConversation) parts.draw();
			}),
		);
		this.register(connection.onChange(parts.draw));
		parts.draw();
		await chats.load(this.shownConversation);
	}

	override async onClose(): Promise<void> {
		this.parts = null;
		this.contentEl.empty();
	}

	override onResize(): void {
		this.parts?.list.resized();
	}

	/** Show a conversation, and put into the box what is to go there. */
	show({ conversation, text, note, selection, focus = true }: OpenChat): void {
		if (conversation === "new") this.startNew();
		else if (conversation !== undefined) this.go(conversation);
		const composer = this.parts?.composer;
		if (!composer) return;
		const path = note ?? this.app.workspace.getActiveFile()?.path ?? "";
		const name = nameOf(path);
		if (selection) composer.attach({ kind: "selection", path, name, text: selection });
		else if (note) composer.attach({ kind: "note", path, name });
		if (text) composer.append(text);
		if (focus) composer.focus();
	}

	/** Another conversation, of which nothing is known yet; an empty one is as good as new. */
	startNew(): void {
		const { chats } = this.services;
		if (chats.state(this.shownConversation).messages.length > 0 || chats.pending(this.shownConversation)) this.go(chats.create());
		this.parts?.composer.focus();
	}

	/** End the answer that is being given. */
	stop(): void {
		this.parts?.composer.stop();
	}

	private go(conversation: string): void {
		if (conversation === this.shownConversation) return;
		this.shownConversation = conversation;
		if (!this.parts) return;
		this.parts.composer.restore();
		this.parts.draw();
		void this.services.chats.load(conversation);
		this.app.workspace.requestSaveLayout();
	}

	private build(): Parts {
		const { services, contentEl } = this;
		const { chats, connection } = services;
		contentEl.empty();
		contentEl.addClass("tarsd-chat");
		const say = live(contentEl);
		const header = add(contentEl, "div", "tarsd-header");
		const title = add(header, "h2", "tarsd-title", "", AUTO);
		const buttons = add(header, "div", "tarsd-header-buttons");
		addIconButton(buttons, "square-pen", en.chat.newChat, () => {
			this.startNew();
		});
		addIconButton(buttons, "history", en.chat.history, () => {
			services.openHistory();
		});
		addIconButton(buttons, "maximize-2", en.chat.openInTab, () => services.openChat({ conversation: this.shownConversation, place: "tab" }));
		if (Platform.isDesktop) {
			addIconButton(buttons, "picture-in-picture-2", en.chat.openInWindow, () => services.openChat({ conversation: this.shownConversation, place: "window" }));
		}

		const body = add(contentEl, "div", "tarsd-body");
		const about: MessageContext = {
			services,
			hoverParent: this,
			conversation: () => this.shownConversation,
			source: () => chats.state(this.shownConversation).note,
			grew: () => {
				list.grew();
			},
			say,
			focusBox: () => {
				composer.focus();
			},
			giveBack: (text) => {
				composer.giveBack(text);
			},
			complete: ({ path, start_line }) => {
				if (!connection.client) new Notice(sentence(new NotConnected(connection)));
				else void chats.send(this.shownConversation, { message: `/tasks done ${path}:${start_line}` });
				// the box that was clicked is disabled now
				list.el.focus({ preventScroll: true });
			},
			busy: () => chats.running(this.shownConversation) !== undefined,
		};
		this.register(connectionPanel(body, services, say));
		const welcome = add(body, "div", "tarsd-welcome");
		add(welcome, "h3", "", en.chat.emptyTitle);
		add(welcome, "p", "", en.chat.emptyText);
		add(welcome, "p", "tarsd-faint", en.chat.emptyHint);
		const loading = add(body, "div", "tarsd-welcome");
		const loadingText = add(loading, "div", "");
		const reload = addButton(loading, en.chat.tryAgain, () => chats.load(this.shownConversation));
		const list = messageList(body, about, this);
		wireLinks(list.el, about, list.sourceOf, () => new Notice(en.chat.noSuchNote));
		const composer = makeComposer(contentEl, about, this);

		const draw = (): void => {
			const state = chats.state(this.shownConversation);
			const words = state.title || en.chat.untitled;
			// this is called with every word of an answer, and new text is laid out anew
			if (title.textContent !== words) title.setText(words);
			list.update(state);
			composer.update();
			for (const box of list.el.findAll(TASK)) (box as HTMLInputElement).disabled = about.busy();
			const empty = state.messages.length === 0;
			const pending = chats.pending(this.shownConversation);
			const problem = chats.problem(this.shownConversation);
			const connected = connection.state.name === "connected";
			contentEl.toggleClass("is-empty", empty);
			show(welcome, empty && connected && !pending);
			show(loading, empty && connected && pending);
			if (pending) loadingText.setText(problem ? `${en.chat.notLoaded} ${problem.message}` : en.chat.loading);
			show(reload, problem !== null);
		};
		return { list, composer, draw };
	}
}

interface Parts {
	readonly list: MessageList;
	readonly composer: Composer;
	/** Show how the conversation is now. */
	readonly draw: () => void;
}
