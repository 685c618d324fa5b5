import { debounce, Keymap, Notice, renderMatches, type PaneType } from "obsidian";
import { en } from "../en";
import type { Hit } from "../protocol/events";
import { linktextOf, linkTo, openPlace } from "../vault/links";
import { isConversation } from "../vault/own";
import { clientOf } from "./asking";
import { add } from "./dom";
import { ListModal } from "./list-modal";
import { excerpt, headingOf, matchesIn, readable } from "./passage";
import type { Services } from "./services";

const words = en.search;

/** How long typing has to rest before the search by meaning, which costs more, is begun. */
const REST_MS = 250;
const LIMIT = 30;

/**
 * Search as one types: what has the words is there at once, and the search by words and meaning takes its place when it
 * has come, unless the person has begun to choose.
 */
export class SearchModal extends ListModal<Hit> {
	private pending = new AbortController();
	private chosen = false;
	private better: { query: string; hits: Hit[] } | null = null;
	private readonly improve = debounce((query: string, signal: AbortSignal) => void this.lookFurther(query, signal), REST_MS, true);

	constructor(services: Services) {
		super(services, en.commands.search, [
			[[], "Enter", words.open],
			[["Mod"], "Enter", en.chat.openInTab],
			[["Shift"], "Enter", words.insert],
		]);
		this.limit = LIMIT;
		this.inputEl.addEventListener("keydown", ({ key }) => {
			if (key.startsWith("Arrow")) this.chosen = true;
		});
	}

	override onClose(): void {
		this.pending.abort();
		super.onClose();
	}

	protected async lookUp(query: string): Promise<Hit[]> {
		if (this.better?.query === query) {
			this.emptyStateText = words.nothing;
			return this.better.hits;
		}
		this.pending.abort();
		this.better = null;
		this.chosen = false;
		this.emptyStateText = "";
		if (query === "") return [];
		this.pending = new AbortController();
		const { signal } = this.pending;
		const hits = await this.ask(query, "fts", signal);
		if (signal.aborted) return [];
		this.emptyStateText = words.searching;
		this.improve(query, signal);
		return hits;
	}

	renderSuggestion(hit: Hit, el: HTMLElement): void {
		const query = this.inputEl.value;
		el.addClass("mod-complex", "tarsd-hit");
		const content = add(el, "div", "suggestion-content");
		renderMatches(add(content, "div", "suggestion-title"), hit.title, matchesIn(hit.title, query));
		drawPassage(content, hit, hit.path, query);
		const mark = hit.collection !== "" ? words.elsewhere(hit.collection) : isConversation(this.app, hit) ? words.conversation : "";
		if (mark !== "") add(add(el, "div", "suggestion-aux"), "span", "suggestion-flair", mark);
	}

	onChooseSuggestion(hit: Hit, event: MouseEvent | KeyboardEvent): void {
		if (event.shiftKey) this.insert(hit);
		else void this.follow(hit, Keymap.isModEvent(event));
	}

	private async follow(hit: Hit, where: PaneType | boolean): Promise<void> {
		if (!(await openPlace(this.app, hit, { source: "", where }))) new Notice(words.notHere(hit.title));
	}

	private insert(hit: Hit): void {
		const source = this.app.workspace.getActiveFile()?.path ?? "";
		const link = linkTo(this.app, hit, source, linktextOf(hit).includes("#") ? hit.heading || hit.title : "");
		if (link === null) new Notice(words.notHere(hit.title));
		else if (!this.services.insertAtCursor(link)) new Notice(en.chat.noEditor);
	}

	/** Conversations repeat what notes say, so they come after all others. */
	private async ask(query: string, mode: "fts" | "hybrid", signal: AbortSignal): Promise<Hit[]> {
		const { hits } = await clientOf(this.services).search(query, { mode, limit: LIMIT }, signal);
		const logs = new Set(hits.filter((hit) => isConversation(this.app, hit)));
		return [...hits.filter((hit) => !logs.has(hit)), ...logs];
	}

	/** The better answer comes by the same way as the first: as if the same had been typed again. */
	private async lookFurther(query: string, signal: AbortSignal): Promise<void> {
		if (signal.aborted) return;
		const hits = await this.ask(query, "hybrid", signal).catch(() => []);
		if (signal.aborted || this.chosen) return;
		// what has the words stays when there is nothing better, or it failed
		if (hits.length === 0 && this.resultContainerEl.querySelector(".tarsd-hit")) return;
		this.better = { query, hits };
		this.again();
	}
}

/** Where a passage is and what it says, for below its title; the words of the query are marked in it. */
export function drawPassage(el: HTMLElement, hit: Hit, place: string, query = ""): void {
	const where = [place, headingOf(hit)].filter(Boolean).join(" › ");
	if (where !== "") add(el, "div", "tarsd-hit-place", where);
	const passage = excerpt(readable(hit), query);
	if (passage !== "") renderMatches(add(el, "div", "tarsd-hit-text"), passage, matchesIn(passage, query));
}
