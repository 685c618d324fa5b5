import { createRequire } from "node:module";
import { Platform } from "obsidian";
import { afterEach, beforeEach } from "vitest";
import { fillGaps } from "../mocks/obsidian/gaps";
import { closeModals } from "../mocks/obsidian/modal";
import { installGlobals } from "../mocks/obsidian/testing";

installGlobals();
fillGaps();

/**
 * A desktop: jsdom with Node's `require` is as near to Electron's renderer as a test can get. A test about a
 * phone sets `Platform` itself; it is put back before the next one.
 */
beforeEach(() => {
	Object.defineProperty(window, "require", { value: createRequire(import.meta.url), configurable: true, writable: true });
	Object.assign(Platform, {
		isDesktop: true,
		isDesktopApp: true,
		isMobile: false,
		isMobileApp: false,
		isIosApp: false,
		isAndroidApp: false,
		isPhone: false,
		isTablet: false,
	});
	document.body.replaceChildren();
});

afterEach(() => closeModals());
