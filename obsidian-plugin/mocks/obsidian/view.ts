import type * as Real from "obsidian";
import { ItemView as Base, type WorkspaceLeaf } from "obsidian-test-mocks/obsidian";
import { setIcon } from "./icons";
import { Scope } from "./scope";

/** A pane with the app's frame: a header with actions and the content under it; its scope gets its keys. */
export abstract class ItemView extends Base {
	private readonly actionsEl: HTMLElement;

	constructor(leaf: WorkspaceLeaf) {
		super(leaf);
		this.containerEl.empty();
		this.containerEl.addClass("workspace-leaf-content");
		const header = this.containerEl.createDiv("view-header");
		header.createDiv("view-header-title-container").createDiv("view-header-title");
		this.actionsEl = header.createDiv("view-actions");
		this.contentEl = this.containerEl.createDiv("view-content");
		this.containerEl.addEventListener("keydown", (event) => {
			const scope: unknown = this.scope;
			if (scope instanceof Scope) scope.handleKey(event);
		});
	}
	override addAction(icon: string, title: string, callback: (evt: MouseEvent) => unknown): HTMLElement {
		const el = createEl("a", { cls: "clickable-icon view-action", attr: { "aria-label": title } });
		setIcon(el, icon);
		el.addEventListener("click", (event) => void callback(event));
		this.actionsEl.prepend(el);
		return el;
	}
}

/** What a leaf holds whose view was not needed yet: the app does so after a restart. */
export class DeferredView extends ItemView {
	constructor(
		leaf: WorkspaceLeaf,
		private readonly type: string,
	) {
		super(leaf);
	}
	getViewType(): string {
		return this.type;
	}
	getDisplayText(): string {
		return this.type;
	}
}

/** What all plugins of an app have registered together, by its names. */
export function perApp<T>(): (app: object) => Map<string, T> {
	const all = new WeakMap<object, Map<string, T>>();
	return (app) => {
		const key = bare(app);
		const known = all.get(key) ?? new Map<string, T>();
		all.set(key, known);
		return known;
	};
}

/** How an app makes the views of its plugins. */
export const creatorsOf = perApp<Real.ViewCreator>();

/** The object behind the package's guard: one app is handed out with it and without it. */
export function bare(value: object): object {
	const target: unknown = Reflect.get(value, Symbol.for("strictProxyTarget"));
	return target instanceof Object ? target : value;
}
