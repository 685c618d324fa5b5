import {
	type Stats,
	appendFileSync,
	cpSync,
	existsSync,
	mkdirSync,
	readFileSync,
	readdirSync,
	renameSync,
	rmSync,
	statSync,
	utimesSync,
	writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type * as Real from "obsidian";
import { FileSystemAdapter } from "obsidian-test-mocks/obsidian";

/**
 * A vault in a real folder, so that the plugin under test and a real daemon see the same files. Only tests
 * in Node use it: `makeApp({ adapter: diskAdapter(folder) })`.
 */
export function diskAdapter(root: string): Real.DataAdapter {
	return new DiskAdapter(root).asOriginalType__();
}

class DiskAdapter extends FileSystemAdapter {
	constructor(private readonly root: string) {
		super(root);
	}
	private at(path: string): string {
		return join(this.root, path === "/" ? "" : path);
	}
	private entries(): { path: string; stats: Stats }[] {
		return readdirSync(this.root, { recursive: true, encoding: "utf8" })
			.filter((path) => !path.split("/").some((part) => part.startsWith(".")))
			.map((path) => ({ path, stats: statSync(this.at(path)) }));
	}
	override listAll__(): { files: string[]; folders: string[] } {
		const all = this.entries();
		return {
			files: all.filter(({ stats }) => stats.isFile()).map(({ path }) => path),
			folders: all.filter(({ stats }) => stats.isDirectory()).map(({ path }) => path),
		};
	}
	override async list(path: string): Promise<Real.ListedFiles> {
		const depth = path === "" || path === "/" ? "" : `${path}/`;
		const near = (name: string) => name.startsWith(depth) && !name.slice(depth.length).includes("/");
		const { files, folders } = this.listAll__();
		return { files: files.filter(near), folders: folders.filter(near) };
	}
	override async exists(path: string): Promise<boolean> {
		return existsSync(this.at(path));
	}
	override async stat(path: string): Promise<Real.Stat | null> {
		if (!existsSync(this.at(path))) return null;
		const stats = statSync(this.at(path));
		return { type: stats.isDirectory() ? "folder" : "file", ctime: stats.birthtimeMs, mtime: stats.mtimeMs, size: stats.size };
	}
	override readSync__(path: string): string {
		return readFileSync(this.at(path), "utf8");
	}
	override async read(path: string): Promise<string> {
		return this.readSync__(path);
	}
	override async readBinary(path: string): Promise<ArrayBuffer> {
		// of the page's own kind: its SubtleCrypto takes no other
		const Bytes = new TextEncoder().encode().constructor as Uint8ArrayConstructor;
		return new Bytes(readFileSync(this.at(path))).buffer;
	}
	override writeSync__(path: string, data: string, options?: Real.DataWriteOptions): void {
		mkdirSync(dirname(this.at(path)), { recursive: true });
		writeFileSync(this.at(path), data);
		if (options?.mtime !== undefined) utimesSync(this.at(path), options.mtime / 1000, options.mtime / 1000);
	}
	override async write(path: string, data: string, options?: Real.DataWriteOptions): Promise<void> {
		this.writeSync__(path, data, options);
	}
	override async writeBinary(path: string, data: ArrayBuffer): Promise<void> {
		writeFileSync(this.at(path), new Uint8Array(data));
	}
	override async append(path: string, data: string): Promise<void> {
		appendFileSync(this.at(path), data);
	}
	override mkdirSync__(path: string): void {
		mkdirSync(this.at(path), { recursive: true });
	}
	override async rename(path: string, next: string): Promise<void> {
		mkdirSync(dirname(this.at(next)), { recursive: true });
		renameSync(this.at(path), this.at(next));
	}
	override async copy(path: string, next: string): Promise<void> {
		cpSync(this.at(path), this.at(next), { recursive: true });
	}
	override async remove(path: string): Promise<void> {
		rmSync(this.at(path));
	}
	override async rmdir(path: string, recursive: boolean): Promise<void> {
		rmSync(this.at(path), { recursive });
	}
}
