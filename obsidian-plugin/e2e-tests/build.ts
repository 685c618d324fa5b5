import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const HERE = import.meta.dirname;
const PLUGIN = join(HERE, "..");

/** Where the page lies that the browser is given. */
export const BUILD = join(HERE, "build");

/** Before all tests: the plugin as it is released, and the fake app that loads it, beside the styles. */
export default async function bundle(): Promise<void> {
	mkdirSync(BUILD, { recursive: true });
	execFileSync(process.execPath, ["esbuild.config.mjs"], { cwd: PLUGIN, stdio: "inherit" });
	const code = readFileSync(join(PLUGIN, "main.js"), "utf8");
	// as the app evaluates it: a function around the very file that a person installs
	writeFileSync(join(BUILD, "plugin.js"), `window.runPlugin = function (module, exports, require) {${code}\n};\n`);
	await build({
		entryPoints: [join(HERE, "harness.ts")],
		outfile: join(BUILD, "harness.js"),
		bundle: true,
		format: "esm",
		platform: "browser",
		target: "es2022",
		sourcemap: "inline",
		logLevel: "warning",
		alias: { obsidian: join(PLUGIN, "mocks/obsidian/index.ts") },
		plugins: [
			{
				name: "icons",
				// the fake app has empty pictures; what a person looks at should have some
				setup(hooks) {
					hooks.onResolve({ filter: /^\.\/icons$/ }, () => ({ path: join(HERE, "icons.ts") }));
				},
			},
		],
	});
	for (const name of ["harness.html", "theme.css", "app.css"]) cpSync(join(HERE, name), join(BUILD, name));
	cpSync(join(PLUGIN, "styles.css"), join(BUILD, "styles.css"));
}
