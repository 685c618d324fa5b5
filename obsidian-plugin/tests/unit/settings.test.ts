import { describe, expect, it } from "vitest";
import { DEFAULTS, isAddress, MAX_RELATED, parseDevice, parseSettings } from "../../src/settings";

describe("settings from a file", () => {
	it("are the defaults without one, and with whatever is no object", () => {
		for (const value of [null, undefined, 3, "x", [], [{}], true]) expect(parseSettings(value)).toEqual(DEFAULTS);
	});

	it("keep what makes sense and leave the rest", () => {
		const parsed = parseSettings({
			sendKey: "mod-enter",
			attachCurrentNote: "no",
			showSources: true,
			noteFolder: "/Notes/Answers/",
			openIn: "window",
			relatedCount: 5000,
			relatedExclude: ["/A/", "", 3, "A", "B/C"],
			unknown: { deep: 1 },
		});
		expect(parsed).toEqual({
			...DEFAULTS,
			sendKey: "mod-enter",
			showSources: true,
			noteFolder: "Notes/Answers",
			relatedCount: MAX_RELATED,
			relatedExclude: ["A", "B/C"],
		});
	});

	it("survive being saved and read again", () => {
		const once = parseSettings({ relatedCount: -3.4, sendKey: "shift-enter" });
		expect(once.relatedCount).toBe(1);
		expect(parseSettings(JSON.parse(JSON.stringify(once)))).toEqual(once);
	});

	it("never hold where the daemon is: a synced file does not say where notes are sent", () => {
		const parsed = parseSettings({ address: "evil.example", socket: "/tmp/evil.sock", tokenName: "t" });
		expect(parsed).toEqual(DEFAULTS);
	});
});

describe("a device's settings", () => {
	it("are text, without blanks around", () => {
		expect(parseDevice({ socket: " /a.sock ", address: 3, tokenName: null })).toEqual({ socket: "/a.sock", address: "", tokenName: "" });
	});

	it("know an address", () => {
		for (const good of ["", " ", "localhost:8300", "https://notes.example.org", "[::1]:8300"]) expect(isAddress(good)).toBe(true);
		for (const bad of ["ftp://x", "http://", "https://a:b@c", "http://x?y"]) expect(isAddress(bad)).toBe(false);
	});
});
