/** A JSON object whose fields nothing is known about yet. */
export type Json = Record<string, unknown>;

/** Makes something of known type out of whatever was sent; never throws. */
export type Reader<T> = (value: unknown) => T;

/** Readers by the names of the fields that they read. */
type Readers = Readonly<Record<string, Reader<unknown>>>;
type Read<R extends Readers> = { [Name in keyof R]: ReturnType<R[Name]> };

/** What a reader gives for a field without which the whole object is of no use. */
const BROKEN = Symbol() as never;

/** `value` as an object; anything else is an empty one, so that reading on never throws. */
export function object(value: unknown): Json {
	return isObject(value) ? value : {};
}

/** Whether `value` is a JSON object (and no list). */
export function isObject(value: unknown): value is Json {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A string, or "". */
export function text(value: unknown): string {
	return typeof value === "string" ? value : "";
}

/** A finite number, or `fallback`. */
export function number(value: unknown, fallback = 0): number {
	return Number.isFinite(value) ? (value as number) : fallback;
}

/** True only for true. */
export function flag(value: unknown): boolean {
	return value === true;
}

/** The strings of a list; everything else in it is left out. */
export function texts(value: unknown): string[] {
	return Array.isArray(value) ? value.filter((one): one is string => typeof one === "string") : [];
}

/** One of `allowed`, or null. */
export function choice<T extends string>(value: unknown, allowed: readonly T[]): T | null {
	return allowed.find((one) => one === value) ?? null;
}

/** One of `allowed`; else `fallback`, or the object is of no use. */
export function oneOf<T extends string>(allowed: readonly T[], fallback: T = BROKEN): Reader<T> {
	return (value) => choice(value, allowed) ?? fallback;
}

/** As `read`, for a field without which, or with "" or 0 in it, the object is of no use. */
export function needed<T>(read: Reader<T>): Reader<NonNullable<T>> {
	return (value) => read(value) || BROKEN;
}

/** A string, which may be "", or the object is of no use. */
export const given: Reader<string> = (value) => (typeof value === "string" ? value : BROKEN);

/** A number, which may be 0, or the object is of no use. */
export const givenNumber: Reader<number> = (value) => number(value, BROKEN);

/** As `read`, for a field that is left out where it was not sent. */
export function optional<T>(read: Reader<T>): Reader<T | undefined> {
	return (value) => (value === undefined ? undefined : read(value));
}

/** `true`, or left out. */
export const sometimes: Reader<true | undefined> = (value) => value === true || undefined;

/** An object of these fields; whatever is missing is empty. */
export function shape<R extends Readers>(readers: R): Reader<Read<R>> {
	return (value) => fields(readers, object(value)) as Read<R>;
}

/** An object of these fields, or null where there is none or one of its `needed` fields is missing. */
export function strict<R extends Readers>(readers: R): Reader<Read<R> | null> {
	return (value) => (isObject(value) ? (fields(readers, value) as Read<R> | null) : null);
}

/** The objects of a list; those that `read` gives null for are left out. */
export function listOf<T>(read: Reader<T>): Reader<NonNullable<T>[]> {
	return (value) =>
		Array.isArray(value)
			? value.filter(isObject).map(read).filter((one): one is NonNullable<T> => one !== null)
			: [];
}

function fields(readers: Readers, value: Json): Json | null {
	const found: Json = {};
	for (const [name, read] of Object.entries(readers)) {
		const one = read(value[name]);
		if (one === BROKEN) return null;
		if (one !== undefined) found[name] = one;
	}
	return found;
}
