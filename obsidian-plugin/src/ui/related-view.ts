import { debounce, ItemView, Keymap, setIcon, type HoverParent, type HoverPopover, type TFile, type WorkspaceLeaf } from "obsidian";
import type { Hit } from "../protocol/events";
import { hoverLink, linktextOf, openPlace } from "../vault/links";
import { isConversation } from "../vault/own";
import { isNotFound, sentence } from "./errors";
import { excerpt, headingOf, readable } from "./passage";
import { askFor, linkedWith, pickRelated, reasons } from "./related-list";
import type { Services } from "./services";

export const RELATED_VIEW = "tarsd-related";

/** Time to read further before the list follows, and time for the daemon to index what was saved. */
const FOLLOW_MS = 200;
const SAVED_MS = 4000;

/** The notes that belong to the one in front, each with why. */
export class RelatedView extends ItemView implements HoverParent {
	override icon = "waypoints";
	hoverPopover: HoverPopover | null = null;
	private file: TFile | null = null;
	private asked: AbortController | null = null;
	private listEl: HTMLElement = this.contentEl;
	private readonly follow = debounce(() => void this.look(), FOLLOW_MS, true);
	private readonly saved = debounce(() => void this.look(), SAVED_MS, true);

	constructor(
		leaf: WorkspaceLeaf,
		private readonly services: Services,
	) {
		super(leaf);
		this.navigation = false;
	}

	getViewType(): string {
		return RELATED_VIEW;
	}

	getDisplayText(): string {
		return this.services.t.related.title;
	}

	override async onOpen(): Promise<void> {
		const { workspace, metadataCache, vault } = this.app;
		this.contentEl.addClass("tarsd-related");
		this.addAction("refresh-cw", this.services.t.related.refresh, () => void this.look());
		this.registerEvent(workspace.on("file-open", () => {
			if (this.noteInFront()?.path !== this.file?.path) this.follow();
		}));
		this.registerEvent(metadataCache.on("changed", (file) => {
			if (file.path === this.file?.path) this.saved();
		}));
		this.registerEvent(vault.on("rename", (file) => {
			if (file.path === this.file?.path) this.saved();
		}));
		this.register(this.services.connection.onChange((state) => {
			if (state.name !== "connecting") this.follow();
		}));
		this.register(() => {
			this.follow.cancel();
			this.saved.cancel();
			this.asked?.abort();
		});
		await this.look();
	}

	/** Look up the note in front now; what a slower answer to an older question says is dropped. */
	async look(): Promise<void> {
		this.asked?.abort();
		const asking = new AbortController();
		this.asked = asking;
		this.file = this.noteInFront();
		const words = this.services.t.related;
		if (!this.file) {
			this.say(words.noNote);
			return;
		}
		const { client, state } = this.services.connection;
		if (!client) {
			this.say("failure" in state ? words.offline : words.looking);
			return;
		}
		const { path } = this.file;
		const { relatedCount: count, relatedHideLinked: hideLinked, relatedExclude: exclude, relatedConversations } = this.services.settings();
		const wanted = {
			count,
			exclude,
			hideLinked,
			...(relatedConversations ? {} : { isLog: (hit: Hit) => isConversation(this.app, hit) }),
		};
		try {
			const { hits } = await client.related(path, askFor(wanted), asking.signal);
			if (asking.signal.aborted) return;
			const linked = linkedWith(this.app.metadataCache.resolvedLinks, path);
			const found = pickRelated(hits, { ...wanted, here: path, linked });
			if (found.length > 0) this.draw(found);
			else this.say(hits.length > 0 ? words.allHidden : words.none);
		} catch (error) {
			if (!asking.signal.aborted) this.say(isNotFound(error) ? words.notIndexed : sentence(error));
		}
	}

	private noteInFront(): TFile | null {
		const file = this.app.workspace.getActiveFile();
		return file?.extension === "md" ? file : null;
	}

	private head(): void {
		this.contentEl.empty();
		const title = this.file ? this.services.t.related.to(this.file.basename) : this.services.t.related.title;
		this.contentEl.createDiv({ cls: "tarsd-related-head", text: title });
	}

	private say(text: string): void {
		this.head();
		this.contentEl.createDiv({ cls: "tarsd-related-none", text, attr: { role: "status" } });
	}

	private draw(hits: readonly Hit[]): void {
		this.head();
		this.listEl = this.contentEl.createEl("ul", "tarsd-related-list");
		for (const hit of hits) this.drawHit(hit);
	}

	private drawHit(hit: Hit): void {
		const source = this.file?.path ?? "";
		const item = this.listEl.createEl("li", "tarsd-related-item");
		const link = item.createEl("a", { cls: "internal-link", text: hit.title, href: linktextOf(hit) });
		const open = (event: MouseEvent): void => {
			event.preventDefault();
			void openPlace(this.app, hit, { source, where: Keymap.isModEvent(event) });
		};
		link.addEventListener("click", open);
		link.addEventListener("auxclick", (event) => {
			if (event.button === 1) open(event);
		});
		link.addEventListener("mouseover", (event) => {
			const linktext = linktextOf(hit);
			hoverLink(this.app, { event, view: RELATED_VIEW, hoverParent: this, targetEl: link, linktext, source });
		});
		const folder = hit.path.split("/").slice(0, -1).join("/");
		const place = [folder, headingOf(hit)].filter(Boolean).join(" › ");
		if (place !== "") item.createDiv({ cls: "tarsd-hit-place", text: place });
		const passage = excerpt(readable(hit), "");
		if (passage !== "") item.createDiv({ cls: "tarsd-hit-text", text: passage });
		const why = item.createDiv("tarsd-related-why");
		for (const reason of reasons(hit.why, this.services.t.related.similar)) {
			const flair = why.createSpan("tarsd-related-reason");
			setIcon(flair.createSpan("tarsd-related-icon"), reason === this.services.t.related.similar ? "sparkles" : "link");
			flair.createSpan({ text: reason });
		}
	}
}
