import { Platform, type App, type WorkspaceLeaf } from "obsidian";
import { CHAT_VIEW, ChatView } from "./chat-view";
import type { OpenChat } from "./services";

/**
 * Show a chat pane: the one that is there, or a new one where `options.place` says; `usual` is where the first one
 * goes. On a phone the sidebar is a drawer over the note, so there it is a tab.
 */
export async function openChat(app: App, options: OpenChat = {}, usual: "sidebar" | "tab" = "sidebar"): Promise<void> {
	const { workspace } = app;
	const leaf = await leafFor(app, options, usual);
	await workspace.revealLeaf(leaf);
	if (leaf.view instanceof ChatView) leaf.view.show(options);
}

async function leafFor(app: App, { place = "same" }: OpenChat, usual: "sidebar" | "tab"): Promise<WorkspaceLeaf> {
	const { workspace } = app;
	if (place === "same") {
		const active = workspace.getActiveViewOfType(ChatView)?.leaf;
		const there = active ?? workspace.getLeavesOfType(CHAT_VIEW)[0];
		if (there) return there;
	}
	const where = place === "same" ? usual : place;
	if (where === "sidebar" && !Platform.isPhone) return workspace.ensureSideLeaf(CHAT_VIEW, "right", { active: true });
	const leaf = workspace.getLeaf(where === "window" && Platform.isDesktopApp ? "window" : "tab");
	await leaf.setViewState({ type: CHAT_VIEW, active: true });
	return leaf;
}
