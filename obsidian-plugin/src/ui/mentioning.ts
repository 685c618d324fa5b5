import { Component, type App } from "obsidian";
import type { Chip } from "../chat/context";
import { insert, mentionAt, suggest, type Mention, type Prepared } from "../chat/mentions";
import { en } from "../en";
import { candidates } from "./candidates";
import { Suggestions } from "./suggestions";

/** What naming a note in the box needs of its surroundings. */
export interface MentionHost {
	readonly app: App;
	/** The text of the box was changed; `chip` goes along with the question. */
	readonly changed: (chip: Chip | null) => void;
	readonly say: (words: string) => void;
}

/** `[[` and `@` in the box: finds out what is being named, offers what there is, and puts in what is chosen. */
export class Mentioning extends Component {
	private readonly suggestions: Suggestions;
	private mention: Mention | null = null;
	private known: Prepared[] | null = null;
	/** Where a list was closed by the person: it stays closed until another mention begins. */
	private dismissed = -1;

	constructor(
		frame: HTMLElement,
		private readonly box: HTMLTextAreaElement,
		private readonly host: MentionHost,
	) {
		super();
		this.suggestions = this.addChild(
			new Suggestions(frame, box, (item) => {
				this.choose(item);
			}),
		);
	}

	override onload(): void {
		for (const name of ["keyup", "click", "compositionend"] as const) {
			this.registerDomEvent(this.box, name, () => {
				this.look();
			});
		}
		this.registerDomEvent(this.box, "blur", () => {
			this.end();
		});
	}

	/** Whether there is something to choose. */
	get open(): boolean {
		return this.suggestions.open;
	}

	move(by: 1 | -1): void {
		this.suggestions.move(by);
	}

	chooseSelected(): void {
		if (this.suggestions.selected) this.choose(this.suggestions.selected);
	}

	/** The person wants no list here. */
	dismiss(): void {
		this.dismissed = this.mention?.from ?? -1;
		this.end();
	}

	/** Begin to name something, as with the button. */
	begin(): void {
		const { box } = this;
		box.focus();
		const before = box.value.slice(0, box.selectionStart);
		const gap = before === "" || /\s$/.test(before) ? "" : " ";
		this.dismissed = -1;
		box.setRangeText(`${gap}@`, box.selectionStart, box.selectionEnd, "end");
		this.host.changed(null);
	}

	end(): void {
		this.mention = null;
		this.known = null;
		this.suggestions.close();
	}

	/** The text or the caret is another one. */
	look(): void {
		const { box } = this;
		const found = box.selectionStart === box.selectionEnd ? mentionAt(box.value, box.selectionStart) : null;
		if (!found || found.from === this.dismissed) {
			if (!found) this.dismissed = -1;
			this.end();
			return;
		}
		const before = this.mention;
		if (before && before.from === found.from && before.to === found.to && before.query === found.query) return;
		this.mention = found;
		// read once for each mention: a vault may have many thousand notes
		this.known ??= candidates(this.host.app);
		const items = suggest(this.known, found);
		this.suggestions.set(items);
		if (!before) this.host.say(items.length > 0 ? en.composer.suggestionCount(items.length) : en.composer.noSuggestions);
	}

	private choose(item: Prepared): void {
		if (!this.mention) return;
		const { candidate } = item;
		const root = candidate.kind === "folder" && candidate.path === "";
		// the whole vault has no path that could be written, but a name
		const written = root ? { ...candidate, path: item.label } : candidate;
		const { text, caret, chip } = insert(this.box.value, this.mention, written);
		this.box.value = text;
		this.box.setSelectionRange(caret, caret);
		this.end();
		this.dismissed = -1;
		this.host.changed(root ? { kind: "folder", path: "" } : chip);
		this.box.focus();
	}
}
