import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

/**
 * Puts the three files that a person installs where the daemon's package has them, for those who have no Node. With
 * --check, says instead whether they are there as they were built, and whether there is one version everywhere.
 */
const FILES = ["main.js", "manifest.json", "styles.css"];
const HERE = new URL("../", import.meta.url);
const PACKAGE = new URL("../../tarsd/data/plugin/", import.meta.url);
const PROJECT = new URL("../../pyproject.toml", import.meta.url);

const bytes = (name, folder) => {
	try {
		return readFileSync(new URL(name, folder));
	} catch (error) {
		if (error.code !== "ENOENT") throw error;
		return null;
	}
};
const version = (name) => JSON.parse(readFileSync(new URL(name, HERE), "utf8")).version;

function problems() {
	const found = FILES.filter((name) => {
		const built = bytes(name, HERE);
		return built === null || !bytes(name, PACKAGE)?.equals(built);
	}).map((name) => `tarsd/data/plugin/${name} is not what was built: run scripts/plugin`);
	const project = /^version = "([^"]+)"$/m.exec(readFileSync(PROJECT, "utf8"))?.[1];
	for (const name of ["manifest.json", "package.json", "package-lock.json"]) {
		if (version(name) !== project) found.push(`${name} says version ${version(name)}, pyproject.toml says ${project}`);
	}
	return found;
}

if (process.argv.includes("--check")) {
	const found = problems();
	if (found.length > 0) {
		console.error(found.join("\n"));
		process.exit(1);
	}
	console.log(`tarsd/data/plugin: ${FILES.length} files as they were built, version ${version("manifest.json")}`);
} else {
	mkdirSync(PACKAGE, { recursive: true });
	for (const name of FILES) writeFileSync(new URL(name, PACKAGE), readFileSync(new URL(name, HERE)));
	console.log(`tarsd/data/plugin: ${FILES.join(", ")}, version ${version("manifest.json")}`);
}
