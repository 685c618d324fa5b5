import type { App } from "obsidian";
import type { Hit } from "../protocol/events";

/** Where the daemon puts conversations unless it is told otherwise; for notes that the app has not read yet. */
const FOLDER = "tars/sessions/";

/** Whether a passage is from the note of a conversation, wherever that lies now: it says so in its properties. */
export function isConversation(app: App, { path, collection, memory_type }: Pick<Hit, "path" | "collection" | "memory_type">): boolean {
	if (collection !== "") return false;
	if (memory_type === "episodic") return true;
	const file = app.vault.getFileByPath(path);
	const cache = file ? app.metadataCache.getFileCache(file) : null;
	return cache ? cache.frontmatter?.["tars"] === "session" : path.startsWith(FOLDER);
}
