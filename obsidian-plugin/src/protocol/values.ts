/** A JSON object whose fields nothing is known about yet. */
export type Json = Record<string, unknown>;

/** `value` as an object; anything else is an empty one, so that reading on never throws. */
export function object(value: unknown): Json {
	return isObject(value) ? value : {};
}

/** Whether `value` is a JSON object (and no list). */
export function isObject(value: unknown): value is Json {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A string, or `fallback`. */
export function text(value: unknown, fallback = ""): string {
	return typeof value === "string" ? value : fallback;
}

/** A finite number, or `fallback`. */
export function number(value: unknown, fallback = 0): number {
	return typeof value === "number" && Number.isFinite(value) ? value : fallback;
}

/** True only for true. */
export function flag(value: unknown): boolean {
	return value === true;
}

/** The strings of a list; everything else in it is left out. */
export function texts(value: unknown): string[] {
	return Array.isArray(value) ? value.filter((one): one is string => typeof one === "string") : [];
}

/** The objects of a list, each read by `read`; what `read` gives up on (null) is left out. */
export function list<T>(value: unknown, read: (one: Json) => T | null): T[] {
	if (!Array.isArray(value)) return [];
	return value.filter(isObject).map(read).filter((one): one is T & NonNullable<T> => one !== null);
}

/** One of `allowed`, or null. */
export function choice<T extends string>(value: unknown, allowed: readonly T[]): T | null {
	return allowed.find((one) => one === value) ?? null;
}
