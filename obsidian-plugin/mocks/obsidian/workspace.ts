import type * as Real from "obsidian";
import { type App, type Events, type TFile, Workspace, WorkspaceLeaf, parseLinktext } from "obsidian-test-mocks/obsidian";
import { popouts, type Popout } from "./popout";
import { DeferredView, creatorsOf } from "./view";

/** The package's leaf with what it keeps to itself. */
interface Leaf extends Omit<WorkspaceLeaf, "isDeferred" | "view"> {
	isDeferred: boolean;
	view: OpenView | null;
	viewState: Real.ViewState;
	file: TFile | null;
}

/** A view as the leaf drives it: opening and closing are not public. */
type OpenView = Real.View & { onOpen(): Promise<void>; onClose(): Promise<void> };

interface Space extends Events {
	app: App;
	activeLeaf: Leaf | null;
	containerEl: HTMLElement;
	leaves: Leaf[];
	getLeaf(where?: Real.PaneType | boolean): Leaf;
	setActiveLeaf(leaf: Leaf): void;
	revealLeaf(leaf: Leaf): Promise<void>;
	getActiveFile(): TFile | null;
}

type Patch<R, P> = Partial<Record<keyof R, unknown>> & ThisType<P>;

/** Leaves of the side bars; a note is never opened in one. */
const sides = new WeakSet<object>();
/** Leaves in windows of their own. */
const windows = new WeakMap<object, Popout>();
/** The note that was active last: it stays so while a pane of the side bar has the focus. */
const lastFile = new WeakMap<object, TFile>();

async function closeView(leaf: Leaf): Promise<void> {
	const view = leaf.view;
	if (view === null) return;
	leaf.view = null;
	await view.onClose();
	view.unload();
	view.containerEl.remove();
}

async function openView(leaf: Leaf, view: OpenView): Promise<void> {
	leaf.view = view;
	const parent = windows.get(leaf)?.body ?? leaf.app__.workspace.containerEl;
	parent.append(view.containerEl);
	view.load();
	await view.onOpen();
}

const leafMethods: Patch<Real.WorkspaceLeaf, Leaf> = {
	async open(view: OpenView): Promise<Real.View> {
		await closeView(this);
		await openView(this, view);
		return view;
	},
	/** Makes the view of that type, opens it, and hands it its state, in this order. */
	async setViewState(state: Real.ViewState, ephemeral?: unknown): Promise<void> {
		this.viewState = { ...state };
		const create = creatorsOf(this.app__).get(state.type);
		if (this.view === null || this.isDeferred || this.view.getViewType() !== state.type) {
			await closeView(this);
			this.isDeferred = false;
			if (create) await openView(this, create(this as unknown as Real.WorkspaceLeaf) as unknown as OpenView);
		}
		if (state.state !== undefined) await this.view?.setState(state.state, { history: false });
		if (ephemeral !== undefined) this.view?.setEphemeralState(ephemeral);
		this.app__.workspace.trigger("layout-change");
	},
	getViewState(): Real.ViewState {
		return { ...this.viewState, ...(this.view && !this.isDeferred && { state: this.view.getState() }) };
	},
	async loadIfDeferred(): Promise<void> {
		if (this.isDeferred) await (this as unknown as Real.WorkspaceLeaf).setViewState(this.viewState);
	},
	async openFile(file: TFile, state?: Real.OpenViewState): Promise<void> {
		this.file = file;
		this.viewState = { type: "markdown", state: { file: file.path, ...state?.state } };
		if (state?.eState) this.setEphemeralState(state.eState);
		lastFile.set(this.app__.workspace, file);
		this.app__.workspace.trigger("file-open", file);
	},
	detach(): void {
		void closeView(this);
		windows.get(this)?.close();
		this.app__.workspace.removeLeaf__(this as unknown as WorkspaceLeaf);
		this.app__.workspace.trigger("layout-change");
	},
};
Object.assign(WorkspaceLeaf.prototype, leafMethods);

