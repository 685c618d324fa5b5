import { Component, normalizePath, TextFileView, type App, type TAbstractFile } from "obsidian";

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

/** The port to the real app; loaded with the plugin, so that it hears of renames. */
export class AppVault extends Component implements VaultPort {
	private readonly renames = new Map<string, string>();

	constructor(private readonly app: App) {
		super();
	}

	override onload(): void {
		this.registerEvent(this.app.vault.on("rename", (file: TAbstractFile, before: string) => {
			this.renames.delete(file.path);
			this.renames.set(before, file.path);
		}));
	}

	exists(path: string): Promise<boolean> {
		return this.app.vault.adapter.exists(path);
	}

	bytes(path: string): Promise<ArrayBuffer> {
		const file = this.app.vault.getFileByPath(path);
		return file ? this.app.vault.readBinary(file) : this.app.vault.adapter.readBinary(path);
	}

	async create(path: string, text: string): Promise<void> {
		await this.makeFolders(path.split("/").slice(0, -1));
		await this.app.vault.create(path, text);
	}

	process(path: string, change: (text: string) => string): Promise<string> {
		const file = this.app.vault.getFileByPath(path);
		// a file that the daemon has just written may not have reached the app's own list yet
		return file ? this.app.vault.process(file, change) : this.app.vault.adapter.process(path, change);
	}

	async flush(path: string): Promise<boolean> {
		const views: TextFileView[] = [];
		this.app.workspace.iterateAllLeaves(({ view }) => {
			if (view instanceof TextFileView && view.file?.path === path) views.push(view);
		});
		let flushed = false;
		for (const view of views) {
			// an editor has no carriage returns: a note that has them looks changed and is not
			const saved = withoutReturns(await this.app.vault.adapter.read(path));
			if (withoutReturns(view.getViewData()) === saved) continue;
			await view.save();
			flushed = true;
		}
		return flushed;
	}

	moved(path: string): string {
		let now = path;
		for (let steps = 0; steps <= this.renames.size; steps++) {
			const next = this.renames.get(now);
			if (next === undefined) return now;
			now = next;
		}
		return path;
	}

	async freePath(folder: string, name: string): Promise<string> {
		const base = normalizePath(folder === "" ? name : `${folder}/${name}`);
		for (let number = 0; ; number++) {
			const path = number === 0 ? `${base}.md` : `${base} ${number}.md`;
			if (!(await this.exists(path))) return path;
		}
	}

	newNoteFolder(from: string): string {
		const { path } = this.app.fileManager.getNewFileParent(from);
		return path === "/" ? "" : path;
	}

	private async makeFolders(names: string[]): Promise<void> {
		for (let depth = 1; depth <= names.length; depth++) {
			const folder = names.slice(0, depth).join("/");
			if (await this.exists(folder)) continue;
			try {
				await this.app.vault.createFolder(folder);
			} catch (error) {
				// somebody else may have made it in between
				if (!(await this.exists(folder))) throw error;
			}
		}
	}
}

function withoutReturns(text: string): string {
	return text.replace(/\r\n?/g, "\n");
}
