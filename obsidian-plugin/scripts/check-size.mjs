import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

/** The bundle is read on every start of the app, on phones too, so it stays small. */
const LIMIT = 160_000;

const bundle = readFileSync(new URL("../main.js", import.meta.url));
const text = `main.js: ${bundle.length} bytes, ${gzipSync(bundle).length} compressed, limit ${LIMIT}`;
if (bundle.length >= LIMIT) {
	console.error(text);
	process.exit(1);
}
console.log(text);
