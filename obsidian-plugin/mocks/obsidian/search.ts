import type * as Real from "obsidian";
import { prepareFuzzySearch as rough } from "obsidian-test-mocks/obsidian";

/** In the app a better match has the greater score, and a match in one piece is better than one in several. */
export const prepareFuzzySearch: typeof Real.prepareFuzzySearch = (query) => {
	const search = rough(query);
	return (text) => {
		const found = search(text);
		if (found === null) return null;
		const start = found.matches[0]?.[0] ?? 0;
		return { matches: found.matches, score: -Math.max(0, found.matches.length - 1) - start / 100 - text.length / 10_000 };
	};
};

/** Writes a text with its matches marked. */
export const renderMatches: typeof Real.renderMatches = (el, text, matches, offset = 0) => {
	let at = 0;
	for (const [from, to] of matches ?? []) {
		const start = Math.max(from + offset, at);
		const end = Math.min(to + offset, text.length);
		if (end <= start) continue;
		el.append(text.slice(at, start));
		const mark = document.createElement("span");
		mark.className = "suggestion-highlight";
		mark.textContent = text.slice(start, end);
		el.append(mark);
		at = end;
	}
	el.append(text.slice(at));
};

export const renderResults: typeof Real.renderResults = (el, text, result, offset) => {
	renderMatches(el, text, result.matches, offset);
};
