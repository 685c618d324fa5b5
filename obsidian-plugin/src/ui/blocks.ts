/** Markdown that grows, cut into blocks, so that only the last one has to be drawn again. Pure. */

const FENCE = /^[ \t]*(?:(?:[-*+]|\d+[.)]|>)[ \t]+)*(`{3,}|~{3,})/;
/** A line that may belong to what stands above the empty line before it: a list, a quote, an indented paragraph. */
const JOINS = /^(?:[ \t]|[-*+][ \t]|\d{1,9}[.)][ \t]|>|[-*+]$)/;
/** Definitions are valid in a whole text, so a text that has them is one block. */
const DEFINES = /^ {0,3}\[[^[\]\n]+\]:|\[\^[^[\]\n]+\]/m;

/**
 * The blocks of a text, in order; joined they are the text. Every block but the last stays as it is while the text
 * grows, unless a definition comes.
 */
export function blocksOf(markdown: string): string[] {
	if (DEFINES.test(markdown)) return [markdown];
	const blocks: string[] = [];
	let block = "";
	let fence = "";
	let math = false;
	let blank = false;
	for (const line of markdown.match(/[^\n]*\n|[^\n]+$/g) ?? []) {
		const bare = line.trim();
		if (blank && bare !== "" && fence === "" && !math && !JOINS.test(line)) {
			blocks.push(block);
			block = "";
		}
		block += line;
		const mark = FENCE.exec(line)?.[1] ?? "";
		if (fence !== "") {
			if (mark.startsWith(fence) && bare.endsWith(mark)) fence = "";
		} else if (math) {
			math = !bare.endsWith("$$");
		} else if (mark !== "" && !bare.slice(bare.indexOf(mark) + mark.length).includes("`")) {
			fence = mark;
		} else if (bare.startsWith("$$") && !bare.slice(2).includes("$$")) {
			math = true;
		}
		blank = bare === "";
	}
	return block === "" ? blocks : [...blocks, block];
}
