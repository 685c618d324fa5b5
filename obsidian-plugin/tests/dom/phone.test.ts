import { Platform } from "obsidian";
import { expect, it, vi } from "vitest";
import manifest from "../../manifest.json";
import { closeApp, layoutReady, loadPlugin, makeApp, runCommand, until } from "../../mocks/obsidian/testing";
import TarsdPlugin from "../../src/main";

/** C133: what stops a plugin on a phone is a module of Node that it asks for. */
it("loads where there is nothing of Node, and says what is needed there", async () => {
	Object.assign(Platform, { isDesktop: false, isDesktopApp: false, isMobile: true, isMobileApp: true, isAndroidApp: true, isPhone: true });
	const require = vi.fn(() => {
		throw new Error("there is no Node");
	});
	Object.assign(window, { require });
	const app = makeApp({ ready: false });
	const plugin = await loadPlugin(app, TarsdPlugin, manifest);
	layoutReady(app);
	runCommand(plugin, "open");
	await until(() => app.workspace.containerEl.textContent?.includes("No address yet") ?? false);
	expect(require).not.toHaveBeenCalled();
	expect(manifest.isDesktopOnly).toBe(false);
	plugin.unload();
	await closeApp(app);
});
