import type { App } from "obsidian";
import type { Chip } from "../chat/context";
import type { KeyAction } from "../chat/keys";
import { insert, mentionAt, prepare, suggest, type Candidate, type Mention, type Prepared } from "../chat/mentions";
import { en } from "../en";
import type { Prompt } from "../protocol/events";
import { candidates } from "./candidates";
import { suggestions } from "./suggestions";

/** What naming a note in the box needs of its surroundings. */
export interface MentionHost {
	readonly app: App;
	/** The text of the box was changed; `chip` goes along with the question. */
	readonly changed: (chip?: Chip | null) => void;
	readonly say: (words: string) => void;
	/** The person's own prompts. */
	readonly prompts: () => Promise<readonly Prompt[]>;
}

/** What the box asks for. */
export interface Mentioning {
	/** Whether there is something to choose. */
	readonly open: () => boolean;
	/** A key that is for the list, and not for the box. */
	readonly pressed: (action: KeyAction) => void;
	/** Begin to name something, as with the button. */
	readonly begin: () => void;
	/** The text or the caret is another one. */
	readonly look: () => void;
	readonly end: () => void;
}

/** The commands that the daemon answers, for a `/` at the beginning. */
const COMMANDS = prepare(Object.entries(en.composer.commands).map(([name, takes]) => ({ kind: "command", name, takes })));

function command({ name, arguments: takes, description, problem }: Prompt): Candidate {
	return { kind: "command", name, takes: [takes, problem || description].filter((part) => part !== "").join(" · ") };
}

/** `[[`, `@` and `/` in the box: finds out what is being named, offers what there is, and puts in what is chosen. */
export function mentioning(frame: HTMLElement, box: HTMLTextAreaElement, { app, changed, say, prompts }: MentionHost): Mentioning {
	let mention: Mention | null = null;
	let known: Prepared[] | null = null;
	/** Where a list was closed by the person: it stays closed until another mention begins. */
	let dismissed = -1;

	const choose = ({ candidate, label }: Prepared): void => {
		if (!mention) return;
		const root = candidate.kind === "folder" && candidate.path === "";
		// the whole vault has no path that could be written, but a name
		const { text, caret, chip } = insert(box.value, mention, root ? { ...candidate, path: label } : candidate);
		box.value = text;
		box.setSelectionRange(caret, caret);
		end();
		dismissed = -1;
		changed(root ? candidate : chip);
		box.focus();
	};
	const list = suggestions(frame, box, choose);

	const end = (): void => {
		if (mention) list.set([]);
		mention = known = null;
	};
	/** The prompts join the commands when they have come, as long as a command is being named. */
	const addPrompts = async (): Promise<void> => {
		const found = await prompts().catch(() => []);
		if (mention?.trigger !== "/") return;
		known = [...COMMANDS, ...prepare(found.map(command))];
		list.set(suggest(known, mention));
	};
	const look = (): void => {
		const found = box.selectionStart === box.selectionEnd ? mentionAt(box.value, box.selectionStart) : null;
		if (!found) dismissed = -1;
		if (!found || found.from === dismissed) {
			end();
			return;
		}
		const before = mention;
		if (before?.from === found.from && before.to === found.to && before.query === found.query) return;
		mention = found;
		// read once for each mention: a vault may have many thousand notes
		if (!known && found.trigger === "/") void addPrompts();
		known ??= found.trigger === "/" ? COMMANDS : candidates(app);
		const items = suggest(known, found);
		list.set(items);
		if (!before) say(items.length > 0 ? en.composer.suggestionCount(items.length) : en.composer.noSuggestions);
	};

	box.onkeyup = box.onclick = look;
	// an event that has no property of its own
	box.addEventListener("compositionend", look);
	// to the list and back is no way out of it
	box.onblur = list.el.onblur = ({ relatedTarget }) => {
		if (relatedTarget !== list.el && relatedTarget !== box) end();
	};

	return {
		open: () => list.selected() !== undefined,
		pressed: (action) => {
			const selected = list.selected();
			if (action === "next") list.move(1);
			else if (action === "previous") list.move(-1);
			else if (action === "choose" && selected) choose(selected);
			else if (action === "dismiss") {
				dismissed = mention?.from ?? -1;
				end();
			}
		},
		begin: () => {
			box.focus();
			const gap = /\S$/.test(box.value.slice(0, box.selectionStart)) ? " " : "";
			dismissed = -1;
			box.setRangeText(`${gap}@`, box.selectionStart, box.selectionEnd, "end");
			changed();
		},
		look,
		end,
	};
}
