import type * as Real from "obsidian";

/** The other names of a note, from its properties; the package has no such function. */
export const parseFrontMatterAliases: typeof Real.parseFrontMatterAliases = (properties: Record<string, unknown> | null) => {
	const given = properties?.["aliases"] ?? properties?.["alias"];
	const list: unknown[] = typeof given === "string" ? given.split(",") : Array.isArray(given) ? given : [];
	const names = list.map((one) => String(one).trim()).filter(Boolean);
	return names.length > 0 ? names : null;
};
