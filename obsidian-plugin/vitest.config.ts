import { defineConfig } from "vitest/config";

const alias = { obsidian: new URL("mocks/obsidian/index.ts", import.meta.url).pathname };
const setupFiles = ["tests/setup.ts"];

/** Long enough for a machine that has much else to do: only what fails takes as long. */
const testTimeout = 180_000;
/** As long as a daemon may take to start, and longer. */
const hookTimeout = 120_000;

/**
 * Three projects: `unit` has no DOM and no app, `dom` has jsdom and the fake app, and `contract` runs the
 * same cases over every transport, against a real socket and a real daemon.
 */
export default defineConfig({
	test: {
		projects: [
			{ test: { name: "unit", environment: "node", include: ["tests/unit/**/*.test.ts"], testTimeout } },
			{
				resolve: { alias },
				test: { name: "dom", environment: "jsdom", include: ["tests/dom/**/*.test.ts"], setupFiles, testTimeout, hookTimeout },
			},
			{
				resolve: { alias },
				test: { name: "contract", environment: "jsdom", include: ["tests/contract/**/*.test.ts"], setupFiles, testTimeout, hookTimeout },
			},
		],
	},
});
