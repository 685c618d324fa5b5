import { MarkdownView, type App, type Component, type MarkdownFileInfo } from "obsidian";
import type { Selection } from "../chat/context";

/** The editor that was used last, for while a pane beside it has the focus. */
export interface LastEditor {
	/** Put text in the place of what is marked there, or at its cursor; false when there is no such editor. */
	readonly insert: (text: string) => boolean;
	/** The text that is marked there, if any. */
	readonly selection: () => Selection | null;
}

/** Remember it from now on, as long as `owner` lives. */
export function lastEditor({ workspace }: App, owner: Component): LastEditor {
	let used: MarkdownFileInfo | null = null;

	const note = (): void => {
		const { activeEditor } = workspace;
		if (activeEditor?.editor) used = activeEditor;
	};
	const current = (): MarkdownFileInfo | null => {
		note();
		const last = used;
		// an editor that is no pane of its own, as on a canvas, is there only while it is in use
		if (!(last instanceof MarkdownView)) return workspace.activeEditor === last ? last : null;
		let there = false;
		workspace.iterateAllLeaves(({ view }) => {
			there ||= view === last;
		});
		// a note that is being read has an editor too, but nobody sees its cursor
		return there && last.getMode() === "source" ? last : null;
	};
	workspace.onLayoutReady(note);
	owner.registerEvent(workspace.on("active-leaf-change", note));

	return {
		insert: (text) => {
			const editor = current()?.editor;
			editor?.replaceSelection(text);
			return editor !== undefined;
		},
		selection: () => {
			const { file, editor } = current() ?? {};
			const text = editor?.getSelection();
			return file && text ? { path: file.path, name: file.basename, text } : null;
		},
	};
}
