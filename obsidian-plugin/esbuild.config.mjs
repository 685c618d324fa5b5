import { build, context } from "esbuild";
import { builtinModules } from "node:module";

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
	...(watch ? { sourcemap: "inline" } : { minify: true }),
};

if (watch) {
	await (await context(options)).watch();
} else {
	await build(options);
}
