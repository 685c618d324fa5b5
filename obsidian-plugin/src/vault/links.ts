import { parseLinktext, type App, type HoverParent, type PaneType, type TFile } from "obsidian";

/** A place in a note as the daemon names it: a passage that was found, or a source of an answer. */
export interface Place {
	readonly path: string;
	/** As a wikilink, with or without its brackets, or as a Markdown link; "" when the path has to do. */
	readonly link: string;
	readonly collection: string;
	/** The first line of the passage, from 1; 0 for the whole note. */
	readonly start_line: number;
}

/** Where a link is followed from: the note it stands in, "" for none. */
export interface From {
	readonly source: string;
	readonly where?: PaneType | boolean;
}

/** A Markdown link with the path encoded: the daemon's way where no wikilink can hold the name. */
const ENCODED = /^\[[^[\]]*\]\(([^()\s]*)\)$/;

/** What a link to the place says: `Folder/Note#Heading`. */
export function linktextOf(place: Pick<Place, "path" | "link">): string {
	const encoded = ENCODED.exec(place.link)?.[1];
	if (encoded !== undefined) return decodeURIComponent(encoded).replace(/\.md(?=#|$)/, "");
	return place.link.replace(/^!?\[\[|(\||\]\]).*$/g, "") || place.path.replace(/\.md$/, "");
}

/** Where in its note the place is, `#Heading` or `#^block`: what follows the path, which may have a `#` itself. */
export function subpathOf(place: Pick<Place, "path" | "link">): string {
	const text = linktextOf(place);
	const name = place.path.replace(/\.md$/, "");
	return text.startsWith(name) ? text.slice(name.length) : parseLinktext(text).subpath;
}

/** The note of the place, or null when it is none of this vault's. */
export function noteOf(app: App, place: Pick<Place, "path" | "collection">): TFile | null {
	return place.collection === "" ? app.vault.getFileByPath(place.path) : null;
}

/** What a link leads to; null when there is no such note. */
export function resolveLink(app: App, linktext: string, source: string): { file: TFile; subpath: string } | null {
	const { path, subpath } = parseLinktext(linktext);
	const file = app.metadataCache.getFirstLinkpathDest(path, source);
	return file ? { file, subpath } : null;
}

/**
 * Follow a link that a model or a note has written; false when it leads nowhere. It is resolved first, for the app makes
 * a note, and the folders for it, of whatever it does not find.
 */
export async function openLink(app: App, linktext: string, { source, where = false }: From): Promise<boolean> {
	const found = resolveLink(app, linktext, source);
	if (found) await app.workspace.openLinkText(found.file.path + found.subpath, source, where);
	return found !== null;
}

/** Go to a place, at its heading or its line; false when its note is not in this vault. */
export async function openPlace(app: App, place: Place, { source, where = false }: From): Promise<boolean> {
	const file = noteOf(app, place);
	const subpath = subpathOf(place);
	const line = subpath === "" && place.start_line > 1 ? { eState: { line: place.start_line - 1 } } : {};
	// a link's text would end at a sign in the name
	if (file && /[#^|]/.test(file.path)) await app.workspace.getLeaf(where).openFile(file, subpath ? { eState: { subpath } } : line);
	else if (file) await app.workspace.openLinkText(file.path + subpath, source, where, line);
	return file !== null;
}

/** What the app needs to know to show its preview of a link; `source` is the type that the view is registered under. */
export interface Hover {
	readonly event: MouseEvent;
	readonly source: string;
	readonly hoverParent: HoverParent;
	readonly targetEl: HTMLElement;
	readonly linktext: string;
	readonly sourcePath: string;
}

/** Let the app show its preview of a link under the mouse. */
export function hoverLink(app: App, hover: Hover): void {
	app.workspace.trigger("hover-link", hover);
}

/** A link to the place as this person writes links, for the note at `source`; null when it is not in this vault. */
export function linkTo(app: App, place: Pick<Place, "path" | "link" | "collection">, source: string, alias = ""): string | null {
	const file = noteOf(app, place);
	return file && app.fileManager.generateMarkdownLink(file, source, subpathOf(place), alias);
}
