import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * The layers, as rules over import lines. `protocol` and `chat` are pure, so they run in a test without an
 * app; Node is reached in one file; the screens know the daemon's client and not how its bytes travel.
 */
const SRC = fileURLToPath(new URL("../src", import.meta.url));

const PURE = ["protocol/", "chat/"];
const PURE_FILES = ["en.ts", "transport/choose.ts", "transport/socket-path.ts", "transport/transport.ts"];
const NODE_FILE = "transport/node-http.ts";
const NODE = /\bwindow\s*\.\s*require\b|\brequire\s*\(|\bprocess\s*\.|\bimport\s*\(/;

/** What each layer may import from, besides itself and the words. The root files (main, settings) are free. */
const LAYERS = {
	protocol: [],
	chat: ["protocol"],
	transport: ["protocol"],
	daemon: ["protocol", "transport"],
	vault: ["protocol", "chat", "daemon"],
	ui: ["protocol", "chat", "daemon", "vault"],
};

const files = readdirSync(SRC, { recursive: true, encoding: "utf8" })
	.filter((name) => name.endsWith(".ts"))
	.map((name) => name.replaceAll("\\", "/"));

/** Comments are no code: a rule that reads words would trip over them. */
const withoutComments = (text) => text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");

/** @returns every import or re-export of a file: the module, and whether only types come from it. */
function imports(text) {
	const found = [];
	for (const match of text.matchAll(/^\s*(?:import|export)\s+(type\s+)?(?:[^;"']*?\s+from\s+)?["']([^"']+)["']/gm)) {
		found.push({ types: match[1] !== undefined, from: match[2] });
	}
	return found;
}

/** Root files that put the ways to the daemon together: through them a screen would reach a transport. */
const WIRING = ["main.ts", "ways.ts"];

const problems = [];
const graph = new Map();
for (const file of files) {
	const text = withoutComments(readFileSync(join(SRC, file), "utf8"));
	const layer = file.includes("/") ? file.slice(0, file.indexOf("/")) : "";
	const pure = PURE.some((folder) => file.startsWith(folder)) || PURE_FILES.includes(file);
	const report = (why) => problems.push(`src/${file}: ${why}`);
	const runtime = [];

	for (const { types, from } of imports(text)) {
		if (!from.startsWith(".")) {
			if (from !== "obsidian") report(`imports "${from}"; the app gives only "obsidian"`);
			else if (pure) report('is pure and imports "obsidian"');
			continue;
		}
		if (from.endsWith(".json")) continue;
		const path = relative(SRC, join(SRC, dirname(file), from)).replaceAll("\\", "/");
		const target = files.find((name) => name === path || name === `${path}.ts` || name === `${path}/index.ts`);
		if (target === undefined) {
			report(`imports "${from}", which is not there`);
			continue;
		}
		if (!types) runtime.push(target);
		if (layer !== "" && WIRING.includes(target) && !types) report(`imports ${target} for more than types`);
		const other = target.includes("/") ? target.slice(0, target.indexOf("/")) : "";
		if (layer !== "" && other !== "" && other !== layer && !LAYERS[layer]?.includes(other)) {
			report(`is in ${layer}/ and imports ${target}`);
		}
	}
	graph.set(file, runtime);
	if (file !== NODE_FILE && NODE.test(text)) report(`reaches for Node; only ${NODE_FILE} may`);
	const lines = text.split("\n").length;
	if (file === "main.ts" && lines >= 120) report(`has ${lines} lines; it only wires, in fewer than 120`);
}

/** A circle of imports works until the order of loading changes, so there is none. */
function circle(start, file, path, seen) {
	for (const next of graph.get(file) ?? []) {
		if (next === start) return [...path, next];
		if (seen.has(next)) continue;
		seen.add(next);
		const found = circle(start, next, [...path, next], seen);
		if (found) return found;
	}
	return null;
}
for (const file of [...files].sort()) {
	const found = circle(file, file, [file], new Set());
	if (found && found.slice(0, -1).every((name) => name >= file)) problems.push(`a circle: ${found.join(" -> ")}`);
}

if (problems.length > 0) {
	console.error(problems.join("\n"));
	process.exit(1);
}
console.log(`src: ${files.length} files keep to their layers`);
