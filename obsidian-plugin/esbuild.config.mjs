import { build, context } from "esbuild";
import { readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { builtinModules } from "node:module";
import { fileURLToPath } from "node:url";
import { minify } from "terser";
import ts from "typescript";
import { inlineWords } from "./scripts/inline-words.mjs";
import { ownNames } from "./scripts/own-names.mjs";

const watch = process.argv.includes("--watch");

/** Everything the app or Electron gives at run time; what is not here ends up in the bundle. */
const external = [
	"obsidian",
	"electron",
	"@codemirror/*",
	"@lezer/*",
	...builtinModules,
	...builtinModules.map((name) => `node:${name}`),
];

/**
 * Asks the app for its module once, and not in every file: what the files import from it are then names like all
 * others, that are shortened like all others.
 *
 * @type {import("esbuild").Plugin}
 */
const once = {
	name: "once",
	setup(build) {
		build.onResolve({ filter: /^obsidian$/, namespace: "file" }, () => ({ path: "obsidian", namespace: "once" }));
		build.onLoad({ filter: /.*/, namespace: "once" }, () => {
			const names = new Set();
			for (const file of readdirSync("src", { recursive: true, encoding: "utf8" })) {
				if (!file.endsWith(".ts")) continue;
				for (const [, list = ""] of readFileSync(`src/${file}`, "utf8").matchAll(/import \{([^}]*)\} from "obsidian"/g)) {
					for (const name of list.split(",").map((one) => one.trim())) if (/^\w+$/.test(name)) names.add(name);
				}
			}
			const all = [...names].join(", ");
			return { contents: `const { ${all} } = require("obsidian");\nexport { ${all} };` };
		});
	},
};

/** What TypeScript knows of the source: the release is built with it. */
function readSource() {
	const root = fileURLToPath(new URL(".", import.meta.url));
	const { config } = ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile);
	const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
	return { program: ts.createProgram([`${root}src/main.ts`], options), src: `${root}src/` };
}

/**
 * What a release has besides: words where they are used, and short names for our own members. A name that a class has
 * which extends one of the app's begins with "$", for the app may have members of that class that it tells nobody.
 *
 * @returns {import("esbuild").BuildOptions}
 */
function release() {
	const { program, src } = readSource();
	const changed = inlineWords(program, src);
	const { names, inherited } = ownNames(program, src);
	const prefixed = names.filter((name) => inherited.has(name)).map((name, index) => [name, `$${index.toString(36)}`]);
	return {
		minify: true,
		mangleProps: new RegExp(`^(?:${names.join("|").replaceAll("$", "\\$")})$`),
		mangleCache: Object.fromEntries(prefixed),
		plugins: [
			once,
			{
				name: "words",
				setup(build) {
					build.onLoad({ filter: /\.ts$/ }, ({ path }) => {
						const contents = changed.get(path);
						return contents === undefined ? undefined : { contents, loader: "ts" };
					});
				},
			},
		],
	};
}

/** @type {import("esbuild").BuildOptions} */
const options = {
	entryPoints: ["src/main.ts"],
	outfile: "main.js",
	bundle: true,
	external,
	format: "cjs",
	platform: "browser",
	target: "es2021",
	charset: "utf8",
	treeShaking: true,
	legalComments: "none",
	logLevel: "warning",
	...(watch ? { sourcemap: "inline" } : release()),
};

/**
 * A second pass over the release: terser inlines what is used once and drops what is not, across modules. `keep_fargs`
 * and `unsafe_arrows` are right because nothing here asks a function how many arguments it has, or makes an object with
 * one.
 */
/** @type {import("terser").MinifyOptions} */
const second = {
	ecma: 2020,
	toplevel: true,
	compress: { ecma: 2020, passes: 4, keep_fargs: false, unsafe_arrows: true, hoist_funs: true },
	format: { comments: false },
};

if (watch) {
	await (await context(options)).watch();
} else {
	const built = await build({ ...options, write: false });
	for (const { path, text } of built.outputFiles ?? []) {
		const { code } = await minify(text, second);
		await writeFile(path, code ?? text);
	}
}
