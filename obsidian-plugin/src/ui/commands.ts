import { Notice, Platform, type Command, type TFile } from "obsidian";
import { ended } from "../chat/state";
import { en } from "../en";
import { clientOf, told } from "./asking";
import { remember, showMemory, undoMemory } from "./memory-modal";
import { RELATED_VIEW } from "./related-view";
import { ReviewModal } from "./review-modal";
import { SearchModal } from "./search-modal";
import type { Services } from "./services";

const words = en.commands;

/** The commands, without hotkeys: those are the person's to give. */
export function commands(services: Services): Command[] {
	const { app, chats } = services;
	const running = new Set<string>();
	let last: string | undefined;
	chats.onChange(({ conversation, state }) => {
		if (state.messages.some(ended)) last = conversation;
		if (state.messages.every(ended)) running.delete(conversation);
		else running.add(conversation);
	});
	const plain = (id: string, name: string, icon: string, act: () => unknown): Command => ({ id, name, icon, callback: () => void act() });
	/** Only offered while there is what it is about. */
	const about = (id: string, name: string, icon: string, find: () => string | undefined, act: (found: string) => unknown): Command => ({
		id,
		name,
		icon,
		checkCallback: (checking) => {
			const found = find();
			if (found !== undefined && !checking) void act(found);
			return found !== undefined;
		},
	});
	/** Only offered while there is marked text. */
	const marked = (id: string, name: string, icon: string, act: (text: string, note: TFile | null) => unknown): Command => ({
		id,
		name,
		icon,
		editorCheckCallback: (checking, editor, { file }) => {
			const text = editor.getSelection();
			const found = text.trim() !== "";
			if (found && !checking) void act(text, file);
			return found;
		},
	});
	const note = (): string | undefined => {
		const file = app.workspace.getActiveFile();
		return file?.extension === "md" ? file.path : undefined;
	};
	return [
		plain("open", words.open, "message-circle", () => services.openChat()),
		plain("new-chat", words.newChat, "message-circle-plus", () => services.openChat({ conversation: "new" })),
		plain("new-chat-tab", words.newTab, "panel-top", () => services.openChat({ conversation: "new", place: "tab" })),
		// only the desktop has windows
		about("new-chat-window", words.newWindow, "picture-in-picture-2", () => (Platform.isDesktop ? "new" : undefined), (conversation) =>
			services.openChat({ conversation, place: "window" }),
		),
		about("ask-note", words.askNote, "file-question", note, (path) => services.openChat({ note: path })),
		marked("ask-selection", words.askSelection, "text-select", (selection, file) =>
			services.openChat({ selection, ...(file ? { note: file.path } : {}) }),
		),
		// the one that was asked last, wherever it is shown
		about("stop", words.stop, "square", () => [...running].pop(), (conversation) => told(() => chats.stop(conversation))),
		// the one that was answered or opened last
		about("save", words.save, "save", () => last, (conversation) =>
			told(async () => {
				new Notice(words.saved(await clientOf(services).save(conversation)));
			}),
		),
		plain("history", words.history, "history", () => {
			services.openHistory();
		}),
		plain("search", words.search, "search", () => {
			new SearchModal(services).open();
		}),
		plain("related", words.related, "waypoints", () => app.workspace.ensureSideLeaf(RELATED_VIEW, "right", { active: true, reveal: true })),
		marked("remember", words.remember, "brain", (text) => remember(services, text)),
		marked("remember-rule", words.rememberRule, "brain-cog", (text) => remember(services, text, "procedural")),
		plain("memory", words.memory, "book-heart", () => showMemory(services)),
		plain("undo-memory", words.undoMemory, "undo-2", () => undoMemory(services)),
		plain("review", words.review, "list-checks", () => {
			new ReviewModal(services).open();
		}),
		plain("connection", words.connection, "plug", () => {
			services.openConnection();
		}),
		plain("reconnect", words.reconnect, "refresh-cw", () => {
			services.connection.retry();
		}),
	];
}
