import { ItemView, Notice, type HoverParent, type HoverPopover, type ViewStateResult, type WorkspaceLeaf } from "obsidian";
import type { ChatState } from "../chat/state";
import { en } from "../en";
import { Composer } from "./composer";
import { ConnectionPanel } from "./connection-panel";
import { iconButton, show, textButton } from "./dom";
import { Live } from "./live";
import { wireLinks } from "./markdown";
import type { MessageContext } from "./message-context";
import { MessageList } from "./message-list";
import type { OpenChat, Services } from "./services";

export const CHAT_VIEW = "tarsd-chat";
export const CHAT_ICON = "message-circle";

/** A pane with one conversation. It only shows what `Chats` holds, so that closing it loses nothing. */
export class ChatView extends ItemView implements HoverParent {
	override navigation = false;
	hoverPopover: HoverPopover | null = null;
	private conversation = "";
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
		const title = this.conversation === "" ? "" : this.services.chats.state(this.conversation).title;
		return title || en.chat.viewName;
	}

	/** The id of the conversation that is shown. */
	get shownConversation(): string {
		return this.conversation;
	}

	override getState(): Record<string, unknown> {
		return { ...super.getState(), conversation: this.conversation };
	}

	override async setState(state: unknown, result: ViewStateResult): Promise<void> {
		const given = typeof state === "object" && state !== null && "conversation" in state ? state.conversation : "";
		if (typeof given === "string" && given !== "") this.go(given);
		await super.setState(state, result);
	}

	override onOpen(): Promise<void> {
		const { chats } = this.services;
		if (this.conversation === "") this.conversation = chats.create();
		this.contentEl.addClass("tarsd-chat");
		this.parts = this.build();
		this.register(
			chats.onChange(({ conversation, state }) => {
				if (conversation === this.conversation) this.draw(state);
			}),
		);
		this.register(
			this.services.connection.onChange(() => {
				this.draw(chats.state(this.conversation));
			}),
		);
		this.draw(chats.state(this.conversation));
		void chats.load(this.conversation);
		return Promise.resolve();
	}

	override onClose(): Promise<void> {
		this.parts = null;
		this.contentEl.empty();
		return Promise.resolve();
	}

	override onResize(): void {
		this.parts?.composer.resized();
		this.parts?.list.resized();
	}

	/** Show a conversation, and put into the box what is to go there. */
	show(options: OpenChat): void {
		const { conversation, text, note, selection, focus = true } = options;
		if (conversation === "new") this.startNew();
		else if (conversation !== undefined) this.go(conversation);
		const composer = this.parts?.composer;
		if (!composer) return;
		const path = note ?? this.app.workspace.getActiveFile()?.path ?? "";
		const name = path.slice(path.lastIndexOf("/") + 1).replace(/\.md$/i, "");
		if (selection !== undefined) composer.attach({ kind: "selection", path, name, text: selection });
		else if (note !== undefined) composer.attach({ kind: "note", path, name });
		if (text !== undefined && text !== "") composer.add(text);
		if (focus) composer.focus();
	}

	/** Another conversation, of which nothing is known yet; an empty one is as good as new. */
	startNew(): void {
		const { chats } = this.services;
		if (chats.state(this.conversation).messages.length > 0 || chats.pending(this.conversation)) this.go(chats.create());
		this.parts?.composer.focus();
	}

	/** End the answer that is being given. */
	stop(): void {
		this.parts?.composer.stop();
	}

	private go(conversation: string): void {
		if (conversation === this.conversation) return;
		this.conversation = conversation;
		if (!this.parts) return;
		const { chats } = this.services;
		this.parts.composer.restore();
		this.draw(chats.state(conversation));
		void chats.load(conversation);
		this.app.workspace.requestSaveLayout();
	}

	private draw(state: ChatState): void {
		const { parts } = this;
		if (!parts) return;
		const { chats, connection } = this.services;
		const title = state.title || en.chat.untitled;
		if (parts.title.textContent !== title) parts.title.setText(title);
		parts.list.update(state);
		parts.composer.update();
		const empty = state.messages.length === 0;
		const pending = empty && chats.pending(this.conversation);
		const problem = pending ? chats.problem(this.conversation) : null;
		this.contentEl.toggleClass("is-empty", empty);
		const connected = connection.state.name === "connected";
		show(parts.welcome, empty && !pending && connected);
		show(parts.loading, pending && connected);
		parts.loadingText.setText(problem ? `${en.chat.notLoaded} ${problem.message}` : en.chat.loading);
		show(parts.reload, problem !== null);
	}

	private build(): Parts {
		const { services, contentEl } = this;
		contentEl.empty();
		const live = new Live(contentEl);
		const header = contentEl.createDiv("tarsd-header");
		const title = header.createEl("h2", { cls: "tarsd-title", attr: { dir: "auto" } });
		this.headerButtons(header);
		const body = contentEl.createDiv("tarsd-body");
		const context: MessageContext = {
			services,
			hoverParent: this,
			conversation: () => this.conversation,
			source: () => services.chats.state(this.conversation).note,
			grew: () => this.parts?.list.grew(),
			say: (words) => {
				live.say(words);
			},
			focusBox: () => this.parts?.composer.focus(),
			giveBack: (text) => this.parts?.composer.giveBack(text),
		};
		this.addChild(new ConnectionPanel(body, services, context.say));
		const welcome = body.createDiv("tarsd-welcome");
		welcome.createEl("h3", { text: en.chat.emptyTitle });
		welcome.createEl("p", { text: en.chat.emptyText });
		welcome.createEl("p", { cls: "tarsd-faint", text: en.chat.emptyHint });
		const loading = body.createDiv("tarsd-loading");
		const loadingText = loading.createDiv();
		const reload = textButton(loading, this, {
			text: en.chat.tryAgain,
			onClick: () => void services.chats.load(this.conversation),
		});
		const list = this.addChild(new MessageList(body, context));
		wireLinks(
			list.el,
			{
				app: this.app,
				view: CHAT_VIEW,
				hoverParent: this,
				sourceOf: (link) => list.sourceOf(link),
				source: () => context.source(),
				missing: () => new Notice(en.chat.noSuchNote),
			},
			this,
		);
		const composer = this.addChild(new Composer(contentEl, context));
		return { title, welcome, loading, loadingText, reload, list, composer };
	}

	private headerButtons(header: HTMLElement): void {
		const { services } = this;
		const row = header.createDiv({ cls: "tarsd-header-buttons" });
		const add = (icon: string, label: string, onClick: () => void): void => {
			iconButton(row, this, { icon, label, onClick });
		};
		add("square-pen", en.chat.newChat, () => {
			this.startNew();
		});
		add("history", en.chat.history, () => {
			services.openHistory();
		});
		add("maximize-2", en.chat.openInTab, () => void services.openChat({ conversation: this.conversation, place: "tab" }));
	}
}

interface Parts {
	readonly title: HTMLElement;
	readonly welcome: HTMLElement;
	readonly loading: HTMLElement;
	readonly loadingText: HTMLElement;
	readonly reload: HTMLElement;
	readonly list: MessageList;
	readonly composer: Composer;
}
