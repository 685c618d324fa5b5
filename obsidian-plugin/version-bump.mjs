import { readFileSync, writeFileSync } from "node:fs";

/**
 * Run by `npm version`: carries the new version into the manifest, and adds a line to `versions.json` only
 * when the app version it needs changed, as the directory asks.
 */
const version = process.env.npm_package_version;
if (!version) throw new Error("Run this through `npm version`.");

const read = (path) => JSON.parse(readFileSync(path, "utf8"));
const write = (path, value) => writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);

const manifest = read("manifest.json");
manifest.version = version;
write("manifest.json", manifest);

const versions = read("versions.json");
if (!Object.values(versions).includes(manifest.minAppVersion)) {
	versions[version] = manifest.minAppVersion;
	write("versions.json", versions);
}
