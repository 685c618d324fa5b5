import obsidianmd from "eslint-plugin-obsidianmd";
import { PlainTextParser } from "eslint-plugin-obsidianmd/dist/lib/plainTextParser.js";
import { defineConfig } from "eslint/config";
import tseslint from "typescript-eslint";

/** The two files the directory reads that are no source text: the manifest and the licence. */
export default defineConfig([
	{
		files: ["manifest.json"],
		languageOptions: { parser: tseslint.parser },
		plugins: { obsidianmd },
		rules: { "obsidianmd/validate-manifest": "error" },
	},
	{
		files: ["LICENSE"],
		languageOptions: { parser: PlainTextParser },
		plugins: { obsidianmd },
		rules: { "obsidianmd/validate-license": ["error", { disableUnchangedYear: true }] },
	},
]);
