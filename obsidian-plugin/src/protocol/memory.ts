import { flag, list, number, object, text, texts } from "./values";

/** A line of the memory; `line` is exactly what `forget` wants. */
export interface MemoryLine {
	line: string;
	section: string;
	date: string;
	session: string;
	private: boolean;
}

/** Everything that is remembered. */
export interface Memory {
	enabled: boolean;
	facts: MemoryLine[];
	rules: MemoryLine[];
	noticed: MemoryLine[];
	problem: string;
}

/** A change of the memory that was made. */
export interface MemoryChange {
	path: string;
	diff: string;
}

/** A change that was taken back; the undo is a change itself, by `id`. `trashed` is a path, or "". */
export interface Undone {
	id: string;
	path: string;
	hash: string | null;
	trashed: string;
}

/** A model that a provider offers. */
export interface ModelInfo {
	id: string;
	local: boolean;
	context: number;
	tools: boolean;
	note: string;
}

/** The models that are configured and those there are. */
export interface Models {
	chat: { configured: string; fallback: string; model: string; local: boolean };
	providers: { provider: string; state: string; reason: string; hint: string; models: ModelInfo[] }[];
	embedding: { model: string };
}

/** A fact or rule that a review proposes; `replaces` is the line whose place it would take. */
export interface ReviewProposal {
	id: string;
	kind: string;
	text: string;
	why: string;
	replaces: string;
	private: boolean;
}

/** The proposals of a review, and what they would change. */
export interface Review {
	review: string;
	model: string;
	proposals: ReviewProposal[];
	diff: string;
}

/** What is remembered. */
export function parseMemory(value: unknown): Memory {
	const given = object(value);
	const lines = (name: string): MemoryLine[] =>
		list(given[name], (one): MemoryLine | null => {
			const line = text(one["line"]);
			if (line === "") return null;
			return {
				line,
				section: text(one["section"]),
				date: text(one["date"]),
				session: text(one["session"]),
				private: flag(one["private"]),
			};
		});
	return {
		enabled: given["enabled"] !== false,
		facts: lines("facts"),
		rules: lines("rules"),
		noticed: lines("noticed"),
		problem: text(given["problem"]),
	};
}

/** What became of a change of the memory. */
export function parseMemoryChange(value: unknown): MemoryChange {
	const given = object(value);
	return { path: text(given["path"]), diff: text(given["diff"]) };
}

/** What was taken back. */
export function parseUndone(value: unknown): Undone {
	const given = object(value);
	const hash = given["hash"];
	return {
		id: text(given["id"]),
		path: text(given["path"]),
		hash: typeof hash === "string" ? hash : null,
		trashed: text(given["trashed"]),
	};
}

/** The models there are. */
export function parseModels(value: unknown): Models {
	const given = object(value);
	const chat = object(given["chat"]);
	return {
		chat: {
			configured: text(chat["configured"]),
			fallback: text(chat["fallback"]),
			model: text(chat["model"]),
			local: flag(chat["local"]),
		},
		providers: list(given["providers"], (one) => ({
			provider: text(one["provider"]),
			state: text(one["state"]),
			reason: text(one["reason"]),
			hint: text(one["hint"]),
			models: list(one["models"], (model) => ({
				id: text(model["id"]),
				local: flag(model["local"]),
				context: number(model["context"]),
				tools: flag(model["tools"]),
				note: text(model["note"]),
			})),
		})),
		embedding: { model: text(object(given["embedding"])["model"]) },
	};
}

/** The proposals of a review. */
export function parseReview(value: unknown): Review {
	const given = object(value);
	return {
		review: text(given["review"]),
		model: text(given["model"]),
		proposals: list(given["proposals"], (one): ReviewProposal | null => {
			const id = text(one["id"]);
			if (id === "") return null;
			return {
				id,
				kind: text(one["kind"]),
				text: text(one["text"]),
				why: text(one["why"]),
				replaces: text(one["replaces"]),
				private: flag(one["private"]),
			};
		}),
		diff: text(given["diff"]),
	};
}

/** What applying a review wrote. */
export function parseApplied(value: unknown): { written: string[]; diff: string } {
	const given = object(value);
	return { written: texts(given["written"]), diff: text(given["diff"]) };
}
