import { PASSAGE, titled } from "./parts";
import { flag, givenNumber, listOf, number, oneOf, shape, strict, text, texts, type Reader } from "./values";

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
	counts: { notes: number; pending: number };
	behind: number;
	embedding: { model: string; state: string; done: number; remaining: number };
	chat: { model: string };
	problems: Problem[];
}

/** A passage that was found; `why` says in words by what, `link` is the target of a wikilink without brackets. */
export interface Hit {
	path: string;
	title: string;
	heading: string;
	start_line: number;
	end_line: number;
	text: string;
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
	degraded: string;
}

/** A prompt of the vault: the command `/name`. `problem` says what keeps it from use. */
export interface Prompt {
	name: string;
	path: string;
	description: string;
	arguments: string;
	problem: string;
}

const vault = shape({ id: text, name: text, path: text });

/** Who answers, or null when this is no daemon at all. */
export const parseHello: Reader<Hello | null> = strict({
	name: oneOf(["tarsd"]),
	version: text,
	protocol: givenNumber,
	vault,
	collections: listOf(shape({ name: text, path: text })),
	chat_model: text,
	embedding_model: text,
	features: texts,
});

/** The state of the daemon; what is missing is empty. */
export const parseStatus: Reader<Status> = shape({
	vault,
	counts: shape({ notes: number, pending: number }),
	behind: number,
	embedding: shape({ model: text, state: text, done: number, remaining: number }),
	chat: shape({ model: text }),
	problems: listOf(shape({ path: text, collection: text, line: number, reason: text, hint: text })),
});

/** The passages that a search or "related" found. */
export const parseHits: Reader<Hits> = shape({
	hits: listOf(titled(strict({ ...PASSAGE, text, why: texts, memory_type: text }))),
	behind: number,
	degraded: text,
});

/** A page of the long poll. */
export const parsePage: Reader<{ events: unknown[]; ended: boolean }> = shape({
	events: (events) => (Array.isArray(events) ? (events as unknown[]) : []),
	ended: flag,
});

/** The prompts of the vault. */
export const parsePrompts: Reader<{ prompts: Prompt[] }> = shape({
	prompts: listOf(strict({ name: text, path: text, description: text, arguments: text, problem: text })),
});
