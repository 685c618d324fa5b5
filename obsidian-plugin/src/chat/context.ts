/** What goes along with a question: the current note, the selection, and what the person added; all of it removable. */

/** Something that goes along, as it is shown above the box. */
export type Chip =
	| { readonly kind: "note"; readonly path: string; readonly name: string }
	| { readonly kind: "current"; readonly path: string; readonly name: string }
	| { readonly kind: "selection"; readonly path: string; readonly name: string; readonly text: string }
	| { readonly kind: "folder"; readonly path: string }
	| { readonly kind: "tag"; readonly tag: string };

/** A note as the workspace knows it. */
export interface Note {
	readonly path: string;
	readonly name: string;
}

/** Text that is marked in a note's editor. */
export interface Selection extends Note {
	readonly text: string;
}

/** `refused` are the keys of the current note and the selection that the person took away. */
export interface Context {
	readonly current: Note | null;
	readonly selection: Selection | null;
	readonly added: readonly Chip[];
	readonly refused: readonly string[];
}

/** The body of `POST /v1/turns`, as the plugin sends it. */
export interface TurnBody {
	conversation: string;
	message: string;
	request_id: string;
	notes?: string[];
	selection?: string;
	/** The note that the selection is from, so that a private one stays private though only the selection is sent. */
	selection_note?: string;
	writer: "client";
	approvals: true;
}

/** A request, and how many notes of folders and tags were too many for it. */
export interface Request {
	readonly body: TurnBody;
	readonly leftOut: number;
}

/** So many notes the daemon takes with one question. */
export const MOST_NOTES = 50;

/** So many characters the daemon takes as a question. */
export const MOST_CHARACTERS = 200_000;

/** How the keys of selections begin. */
const SELECTION = "selection ";

/** Nothing goes along. */
export function noContext(): Context {
	return { current: null, selection: null, added: [], refused: [] };
}

/** What tells one chip from another. */
export function keyOf(chip: Chip): string {
	const { kind } = chip;
	const what = kind === "tag" ? chip.tag.toLowerCase() : kind === "selection" ? `${chip.path} ${chip.text}` : chip.path;
	return `${kind} ${what}`;
}

/** Another note is in front, or none. What was taken away comes back with the next note, not before. */
export function withCurrent(context: Context, note: Note | null): Context {
	const { current, refused } = context;
	if (current?.path === note?.path && current?.name === note?.name) return context;
	return { ...context, current: note, refused: refused.filter((key) => key.startsWith(SELECTION)) };
}

/** Other text is marked, or none; white space alone is none. */
export function withSelection(context: Context, selection: Selection | null): Context {
	const marked = selection?.text.trim() ? selection : null;
	const before = context.selection;
	if (before?.path === marked?.path && before?.text === marked?.text) return context;
	return { ...context, selection: marked, refused: context.refused.filter((key) => !key.startsWith(SELECTION)) };
}

/** The person adds something, or asks about the current note or the selection that they had taken away. */
export function withChip(context: Context, chip: Chip): Context {
	const key = keyOf(chip);
	if (chip.kind === "current" || chip.kind === "selection") {
		const { kind, ...note } = chip;
		return { ...context, [kind]: note, refused: context.refused.filter((one) => one !== key) };
	}
	if (context.added.some((one) => keyOf(one) === key)) return context;
	return { ...context, added: [...context.added, chip] };
}

/** The person takes something away. */
export function without(context: Context, chip: Chip): Context {
	const key = keyOf(chip);
	if (chip.kind === "current" || chip.kind === "selection") {
		return context.refused.includes(key) ? context : { ...context, refused: [...context.refused, key] };
	}
	return { ...context, added: context.added.filter((one) => keyOf(one) !== key) };
}

/** A note or folder has another path now. */
export function renamed(context: Context, from: string, to: string): Context {
	const move = (path: string): string =>
		path === from ? to : path.startsWith(`${from}/`) ? to + path.slice(from.length) : path;
	const moved = <T extends { path: string; name?: string }>(one: T): T => {
		const path = move(one.path);
		if (path === one.path) return one;
		return { ...one, path, ...(one.name !== undefined && { name: nameOf(path) }) };
	};
	const current = context.current && moved(context.current);
	return {
		current,
		selection: context.selection && moved(context.selection),
		added: context.added.map((chip) => (chip.kind === "tag" ? chip : moved(chip))),
		refused: context.refused.map((key) => (key === `current ${context.current?.path}` ? `current ${current?.path}` : key)),
	};
}

/** A question was sent: what was added for it is gone, the current note and the selection stay as they are shown. */
export function sent(context: Context): Context {
	return context.added.length ? { ...context, added: [] } : context;
}

/** What is shown above the box and will be sent. A selection goes instead of the current note, never with it. */
export function chips(context: Context): Chip[] {
	const { current, selection, added, refused } = context;
	const offered: Chip[] = [];
	if (selection) offered.push({ kind: "selection", ...selection });
	if (current) offered.push({ kind: "current", ...current });
	const first = offered.find((chip) => !refused.includes(keyOf(chip)));
	if (!first) return [...added];
	const repeated = first.kind === "current" ? first.path : null;
	return [first, ...added.filter((chip) => !(chip.kind === "note" && chip.path === repeated))];
}

/** Whether there is anything to send. */
export function sendable(message: string): boolean {
	return message.trim() !== "";
}

/** Whether the daemon would refuse the message for its length, in characters and not in halves of them. */
export function tooLong(message: string): boolean {
	return message.length > MOST_CHARACTERS && Array.from(trimmed(message)).length > MOST_CHARACTERS;
}

/** The message as it is sent: without empty lines around it, its first line's indentation kept. */
export function trimmed(message: string): string {
	return message.replace(/^(?:[^\S\n]*\n)+/, "").trimEnd();
}

/**
 * The request for a question. `expand` names the notes of a folder or with a tag, the most important first; notes that
 * the person named themselves come before those.
 */
export function toRequest(
	question: { conversation: string; request_id: string; message: string },
	context: Context,
	expand: (chip: Extract<Chip, { kind: "folder" | "tag" }>) => readonly string[],
): Request {
	const body: TurnBody = { ...question, message: trimmed(question.message), writer: "client", approvals: true };
	const named: string[] = [];
	const spread: string[] = [];
	for (const chip of chips(context)) {
		if (chip.kind === "selection") {
			body.selection = chip.text;
			body.selection_note = chip.path;
		} else if (chip.kind === "folder" || chip.kind === "tag") spread.push(...expand(chip));
		else named.push(chip.path);
	}
	const all = [...new Set([...named, ...spread])];
	if (all.length) body.notes = all.slice(0, MOST_NOTES);
	return { body, leftOut: Math.max(0, all.length - MOST_NOTES) };
}

/** What a note at this path is called. */
export function nameOf(path: string): string {
	return path.replace(/^.*\/|\.md$/gi, "");
}
