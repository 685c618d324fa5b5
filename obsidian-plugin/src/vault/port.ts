import { normalizePath, TextFileView, type App, type Component } from "obsidian";

/** As much of the app as changing notes needs. Paths are relative to the vault, with "/" between folders. */
export interface VaultPort {
	/** Whether something is at this path, known to the app already or not. */
	exists(path: string): Promise<boolean>;
	/** The bytes that the file has now. */
	bytes(path: string): Promise<ArrayBuffer>;
	/** A new note, with the folders it needs; rejects when there is one. */
	create(path: string, text: string): Promise<void>;
	/** Read, change, write, with nothing between; resolves with what the note holds then. */
	process(path: string, change: (text: string) => string): Promise<string>;
	/** Save what was typed into this note and is not on disk yet; whether there was such text. */
	flush(path: string): Promise<boolean>;
	/** Where the note is now that was at this path: the same path unless it was renamed since the app started. */
	moved(path: string): string;
	/** The first free path for a new note of this name, "Name 1" and so on when it is taken. */
	freePath(folder: string, name: string): Promise<string>;
	/** The app's folder for new notes, as seen from the note at `from`; "" is the vault's own. */
	newNoteFolder(from: string): string;
}

/** The port to the real app, which hears of renames as long as `owner` lives. */
export function appVault({ vault, workspace, fileManager }: App, owner: Component): VaultPort {
	const { adapter } = vault;
	const renames = new Map<string, string>();
	owner.registerEvent(vault.on("rename", ({ path }, before) => {
		renames.delete(path);
		renames.set(before, path);
	}));
	const exists = (path: string): Promise<boolean> => adapter.exists(path);

	// a file that the daemon has just written may not have reached the app's own list yet; the adapter has it
	return {
		exists,
		bytes: (path) => {
			const file = vault.getFileByPath(path);
			return file ? vault.readBinary(file) : adapter.readBinary(path);
		},
		process: (path, change) => {
			const file = vault.getFileByPath(path);
			return file ? vault.process(file, change) : adapter.process(path, change);
		},
		create: async (path, text) => {
			const folder = path.slice(0, Math.max(0, path.lastIndexOf("/")));
			// somebody else may make it at the same moment
			if (folder !== "" && !(await exists(folder))) await vault.createFolder(folder).catch(() => undefined);
			await vault.create(path, text);
		},
		flush: async (path) => {
			const views: TextFileView[] = [];
			workspace.iterateAllLeaves(({ view }) => {
				if (view instanceof TextFileView && view.file?.path === path) views.push(view);
			});
			let flushed = false;
			for (const view of views) {
				// an editor has no carriage returns: a note that has them looks changed and is not
				if (withoutReturns(view.getViewData()) === withoutReturns(await adapter.read(path))) continue;
				await view.save();
				flushed = true;
			}
			return flushed;
		},
		moved: (path) => {
			let now = path;
			// a name that was given on may lead back to itself
			for (let steps = 0; steps <= renames.size; steps++) {
				const next = renames.get(now);
				if (next === undefined) return now;
				now = next;
			}
			return path;
		},
		freePath: async (folder, name) => {
			const base = normalizePath(`${folder}/${name}`);
			for (let number = 0; ; number++) {
				const path = number === 0 ? `${base}.md` : `${base} ${number}.md`;
				if (!(await exists(path))) return path;
			}
		},
		newNoteFolder: (from) => fileManager.getNewFileParent(from).path,
	};
}

function withoutReturns(text: string): string {
	return text.replace(/\r\n?/g, "\n");
}
