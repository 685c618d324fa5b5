import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import ts from "typescript";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";

interface OwnNames {
	ownNames(program: ts.Program, src: string): { names: string[]; inherited: Set<string> };
}

const { ownNames } = await vi.importActual<OwnNames>("../../scripts/own-names.mjs");

/** The app: a class to extend, and what a plugin gives it and gets from it. */
const APP = `
export declare class Base { opened: number; onOpen(): void }
export interface Options { title?: string; onPick?: (event: { button: number }) => void }
export declare function show(options: Options): void;
export declare function keep(data: unknown): void;
export declare function load(name: string): any;
`;

describe("names of a release", { timeout: 30_000 }, () => {
	let folder: string;
	const options: ts.CompilerOptions = {
		strict: true,
		skipLibCheck: true,
		target: ts.ScriptTarget.ES2021,
		lib: ["lib.es2021.d.ts"],
		types: [],
		module: ts.ModuleKind.ESNext,
		moduleResolution: ts.ModuleResolutionKind.Bundler,
	};
	/** What every program has in common is read once. */
	const host = ts.createCompilerHost(options);
	const read = host.getSourceFile.bind(host);
	const library = new Map<string, ts.SourceFile | undefined>();
	host.getSourceFile = (name, ...more): ts.SourceFile | undefined => {
		if (!name.endsWith(".d.ts")) return read(name, ...more);
		if (!library.has(name)) library.set(name, read(name, ...more));
		return library.get(name);
	};

	beforeAll(() => {
		folder = mkdtempSync(join(tmpdir(), "names-"));
		mkdirSync(join(folder, "src"));
		writeFileSync(join(folder, "app.d.ts"), APP);
	});

	afterAll(() => {
		rmSync(folder, { recursive: true });
	});

	function found(source: string): ReturnType<typeof ownNames> {
		const file = join(folder, "src/one.ts");
		writeFileSync(file, `import { Base, keep, load, show } from "../app";\n${source}\nexport const used = [Base, keep, load, show];\n`);
		const program = ts.createProgram([file], options, host);
		const problems = ts.getPreEmitDiagnostics(program).map((one) => ts.flattenDiagnosticMessageText(one.messageText, "\n"));
		expect(problems).toEqual([]);
		return ownNames(program, `${join(folder, "src")}/`);
	}

	const ours: [string, string][] = [
		["a private member", "export class A { private inner = 1; outer(): number { return this.inner; } }"],
		["an interface that stays here", "interface A { inner: number; outer?: A } export const sum = (a: A): number => a.inner + (a.outer?.inner ?? 0);"],
		["what is bound, spread and shortened", "interface A { inner: number; outer: number } export const f = ({ inner, ...rest }: A): A => ({ inner, ...rest });"],
	];
	it.each(ours)("are those of %s", (_, source) => {
		expect(found(source).names.sort()).toEqual(["inner", "outer"]);
	});

	const foreign: [string, string][] = [
		["JSON", "interface A { inner: number; outer: A[] } export const f = (a: A): string => JSON.stringify(a);"],
		["the app's storage, by way of another type", "interface A { inner: number } interface B extends A { outer?: number } const put = (a: A): void => { keep(a); }; export const f = (b: B): void => { put(b); };"],
		["a function with a type parameter", "interface A { inner: number; outer: number } const put = <T>(one: T): void => { keep({ one }); }; export const f = (a: A): void => { put(a); };"],
		["a cast of what is not known", "interface A { inner: number; outer(): void } export const f = (): A => JSON.parse('') as A;"],
		["a cast that looks a type up", "interface All { a: { inner: number }; b: { outer(): void } } export const f = <N extends keyof All>(name: N): All[N] => load(name) as All[N];"],
		["a type guard", "interface A { inner: number; outer: number } export const f = (a: unknown): a is A => Boolean(a);"],
		["an index", "interface A { inner: number; outer: number } export const f = (a: A, name: keyof A): number => a[name];"],
		["a computed name", "interface A { inner: number; outer: number } export const f = (a: A, name: 'inner' | 'outer'): A => ({ ...a, [name]: 1 });"],
		["a question for the name", "type A = { inner: number } | { outer: number }; export const f = (a: A): boolean => 'inner' in a || 'outer' in a;"],
		["entries", "interface A { inner: number; outer: number } export const f = (a: A): unknown => Object.entries(a);"],
	];
	it.each(foreign)("are not those that %s can ask for", (_, source) => {
		const { names } = found(source);
		expect(names).not.toContain("inner");
		expect(names).not.toContain("outer");
	});

	it("are not those of the app, from wherever they are used", () => {
		const { names, inherited } = found(`
			interface Picture { title: string; own: number }
			interface Press { button: number }
			export class View extends Base { override onOpen(): void { this.draw(); } private draw(): void { show({ onPick: (press: Press) => press.button }); } }
			export const f = (picture: Picture): number => { show(picture); return picture.own; };`);
		expect(names.sort()).toEqual(["draw", "own"]);
		expect([...inherited]).toContain("draw");
		expect([...inherited]).not.toContain("own");
	});

	it("are not made where a name cannot be followed", () => {
		expect(() => found("export const f = (a: { inner: number }): void => { for (const name in a) keep(name); };")).toThrow("for … in");
		expect(() => found("export const f = (a: { inner: number }): number => { let inner = 0; ({ inner } = a); return inner; };")).toThrow("pattern");
	});
});
