import { Component, MarkdownView, type App, type MarkdownFileInfo } from "obsidian";
import type { Selection } from "../chat/context";

/** Remembers the editor that was used last, for while a pane beside it has the focus. Loaded with the plugin. */
export class LastEditor extends Component {
	private used: MarkdownFileInfo | null = null;

	constructor(private readonly app: App) {
		super();
	}

	override onload(): void {
		const { workspace } = this.app;
		workspace.onLayoutReady(() => {
			this.note();
		});
		this.registerEvent(workspace.on("active-leaf-change", () => {
			this.note();
		}));
	}

	/** Put text in the place of what is marked there, or at its cursor; false when there is no such editor. */
	insert(text: string): boolean {
		const editor = this.current()?.editor;
		editor?.replaceSelection(text);
		return editor !== undefined;
	}

	/** The text that is marked there, if any. */
	selection(): Selection | null {
		const used = this.current();
		const text = used?.editor?.getSelection() ?? "";
		if (!used?.file || text === "") return null;
		return { path: used.file.path, name: used.file.basename, text };
	}

	private note(): void {
		const { activeEditor } = this.app.workspace;
		if (activeEditor?.editor) this.used = activeEditor;
	}

	private current(): MarkdownFileInfo | null {
		this.note();
		const { used } = this;
		if (!used) return null;
		const { workspace } = this.app;
		// an editor that is no pane of its own, as on a canvas, is there only while it is in use
		if (!(used instanceof MarkdownView)) return workspace.activeEditor === used ? used : null;
		let there = false;
		workspace.iterateAllLeaves((leaf) => {
			there ||= leaf.view === used;
		});
		// a note that is being read has an editor too, but nobody sees its cursor
		return there && used.getMode() === "source" ? used : null;
	}
}