function addLeaf(space: Space, side: boolean): Leaf {
	const leaf = WorkspaceLeaf.create2__(space.app) as unknown as Leaf;
	if (side) sides.add(leaf);
	space.leaves.push(leaf);
	return leaf;
}

const workspaceMethods: Patch<Real.Workspace, Space> = {
	async ensureSideLeaf(type: string, _side: Real.Side, options: { active?: boolean; reveal?: boolean; state?: Record<string, unknown> } = {}) {
		let leaf = this.leaves.find((one) => one.viewState.type === type);
		if (leaf === undefined) {
			leaf = addLeaf(this, true);
			await (leaf as unknown as Real.WorkspaceLeaf).setViewState({ type, ...options });
		}
		if (options.reveal !== false) await this.revealLeaf(leaf);
		return leaf;
	},
	getRightLeaf(): Leaf {
		return addLeaf(this, true);
	},
	getLeftLeaf(): Leaf {
		return addLeaf(this, true);
	},
	getLeaf(where?: Real.PaneType | boolean): Leaf {
		if (where === undefined || where === false) {
			const active = this.activeLeaf;
			const usable = (leaf: Leaf) => !sides.has(leaf) && (leaf.view === null || leaf.view.navigation);
			if (active && usable(active)) return active;
			const other = this.leaves.filter(usable).at(-1);
			if (other) return other;
		}
		const leaf = addLeaf(this, false);
		if (where === "window") windows.set(leaf, popouts.open(() => (leaf as unknown as Real.WorkspaceLeaf).detach()));
		return leaf;
	},
	async revealLeaf(leaf: Leaf): Promise<void> {
		await leaf.loadIfDeferred();
		this.setActiveLeaf(leaf);
	},
	getActiveFile(): TFile | null {
		return this.activeLeaf?.file ?? lastFile.get(this) ?? null;
	},
	getActiveViewOfType(type: abstract new (...values: never[]) => Real.View): Real.View | null {
		const view = this.activeLeaf?.view ?? null;
		return view instanceof type ? view : null;
	},
	detachLeavesOfType(type: string): void {
		for (const leaf of [...this.leaves]) if (leaf.viewState.type === type) leaf.detach();
	},
	/** Beware as in the app: a link to a note that is not there makes it, with its folders. */
	async openLinkText(linktext: string, sourcePath: string, where?: Real.PaneType | boolean, state?: Real.OpenViewState): Promise<void> {
		const { path, subpath } = parseLinktext(linktext);
		const { vault, metadataCache } = this.app;
		const linkpath = path === "" ? sourcePath : path;
		let file = metadataCache.getFirstLinkpathDest(linkpath, sourcePath);
		if (file === null) {
			const target = linkpath.endsWith(".md") ? linkpath : `${linkpath}.md`;
			const folder = target.slice(0, Math.max(0, target.lastIndexOf("/")));
			if (folder !== "" && vault.getFolderByPath(folder) === null) await vault.createFolder(folder);
			file = await vault.create(target, "");
		}
		const leaf = this.getLeaf(where);
		await leaf.openFile(file, { ...state, eState: { ...state?.eState, ...(subpath !== "" && { subpath }) } });
		this.setActiveLeaf(leaf);
	},
};
Object.assign(Workspace.prototype, workspaceMethods);

/** Puts a pane back as the app does after a restart: known by its type, and not made until it is shown. */
export function addDeferredLeaf(app: App, state: Real.ViewState): WorkspaceLeaf {
	const space = app.workspace as unknown as Space;
	const leaf = addLeaf(space, true);
	const plain: unknown = leaf;
	leaf.viewState = { ...state };
	leaf.isDeferred = true;
	leaf.view = new DeferredView(plain as WorkspaceLeaf, state.type) as unknown as OpenView;
	return plain as WorkspaceLeaf;
}

/** Closes every pane, in order, and waits for it. */
export async function closeLeaves(app: App): Promise<void> {
	const space = app.workspace as unknown as Space;
	for (const leaf of [...space.leaves]) {
		await closeView(leaf);
		windows.get(leaf)?.close();
		app.workspace.removeLeaf__(leaf as unknown as WorkspaceLeaf);
	}
}
