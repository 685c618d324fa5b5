import { build, context } from "esbuild";
import { readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { builtinModules } from "node:module";
import { minify } from "terser";
import { inlineWords } from "./scripts/inline-words.mjs";

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

/** @type {import("esbuild").Plugin} */
const words = {
	name: "words",
	setup(build) {
		const changed = inlineWords();
		build.onLoad({ filter: /\.ts$/ }, ({ path }) => {
			const contents = changed.get(path);
			return contents === undefined ? undefined : { contents, loader: "ts" };
		});
	},
};

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
	plugins: watch ? [] : [once, words],
	legalComments: "none",
	logLevel: "warning",
	minify: !watch,
	sourcemap: watch ? "inline" : false,
};

/**
 * A second pass over the release: terser inlines what is used once and drops what is not, across modules. Names of
 * members stay as they are, for the app, the daemon's JSON and the settings know them. `keep_fargs` and
 * `unsafe_arrows` are right because nothing here asks a function how many arguments it has, or makes an object with one.
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
