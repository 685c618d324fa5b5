import { readFileSync } from "node:fs";
import vm from "node:vm";

/**
 * Loads the bundle as a phone does: nothing of Node, and no module but the app's own. A module that is asked
 * for while loading is one that would stop the plugin there. An argument is the path of another bundle.
 */
const file = process.argv[2] ?? new URL("../main.js", import.meta.url);
const code = readFileSync(file, "utf8");

/** Stands for every class and function of the app: it can be extended, called and read, and does nothing. */
const anything = new Proxy(class {}, { get: (target, key) => (key in target ? target[key] : anything) });
const app = new Proxy({}, { get: () => anything });

const asked = new Set();
const require = (name) => {
	asked.add(name);
	if (name !== "obsidian") throw new Error(`The bundle asks for "${name}" while loading.`);
	return app;
};

const exported = { exports: {} };
const globals = { module: exported, exports: exported.exports, require, window: {}, TextDecoder, TextEncoder, URL, AbortController, console };
vm.runInNewContext(code, globals, { filename: "main.js" });

const plugin = exported.exports.default;
if (typeof plugin !== "function") throw new Error("The bundle exports no plugin class.");
if (!Object.hasOwn(plugin.prototype, "onload")) throw new Error("The plugin class has no onload.");
console.log(`main.js: loads without Node, asks for ${[...asked].join(", ")}`);
