/** Text as it is compared when a person looks for something. */

/** Without case and accents; "Ünïx" and "unix" are the same. */
export function fold(text: string): string {
	return text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
}

/** The words of a query, folded. */
export function words(query: string): string[] {
	return fold(query).split(/\s+/).filter(Boolean);
}

/** Text on one line, without white space around it. */
export function oneLine(text: string): string {
	return text.trim().replace(/\s+/g, " ");
}
