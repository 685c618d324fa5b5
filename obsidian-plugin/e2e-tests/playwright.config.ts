import { existsSync } from "node:fs";
import { defineConfig } from "@playwright/test";

/** Where Debian, Ubuntu, Fedora and Homebrew put a Chromium; `CHROMIUM` names another. */
const PLACES = [process.env["CHROMIUM"] ?? "", "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const executablePath = PLACES.find((place) => place !== "" && existsSync(place));
if (executablePath === undefined) throw new Error("There is no Chromium here: run scripts/chromium.sh, or name one in CHROMIUM.");

/** Each worker has a daemon and a browser, which mostly wait for each other. */
export default defineConfig({
	testDir: ".",
	outputDir: "../test-results/runs",
	globalSetup: "./build.ts",
	workers: 3,
	fullyParallel: true,
	forbidOnly: true,
	// long enough for a machine that has much else to do: only what fails takes as long
	timeout: 180_000,
	expect: { timeout: 30_000 },
	reporter: [["list"]],
	use: {
		browserName: "chromium",
		viewport: { width: 420, height: 800 },
		trace: "retain-on-failure",
		launchOptions: {
			executablePath,
			args: [
				"--no-sandbox",
				"--disable-gpu",
				"--disable-quic",
				"--no-first-run",
				"--disable-background-networking",
				"--disable-component-update",
				"--disable-sync",
				// a page asks a person before it talks to this machine; here nobody could say yes
				"--disable-features=LocalNetworkAccessChecks,Translate,MediaRouter,OptimizationHints",
			],
		},
	},
});
