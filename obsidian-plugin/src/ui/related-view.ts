import { debounce, ItemView, type HoverParent, type HoverPopover, type TFile, type WorkspaceLeaf } from "obsidian";
import { en } from "../en";
import type { Hit } from "../protocol/events";
import { linktextOf } from "../vault/links";
import { isConversation } from "../vault/own";
import { clientOf } from "./asking";
import { add } from "./dom";
import { hasStatus, sentence } from "./errors";
import { wireLinks } from "./markdown";
import { askFor, linkedWith, pickRelated, reasons } from "./related-list";
import { drawPassage } from "./search-modal";
import type { Services } from "./services";
import { addLink } from "./sources";

const words = en.related;

export const RELATED_VIEW = "tarsd-related";

/** Time to read further before the list follows, and time for the daemon to index what was saved. */
const FOLLOW_MS = 200;
const SAVED_MS = 4000;

/** The notes that belong to the one in front, each with why. */
export class RelatedView extends ItemView implements HoverParent {
	override icon = "waypoints";
	override navigation = false;
	hoverPopover: HoverPopover | null = null;
	private file: TFile | null = null;
	private shown: readonly Hit[] = [];
	private asked = new AbortController();
	private readonly follow = debounce(() => void this.look(), FOLLOW_MS, true);
	private readonly saved = debounce(() => void this.look(), SAVED_MS, true);

	constructor(
		leaf: WorkspaceLeaf,
		private readonly services: Services,
	) {
		super(leaf);
	}

	getViewType(): string {
		return RELATED_VIEW;
	}

	getDisplayText(): string {
		return words.title;
	}

	override async onOpen(): Promise<void> {
		const { app, contentEl } = this;
		contentEl.addClass("tarsd-related");
		this.addAction("refresh-cw", words.refresh, () => void this.look());
		const from = { services: this.services, hoverParent: this, source: () => this.file?.path ?? "" };
		// a note that is gone is none of the related ones when they are looked up again
		wireLinks(contentEl, from, (link) => this.shown[Number(link.dataset["tarsdSource"])], () => void this.look(), RELATED_VIEW);
		this.registerEvent(app.workspace.on("file-open", () => {
			if (this.noteInFront()?.path !== this.file?.path) this.follow();
		}));
		const changed = ({ path }: { path: string }): void => {
			if (path === this.file?.path) this.saved();
		};
		this.registerEvent(app.metadataCache.on("changed", changed));
		this.registerEvent(app.vault.on("rename", changed));
		this.register(this.services.connection.onChange((state) => {
			if (state.name !== "connecting") this.follow();
		}));
		this.register(() => {
			this.follow.cancel();
			this.saved.cancel();
			this.asked.abort();
		});
		await this.look();
	}

	/** Look up the note in front now; what a slower answer to an older question says is dropped. */
	async look(): Promise<void> {
		this.asked.abort();
		this.asked = new AbortController();
		const { signal } = this.asked;
		this.file = this.noteInFront();
		if (!this.file) {
			this.draw([], words.noNote);
			return;
		}
		const { path } = this.file;
		const { relatedCount: count, relatedHideLinked, relatedExclude: exclude, relatedConversations } = this.services.settings();
		const isLog = (hit: Hit): boolean => !relatedConversations && isConversation(this.app, hit);
		const linked = new Set(relatedHideLinked ? linkedWith(this.app.metadataCache.resolvedLinks, path) : []);
		try {
			const { hits } = await clientOf(this.services).related(path, askFor(count), signal);
			if (signal.aborted) return;
			const found = pickRelated(hits, { here: path, count, exclude, linked, isLog });
			this.draw(found, found.length > 0 ? "" : hits.length > 0 ? words.allHidden : words.none);
		} catch (error) {
			if (!signal.aborted) this.draw([], hasStatus(error, 404) ? words.notIndexed : sentence(error));
		}
	}

	private noteInFront(): TFile | null {
		const file = this.app.workspace.getActiveFile();
		return file?.extension === "md" ? file : null;
	}

	/** Draw what was found, or say why there is nothing. */
	private draw(hits: readonly Hit[], nothing = ""): void {
		const { contentEl, file } = this;
		this.shown = hits;
		contentEl.empty();
		add(contentEl, "div", "tarsd-related-head", file ? words.to(file.basename) : words.title);
		if (nothing !== "") add(contentEl, "div", "tarsd-related-none", nothing, { role: "status" });
		const list = add(contentEl, "ul", "tarsd-related-list");
		hits.forEach((hit, at) => {
			const item = add(list, "li", "tarsd-related-item");
			addLink(item, hit.title, linktextOf(hit), { "data-tarsd-source": at });
			drawPassage(item, hit, hit.path.split("/").slice(0, -1).join("/"));
			const why = add(item, "div", "tarsd-related-why");
			for (const reason of reasons(hit.why, words.similar)) {
				add(why, "span", "tarsd-related-reason", reason);
			}
		});
	}
}
