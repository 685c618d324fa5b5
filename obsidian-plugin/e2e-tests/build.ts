import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const HERE = import.meta.dirname;
const PLUGIN = join(HERE, "..");

/** Where the page lies that the browser is given. */
export const BUILD = join(HERE, "build");

/** Before all tests: the plugin with the fake app in one file, beside the styles. */
export default async function bundle(): Promise<void> {
	mkdirSync(BUILD, { recursive: true });
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
