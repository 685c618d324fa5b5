import type * as Real from "obsidian";
import { FileManager, FileSystemAdapter, MetadataCache, type TFile, Vault, normalizePath, stripHeadingForLink } from "obsidian-test-mocks/obsidian";

/** What is patched in belongs to the real type; `this` is the package's object. */
type Patch<R, P> = Partial<Record<keyof R, unknown>> & ThisType<P>;

const parentOf = (path: string): string => (path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "/");

function refuse(vault: Vault, path: string): void {
	if (vault.getAbstractFileByPathInsensitive__(path) !== null) throw new Error("File already exists.");
	if (vault.getFolderByPath(parentOf(path)) === null) {
		throw new Error(`ENOENT: no such file or directory, open '${path}'`);
	}
}

const create = Vault.prototype.create;
const createBinary = Vault.prototype.createBinary;
const createFolder = Vault.prototype.createFolder;

/** The app neither overwrites a note with `create` nor makes the folders for it. */
const vault: Patch<Real.Vault, Vault> = {
	async create(path: string, data: string, options?: Real.DataWriteOptions): Promise<TFile> {
		refuse(this, path);
		return create.call(this, path, data, options);
	},
	async createBinary(path: string, data: ArrayBuffer, options?: Real.DataWriteOptions): Promise<TFile> {
		refuse(this, path);
		return createBinary.call(this, path, data, options);
	},
	async createFolder(path: string) {
		if (this.getAbstractFileByPathInsensitive__(path) !== null) throw new Error("Folder already exists.");
		return createFolder.call(this, path);
	},
	getName() {
		return this.adapter.getName();
	},
	getResourcePath(file: TFile) {
		return `app://local/${encodeURI(file.path)}`;
	},
};
Object.assign(Vault.prototype, vault);

const readBinary = FileSystemAdapter.prototype.readBinary;

/** The bytes of any file; the package's own memory knows only those that were written as bytes. */
FileSystemAdapter.prototype.readBinary = async function (path: string): Promise<ArrayBuffer> {
	const text = await this.read(path).catch(() => null);
	return text === null ? readBinary.call(this, path) : new TextEncoder().encode(text).slice().buffer;
};

/** The shortest text that finds a file from anywhere, as with the setting "shortest path when possible". */
function linktext(cache: MetadataCache, file: TFile, source: string, bare: boolean): string {
	const name = bare && file.extension === "md" ? file.basename : file.name;
	if (cache.getFirstLinkpathDest(name, source)?.path === file.path) return name;
	return bare && file.extension === "md" ? file.path.slice(0, -3) : file.path;
}

const metadata: Patch<Real.MetadataCache, MetadataCache> = {
	fileToLinktext(file: TFile, sourcePath: string, omitMdExtension = true): string {
		return linktext(this, file, sourcePath, omitMdExtension);
	},
	/** By full path, relative to the source, or by the end of the path; the shortest path wins; case is no matter. */
	getFirstLinkpathDest(linkpath: string, sourcePath: string): TFile | null {
		if (linkpath === "") return this.app__.vault.getFileByPath(sourcePath);
		const relative = linkpath.startsWith("./") || linkpath.startsWith("../");
		const wanted = (relative ? join(parentOf(sourcePath), linkpath) : normalizePath(linkpath)).toLowerCase();
		const ways = [wanted, `${wanted}.md`];
		const files = this.app__.vault.getFiles();
		const exact = files.find((file) => ways.includes(file.path.toLowerCase()));
		if (exact || relative || linkpath.startsWith("/")) return exact ?? null;
		const near = files.filter((file) => ways.some((way) => file.path.toLowerCase().endsWith(`/${way}`)));
		return near.sort((a, b) => a.path.length - b.path.length)[0] ?? null;
	},
};
Object.assign(MetadataCache.prototype, metadata);

function join(folder: string, path: string): string {
	const parts = folder === "/" ? [] : folder.split("/");
	for (const part of path.split("/")) {
		if (part === "..") parts.pop();
		else if (part !== ".") parts.push(part);
	}
	return parts.join("/");
}

const manager: Patch<Real.FileManager, { app: { vault: Vault; metadataCache: MetadataCache } }> = {
	/** Follows the two settings of the app about links, set in a test with `vault.setConfig`. */
	generateMarkdownLink(file: TFile, sourcePath: string, subpath = "", alias = ""): string {
		const { vault: files, metadataCache } = this.app;
		const format = files.getConfig__("newLinkFormat");
		const markdown = files.getConfig__("useMarkdownLinks") === true;
		const full = markdown || file.extension !== "md" ? file.path : file.path.slice(0, -3);
		const path = format === "absolute" ? full : linktext(metadataCache, file, sourcePath, !markdown);
		const target = path + (subpath.startsWith("#^") || subpath === "" ? subpath : `#${stripHeadingForLink(subpath)}`);
		if (markdown) return `[${alias || file.basename}](${target.replace(/ /g, "%20")})`;
		return alias === "" || alias === target ? `[[${target}]]` : `[[${target}|${alias}]]`;
	},
	async getAvailablePathForAttachment(filename: string, sourcePath = ""): Promise<string> {
		const dot = filename.lastIndexOf(".");
		const [name, extension] = dot < 0 ? [filename, ""] : [filename.slice(0, dot), filename.slice(dot + 1)];
		const { vault: files } = this.app;
		return files.getAvailablePathForAttachments__(name, extension, files.getFileByPath(sourcePath));
	},
};
Object.assign(FileManager.prototype, manager);
