import { Keymap, Notice, Platform, renderMatches, SuggestModal } from "obsidian";
import type { Hit } from "../protocol/events";
import { linktextOf, linkTo, openPlace } from "../vault/links";
import { isConversation } from "../vault/own";
import { clientOf } from "./asking";
import { sentence } from "./errors";
import { excerpt, headingOf, matchesIn, readable } from "./passage";
import type { Services } from "./services";

/** How long typing has to rest before the search by meaning, which costs more, is begun. */
const REST_MS = 250;
const LIMIT = 30;

/**
 * Search as one types: what has the words is there at once, and the search by words and meaning takes its place when it
 * has come, unless the person has begun to choose.
 */
export class SearchModal extends SuggestModal<Hit> {
	private pending: AbortController | null = null;
	private timer: number | null = null;
	private chosen = false;
	private better: { query: string; hits: Hit[] } | null = null;

	constructor(private readonly services: Services) {
		super(services.app);
		const words = services.t.search;
		this.limit = LIMIT;
		this.emptyStateText = words.empty;
		this.setPlaceholder(words.placeholder);
		this.modalEl.addClass("tarsd-search");
		const mod = Platform.isMacOS ? "⌘ ↵" : "Ctrl ↵";
		this.setInstructions([
			{ command: "↵", purpose: words.open },
			{ command: mod, purpose: words.openTab },
			{ command: "Shift ↵", purpose: words.insert },
			{ command: "Esc", purpose: words.dismiss },
		]);
		// the list listens to Enter alone; the keys with it mean something else here
		for (const modifiers of [["Mod" as const], ["Shift" as const]]) {
			this.scope.register(modifiers, "Enter", (event) => {
				if (!event.isComposing) this.selectActiveSuggestion(event);
				return false;
			});
		}
		this.inputEl.addEventListener("keydown", (event) => {
			if (event.key === "ArrowDown" || event.key === "ArrowUp") this.chosen = true;
		});
	}

	override onClose(): void {
		this.cancel();
		super.onClose();
	}

	async getSuggestions(typed: string): Promise<Hit[]> {
		const query = typed.trim();
		const words = this.services.t.search;
		if (this.better?.query === query) {
			const { hits } = this.better;
			this.emptyStateText = words.nothing;
			return hits;
		}
		this.cancel();
		if (query === "") {
			this.emptyStateText = words.empty;
			return [];
		}
		this.pending = new AbortController();
		const { signal } = this.pending;
		try {
			const hits = await this.ask(query, "fts", signal);
			if (signal.aborted) return [];
			this.emptyStateText = hits.length > 0 ? words.nothing : words.searching;
			this.timer = window.setTimeout(() => void this.improve(query, signal), REST_MS);
			return hits;
		} catch (error) {
			if (!signal.aborted) this.emptyStateText = sentence(error);
			return [];
		}
	}

	renderSuggestion(hit: Hit, el: HTMLElement): void {
		const query = this.inputEl.value;
		el.addClass("mod-complex", "tarsd-hit");
		const content = el.createDiv("suggestion-content");
		renderMatches(content.createDiv("suggestion-title"), hit.title, matchesIn(hit.title, query));
		const place = [hit.path, headingOf(hit)].filter(Boolean).join(" › ");
		content.createDiv({ cls: "tarsd-hit-place", text: place });
		const passage = excerpt(readable(hit), query);
		renderMatches(content.createDiv("suggestion-note tarsd-hit-text"), passage, matchesIn(passage, query));
		const { search } = this.services.t;
		const mark = hit.collection !== "" ? search.elsewhere(hit.collection) : isConversation(this.app, hit) ? search.conversation : "";
		if (mark !== "") el.createDiv("suggestion-aux").createSpan({ cls: "suggestion-flair", text: mark });
	}

	onChooseSuggestion(hit: Hit, event: MouseEvent | KeyboardEvent): void {
		if (event.shiftKey) this.insert(hit);
		else void this.follow(hit, Keymap.isModEvent(event));
	}

	private async follow(hit: Hit, where: ReturnType<typeof Keymap.isModEvent>): Promise<void> {
		if (!(await openPlace(this.app, hit, { source: "", where }))) new Notice(this.services.t.search.notHere(hit.title));
	}

	private insert(hit: Hit): void {
		const { search } = this.services.t;
		const source = this.app.workspace.getActiveFile()?.path ?? "";
		const link = linkTo(this.app, hit, source, linktextOf(hit).includes("#") ? hit.heading || hit.title : "");
		if (link === null) new Notice(search.notHere(hit.title));
		else if (!this.services.insertAtCursor(link)) new Notice(search.noEditor);
	}

	/** Conversations repeat what notes say, so they come after all others. */
	private async ask(query: string, mode: "fts" | "hybrid", signal: AbortSignal): Promise<Hit[]> {
		const { hits } = await clientOf(this.services).search(query, { mode, limit: LIMIT }, signal);
		const logs = new Set(hits.filter((hit) => isConversation(this.app, hit)));
		return [...hits.filter((hit) => !logs.has(hit)), ...logs];
	}

	/** The better answer comes by the same way as the first: as if the same had been typed again. */
	private async improve(query: string, signal: AbortSignal): Promise<void> {
		let hits: Hit[];
		try {
			hits = await this.ask(query, "hybrid", signal);
		} catch {
			// what has the words stays
			hits = [];
			if (this.resultContainerEl.querySelector(".suggestion-item")) return;
		}
		if (signal.aborted || this.chosen || this.inputEl.value.trim() !== query) return;
		this.better = { query, hits };
		this.inputEl.dispatchEvent(new Event("input", { bubbles: true }));
	}

	private cancel(): void {
		this.pending?.abort();
		this.pending = null;
		if (this.timer !== null) window.clearTimeout(this.timer);
		this.timer = null;
		this.chosen = false;
		this.better = null;
	}
}
