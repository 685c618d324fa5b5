import { getAllTags, parseFrontMatterAliases, type App, type TFile } from "obsidian";
import type { Chip } from "../chat/context";
import { prepare, type Candidate, type Prepared } from "../chat/mentions";
import { en } from "../en";

/** What is read besides notes, by the endings of names. */
const READ = /^(?:pdf|docx|docm|pptx|pptm|xlsx|xlsm|xls|rtf|odt|odp|ods|epub|html?|png|jpe?g|webp)$/i;

/** Everything in this vault that a question can name. */
export function candidates(app: App): Prepared[] {
	const { vault, metadataCache, workspace } = app;
	const opened = workspace.getLastOpenFiles();
	const tags = new Map<string, string>();
	const files = vault.getFiles().filter(({ extension }) => extension === "md" || READ.test(extension));
	const found = files.map((file): Candidate => {
		for (const tag of tagsOf(app, file)) tags.set(tag.toLowerCase(), tag);
		const recent = opened.indexOf(file.path);
		return {
			kind: "note",
			path: file.path,
			name: file.extension === "md" ? file.basename : file.name,
			link: metadataCache.fileToLinktext(file, "", true),
			aliases: parseFrontMatterAliases(metadataCache.getFileCache(file)?.frontmatter ?? null) ?? [],
			recent: recent < 0 ? Infinity : recent,
		};
	});
	for (const folder of vault.getAllFolders()) if (!folder.isRoot()) found.push({ kind: "folder", path: folder.path });
	for (const tag of tags.values()) found.push({ kind: "tag", tag });
	// the whole vault is a folder without a path, and is found by a name
	const root: Candidate = { kind: "folder", path: "" };
	const [named] = prepare([{ kind: "folder", path: en.composer.vault }]);
	return [...prepare(found), ...(named ? [{ ...named, candidate: root }] : [])];
}

/** The notes of a folder or with a tag, those that were changed last first. */
export function notesOf(app: App, chip: Extract<Chip, { kind: "folder" | "tag" }>): string[] {
	const below = (name: string, whole: string): boolean => whole === "" || name.startsWith(`${whole}/`);
	const fits = (file: TFile): boolean => {
		if (chip.kind === "folder") return below(file.path, chip.path);
		// a tag stands for those below it, as it does in the app's search
		return tagsOf(app, file).some((tag) => below(`${tag}/`.toLowerCase(), `#${chip.tag}`.toLowerCase()));
	};
	const files = app.vault.getMarkdownFiles().filter(fits);
	return files.sort((one, other) => other.stat.mtime - one.stat.mtime).map((file) => file.path);
}

function tagsOf({ metadataCache }: App, file: TFile): string[] {
	const cache = metadataCache.getFileCache(file);
	return (cache && getAllTags(cache)) ?? [];
}
