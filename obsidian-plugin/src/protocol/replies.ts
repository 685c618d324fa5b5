import { flag, isObject, list, number, object, text, texts } from "./values";

/** Who answers. */
export interface Hello {
	name: string;
	version: string;
	protocol: number;
	vault: { id: string; name: string; path: string };
	collections: { name: string; path: string }[];
	chat_model: string;
	embedding_model: string;
	features: string[];
}

/** Something that a person may want to mend; `path` is "" when it concerns everything. */
export interface Problem {
	path: string;
	collection: string;
	line: number;
	reason: string;
	hint: string;
}

/** The state of the daemon and its index. */
export interface Status {
	vault: { id: string; name: string; path: string };
	counts: { notes: number; chunks: number; pending: number; skipped: number; failed: number; excluded: number };
	behind: number;
	watch: { state: string; reason: string; hint: string };
	embedding: { model: string; state: string; done: number; remaining: number; reason: string; hint: string };
	chat: { model: string; state: string; local: boolean };
	problems: Problem[];
	process: { pid: number; version: string; uptime_s: number; rss_mb: number };
}

/** A passage that was found; `why` says in words by what, `link` is the target of a wikilink without brackets. */
export interface Hit {
	path: string;
	title: string;
	heading: string;
	start_line: number;
	end_line: number;
	text: string;
	score: number;
	relevance: number;
	why: string[];
	collection: string;
	memory_type: string;
	link: string;
}

/** What a search found; `degraded` says what could not be used for it. */
export interface Hits {
	hits: Hit[];
	behind: number;
	took_ms: number;
	degraded: string;
}

/** A note of the list; `modified` in seconds since 1970. */
export interface NoteRow {
	path: string;
	collection: string;
	title: string;
	aliases: string[];
	tags: string[];
	modified: number;
}

/** Who answers, or null when this is no daemon at all. */
export function parseHello(value: unknown): Hello | null {
	if (!isObject(value) || value["name"] !== "tarsd" || typeof value["protocol"] !== "number") return null;
	return {
		name: "tarsd",
		version: text(value["version"]),
		protocol: value["protocol"],
		vault: vault(value["vault"]),
		collections: list(value["collections"], (one) => ({ name: text(one["name"]), path: text(one["path"]) })),
		chat_model: text(value["chat_model"]),
		embedding_model: text(value["embedding_model"]),
		features: texts(value["features"]),
	};
}

/** The state of the daemon; what is missing is empty. */
export function parseStatus(value: unknown): Status {
	const given = object(value);
	const counts = object(given["counts"]);
	const watch = object(given["watch"]);
	const embedding = object(given["embedding"]);
	const chat = object(given["chat"]);
	const process = object(given["process"]);
	return {
		vault: vault(given["vault"]),
		counts: {
			notes: number(counts["notes"]),
			chunks: number(counts["chunks"]),
			pending: number(counts["pending"]),
			skipped: number(counts["skipped"]),
			failed: number(counts["failed"]),
			excluded: number(counts["excluded"]),
		},
		behind: number(given["behind"]),
		watch: { state: text(watch["state"]), reason: text(watch["reason"]), hint: text(watch["hint"]) },
		embedding: {
			model: text(embedding["model"]),
			state: text(embedding["state"]),
			done: number(embedding["done"]),
			remaining: number(embedding["remaining"]),
			reason: text(embedding["reason"]),
			hint: text(embedding["hint"]),
		},
		chat: { model: text(chat["model"]), state: text(chat["state"]), local: flag(chat["local"]) },
		problems: list(given["problems"], (one) => ({
			path: text(one["path"]),
			collection: text(one["collection"]),
			line: number(one["line"]),
			reason: text(one["reason"]),
			hint: text(one["hint"]),
		})),
		process: {
			pid: number(process["pid"]),
			version: text(process["version"]),
			uptime_s: number(process["uptime_s"]),
			rss_mb: number(process["rss_mb"]),
		},
	};
}

/** The passages that a search or "related" found. */
export function parseHits(value: unknown): Hits {
	const given = object(value);
	const hits = list(given["hits"], (one): Hit | null => {
		const path = text(one["path"]);
		if (path === "") return null;
		return {
			path,
			title: text(one["title"], path),
			heading: text(one["heading"]),
			start_line: number(one["start_line"]),
			end_line: number(one["end_line"]),
			text: text(one["text"]),
			score: number(one["score"]),
			relevance: number(one["relevance"]),
			why: texts(one["why"]),
			collection: text(one["collection"]),
			memory_type: text(one["memory_type"]),
			link: text(one["link"]),
		};
	});
	return {
		hits,
		behind: number(given["behind"]),
		took_ms: number(given["took_ms"]),
		degraded: text(given["degraded"]),
	};
}

/** The notes of the list. */
export function parseNotes(value: unknown): { notes: NoteRow[]; total: number } {
	const given = object(value);
	const notes = list(given["notes"], (one): NoteRow | null => {
		const path = text(one["path"]);
		if (path === "") return null;
		return {
			path,
			collection: text(one["collection"]),
			title: text(one["title"], path),
			aliases: texts(one["aliases"]),
			tags: texts(one["tags"]),
			modified: number(one["modified"]),
		};
	});
	return { notes, total: number(given["total"], notes.length) };
}

function vault(value: unknown): { id: string; name: string; path: string } {
	const given = object(value);
	return { id: text(given["id"]), name: text(given["name"]), path: text(given["path"]) };
}

/** A page of the long poll. */
export function parsePage(value: unknown): { events: unknown[]; ended: boolean } {
	const given = object(value);
	const events: unknown[] = Array.isArray(given["events"]) ? given["events"] : [];
	return { events, ended: flag(given["ended"]) };
}
