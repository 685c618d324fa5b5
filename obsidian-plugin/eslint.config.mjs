import obsidianmd from "eslint-plugin-obsidianmd";
import { DEFAULT_BRANDS } from "eslint-plugin-obsidianmd/dist/lib/rules/ui/brands.js";
import { defineConfig, globalIgnores } from "eslint/config";
import tseslint from "typescript-eslint";

/** Naming brands replaces the list of the rules, so theirs is repeated; a cursor is the place in a text here. */
const brands = [...DEFAULT_BRANDS.filter((brand) => brand !== "Cursor"), "Tarsd"];

/**
 * The directory's own rule set, unchanged, over everything that ships. Run from this folder: the rules read
 * `manifest.json` from the current directory. Tests, mocks and scripts run in Node and are not reviewed, so
 * the rules about Node and about the look of the app do not hold there; the type rules do.
 */
export default defineConfig([
	globalIgnores(["node_modules/", "main.js", "coverage/", "test-results/", "playwright-report/", "e2e-tests/build/"]),
	...obsidianmd.configs.recommendedWithLocalesEn,
	{
		files: ["**/*.ts"],
		languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
		rules: {
			"@typescript-eslint/no-explicit-any": "error",
			"@typescript-eslint/consistent-type-imports": "error",
			"@typescript-eslint/switch-exhaustiveness-check": ["error", { considerDefaultExhaustiveForUnions: true }],
			"max-lines": ["error", { max: 500 }],
		},
	},
	{
		files: ["src/**/*.ts"],
		rules: {
			"obsidianmd/ui/sentence-case": ["warn", { enforceCamelCaseLower: true, brands }],
		},
	},
	{
		files: ["src/en.ts"],
		rules: {
			"obsidianmd/ui/sentence-case-locale-module": ["warn", { brands }],
		},
	},
	{
		files: ["tests/**/*.ts", "mocks/**/*.ts", "e2e-tests/**/*.ts", "vitest.config.ts"],
		rules: {
			"@typescript-eslint/unbound-method": "off",
			"no-undef": "off",
			"no-restricted-globals": "off",
			"obsidianmd/no-global-this": "off",
			"obsidianmd/no-nodejs-modules": "off",
			"obsidianmd/no-static-styles-assignment": "off",
			"obsidianmd/no-unsupported-api": "off",
			"obsidianmd/object-assign": "off",
			"obsidianmd/prefer-create-el": "off",
			"obsidianmd/prefer-instanceof": "off",
			"obsidianmd/prefer-window-timers": "off",
			"obsidianmd/hardcoded-config-path": "off",
			"obsidianmd/prefer-file-manager-trash-file": "off",
			"obsidianmd/ui/sentence-case": "off",
			"import/no-extraneous-dependencies": "off",
		},
	},
	{
		files: ["**/*.mjs"],
		extends: [tseslint.configs.disableTypeChecked],
		languageOptions: { globals: { console: "readonly", process: "readonly", URL: "readonly" } },
		rules: {
			"import/no-extraneous-dependencies": "off",
			"obsidianmd/no-nodejs-modules": "off",
			"obsidianmd/rule-custom-message": "off",
		},
	},
]);
