import { Platform, type App } from "obsidian";
import { CHAT_VIEW, ChatView } from "./chat-view";
import type { OpenChat } from "./services";

/**
 * Show a chat pane: the one that is there, or a new one where `options.place` says; `usual` is where the first one
 * goes. On a phone the sidebar is a drawer over the note, so there it is a tab; and so it is where the app has no
 * windows.
 */
export async function openChat({ workspace }: App, options: OpenChat = {}, usual: "sidebar" | "tab" = "sidebar"): Promise<void> {
	const { place = "same" } = options;
	const there = workspace.getActiveViewOfType(ChatView)?.leaf ?? workspace.getLeavesOfType(CHAT_VIEW)[0];
	let leaf = place === "same" ? there : undefined;
	if (!leaf && (place === "same" ? usual : place) === "sidebar" && !Platform.isPhone) {
		leaf = await workspace.ensureSideLeaf(CHAT_VIEW, "right", { active: true });
	}
	if (!leaf) {
		leaf = workspace.getLeaf(place === "window" && Platform.isDesktop ? "window" : "tab");
		await leaf.setViewState({ type: CHAT_VIEW, active: true });
	}
	await workspace.revealLeaf(leaf);
	if (leaf.view instanceof ChatView) leaf.view.show(options);
}
