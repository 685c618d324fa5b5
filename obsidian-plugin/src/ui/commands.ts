import type { Command } from "obsidian";
import { ended } from "../chat/state";
import { told } from "./asking";
import { HistoryModal } from "./history-modal";
import { remember, showMemory, undoMemory } from "./memory-modal";
import { RELATED_VIEW } from "./related-view";
import { ReviewModal } from "./review-modal";
import { SearchModal } from "./search-modal";
import type { Services } from "./services";

/** The commands, without hotkeys: those are the person's to give. */
export function commands(services: Services): Command[] {
	const { app, chats, connection, t } = services;
	const words = t.commands;
	const running = new Set<string>();
	chats.onChange(({ conversation, state }) => {
		if (state.messages.every(ended)) running.delete(conversation);
		else running.add(conversation);
	});
	const plain = (id: string, name: string, icon: string, callback: () => unknown): Command => ({
		id,
		name,
		icon,
		callback: () => void callback(),
	});
	/** Only offered while there is marked text. */
	const marked = (id: string, name: string, icon: string, act: (text: string, path: string) => unknown): Command => ({
		id,
		name,
		icon,
		editorCheckCallback: (checking, editor, { file }) => {
			const text = editor.getSelection();
			if (text.trim() === "") return false;
			if (!checking) void act(text, file?.path ?? "");
			return true;
		},
	});
	return [
		plain("open", words.open, "message-circle", () => services.openChat()),
		plain("new-chat", words.newChat, "message-circle-plus", () => services.openChat({ conversation: "new" })),
		plain("new-chat-tab", words.newTab, "panel-top", () => services.openChat({ conversation: "new", place: "tab" })),
		{
			id: "ask-note",
			name: words.askNote,
			icon: "file-question",
			checkCallback: (checking) => {
				const file = app.workspace.getActiveFile();
				if (file?.extension !== "md") return false;
				if (!checking) void services.openChat({ note: file.path });
				return true;
			},
		},
		marked("ask-selection", words.askSelection, "text-select", (selection, note) =>
			services.openChat({ selection, ...(note === "" ? {} : { note }) }),
		),
		{
			id: "stop",
			name: words.stop,
			icon: "square",
			checkCallback: (checking) => {
				// the one that was asked last, wherever it is shown
				const conversation = [...running].pop();
				if (conversation === undefined) return false;
				if (!checking) void told(() => chats.stop(conversation));
				return true;
			},
		},
		plain("history", words.history, "history", () => {
			new HistoryModal(services).open();
		}),
		plain("search", words.search, "search", () => {
			new SearchModal(services).open();
		}),
		plain("related", words.related, "waypoints", () => app.workspace.ensureSideLeaf(RELATED_VIEW, "right", { active: true, reveal: true })),
		marked("remember", words.remember, "brain", (text) => remember(services, text, "semantic")),
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
			connection.retry();
		}),
	];
}
