import { defineConfig } from "vitest/config";

const obsidian = new URL("mocks/obsidian/index.ts", import.meta.url).pathname;
const setupFiles = ["tests/setup.ts"];

/**
 * Three projects: `unit` has no DOM and no app, `dom` has jsdom and the fake app, and `contract` runs the
 * same cases over every transport, against a real socket and a real daemon, so it gets more time.
 */
export default defineConfig({
	test: {
		projects: [
			{ test: { name: "unit", environment: "node", include: ["tests/unit/**/*.test.ts"] } },
			{
				resolve: { alias: { obsidian } },
				test: { name: "dom", environment: "jsdom", include: ["tests/dom/**/*.test.ts"], setupFiles },
			},
			{
				resolve: { alias: { obsidian } },
				test: {
					name: "contract",
					environment: "jsdom",
					include: ["tests/contract/**/*.test.ts"],
					setupFiles,
					testTimeout: 60_000,
					hookTimeout: 60_000,
				},
			},
		],
	},
});
