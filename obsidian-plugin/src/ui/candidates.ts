import { getAllTags, type App, type CachedMetadata, type TFile } from "obsidian";
import type { Chip } from "../chat/context";
import { fold } from "../chat/fold";
import { prepare, type Candidate, type Prepared } from "../chat/mentions";
import { en } from "../en";

/** Everything in this vault that a question can name. */
export function candidates(app: App): Prepared[] {
	const { vault, metadataCache, workspace } = app;
	const recent = new Map(workspace.getLastOpenFiles().map((path, index) => [path, index]));
	const found: Candidate[] = [];
	const tags = new Map<string, string>();
	for (const file of vault.getMarkdownFiles()) {
		const cache = metadataCache.getFileCache(file);
		const place = recent.get(file.path);
		found.push({
			kind: "note",
			path: file.path,
			name: file.basename,
			link: metadataCache.fileToLinktext(file, "", true),
			aliases: aliasesOf(cache),
			...(place === undefined ? {} : { recent: place }),
		});
		for (const tag of cache ? (getAllTags(cache) ?? []) : []) tags.set(tag.toLowerCase(), tag);
	}
	for (const folder of vault.getAllFolders(false)) if (!folder.isRoot()) found.push({ kind: "folder", path: folder.path });
	for (const tag of tags.values()) found.push({ kind: "tag", tag });
	const whole = en.composer.folder("");
	const root: Prepared = {
		candidate: { kind: "folder", path: "" },
		label: whole,
		name: fold(whole.slice(0, -1)),
		place: fold(whole),
		aliases: [],
		recent: Infinity,
	};
	return [...prepare(found), root];
}

/** The notes of a folder or with a tag, those that were changed last first. */
export function notesOf(app: App, chip: Extract<Chip, { kind: "folder" | "tag" }>): string[] {
	const { vault, metadataCache } = app;
	const fits = (file: TFile): boolean => {
		if (chip.kind === "folder") return chip.path === "" || file.path.startsWith(`${chip.path}/`);
		const wanted = `#${chip.tag.toLowerCase()}`;
		const cache = metadataCache.getFileCache(file);
		const has = cache ? (getAllTags(cache) ?? []) : [];
		// a tag stands for those below it, as it does in the app's search
		return has.some((tag) => tag.toLowerCase() === wanted || tag.toLowerCase().startsWith(`${wanted}/`));
	};
	const files = vault.getMarkdownFiles().filter(fits);
	return files.sort((one, other) => other.stat.mtime - one.stat.mtime).map((file) => file.path);
}

function aliasesOf(cache: CachedMetadata | null): string[] {
	const given: unknown = cache?.frontmatter?.["aliases"] ?? cache?.frontmatter?.["alias"];
	const list: unknown[] = Array.isArray(given) ? given : [given];
	return list.filter((one): one is string => typeof one === "string" && one !== "");
}
