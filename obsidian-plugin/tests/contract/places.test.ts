import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { Platform } from "obsidian";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { daemonClient } from "../../src/daemon/client";
import { hasNode, nodeTransport, places } from "../../src/transport/node-http";
import { shortFolder, socketPath, vaultId, type Places } from "../../src/transport/socket-path";
import { PYTHON, ROOT, tarsd } from "./tarsd";

const ASK = `
import sys
from pathlib import Path
from tarsd.config.places import socket_path, vault_id
for vault in sys.argv[1:]:
    print(socket_path(vault_id(Path(vault))))
`;

/** Where the daemon would listen for each vault, by its own code. */
function theirs(vaults: string[], env: Record<string, string>): string[] {
	const given = { PATH: process.env["PATH"] ?? "", PYTHONPATH: ROOT, PYTHONUTF8: "1", ...env };
	return execFileSync(PYTHON, ["-c", ASK, ...vaults], { env: given, encoding: "utf8" }).trim().split("\n");
}

describe("the socket's place", () => {
	let folder: string;
	let vaults: string[];

	beforeEach(() => {
		folder = realpathSync(mkdtempSync("/tmp/tq-"));
		vaults = ["plain", "with space", "Ümläute — 日本語 🍵", "deep/".repeat(12)].map((name) => join(folder, name));
		for (const vault of vaults) mkdirSync(vault, { recursive: true });
		symlinkSync(vaults[0] ?? "", join(folder, "link"));
		vaults.push(join(folder, "link"), join(folder, "plain/../plain"), `${vaults[0]}/`);
	});

	afterEach(() => {
		rmSync(folder, { recursive: true });
		delete process.env["TARSD_HOME"];
	});

	async function ours(vault: string, more: Partial<Places>): Promise<string> {
		const found = { ...places(vault), ...more };
		return socketPath(await vaultId(found.realPath), found);
	}

	it.each([
		["a usual home", "/home/ada"],
		["a home of 103 bytes", `/home/${"a".repeat(103 - "/home//.tarsd/0123456789ab.sock".length)}`],
		["one byte more", `/home/${"a".repeat(104 - "/home//.tarsd/0123456789ab.sock".length)}`],
		["bytes, not letters", `/home/${"ü".repeat(40)}`],
	])("is what the daemon computes: %s", async (_, home) => {
		const expected = theirs(vaults, { HOME: home });
		for (const [at, vault] of vaults.entries()) expect(await ours(vault, { home, tarsdHome: "" })).toBe(expected[at]);
	});

	it("follows TARSD_HOME as the daemon does", async () => {
		for (const value of [join(folder, "own"), `${folder}/own/../own/`, "~/elsewhere"]) {
			process.env["TARSD_HOME"] = value;
			const home = process.env["HOME"] ?? "";
			const expected = theirs(vaults, { HOME: home, TARSD_HOME: value });
			for (const [at, vault] of vaults.entries()) expect(await ours(vault, {})).toBe(expected[at]);
		}
	});

	it("is not looked for in a folder of /tmp that others could have made", async () => {
		// a user of its own, whose folder can be made and removed
		const uid = 4_000_000_000;
		const mine = shortFolder(uid);
		const real = window.require;
		Object.assign(window, {
			require: (name: string) => (name === "node:os" ? { userInfo: () => ({ ...userInfo(), uid }), homedir: () => "/" } : (real(name) as unknown)),
		});
		const call = { method: "GET", path: "/v1/hello" } as const;
		const transport = nodeTransport({ socketPath: `${mine}/0123456789ab.sock` });
		await expect(transport.json(call)).rejects.toMatchObject({ kind: "not-running" });
		mkdirSync(mine, { mode: 0o700 });
		try {
			await expect(transport.json(call)).rejects.toMatchObject({ kind: "not-allowed" });
			chmodSync(mine, 0o777);
			await expect(transport.json(call)).rejects.toMatchObject({ kind: "not-allowed" });
		} finally {
			rmSync(mine, { recursive: true });
		}
	});

	it("is not asked for where there is no Node", async () => {
		Object.assign(Platform, { isMobile: true });
		expect(hasNode()).toBe(false);
		expect(() => places("/")).toThrow("desktop");
		const transport = nodeTransport({ socketPath: "/nowhere.sock" });
		await expect(transport.json({ method: "GET", path: "/v1/hello" })).rejects.toMatchObject({ kind: "not-allowed" });
	});
});

/** C117: a socket's path may have 103 bytes, and a home is named by whoever made it. */
describe("a daemon in a home with a long path", () => {
	afterEach(() => {
		vi.unstubAllEnvs();
	});

	it.each([
		[60, "h"],
		[80, "h"],
		[80, "ü"],
		[100, "ü"],
		[120, "日"],
	])("of %i bytes, filled with %s, is found and answers", async (bytes, letter) => {
		const daemon = tarsd({ "N.md": "# N\n" });
		try {
			const left = bytes - daemon.home.length - 1;
			const letters = letter.repeat(left / Buffer.byteLength(letter));
			const home = join(daemon.home, letters.padEnd(letters.length + left - Buffer.byteLength(letters), "-"));
			expect(Buffer.byteLength(home)).toBe(bytes);
			mkdirSync(home);
			vi.stubEnv("HOME", home);
			vi.stubEnv("TARSD_HOME", undefined);
			Object.assign(daemon.env, { HOME: home, TARSD_HOME: undefined });
			const found = places(daemon.vault);
			const id = await vaultId(found.realPath);
			daemon.socket = socketPath(id, found);
			expect(daemon.socket.startsWith(bytes < 79 ? home : "/tmp/tars-")).toBe(true);
			await daemon.start();
			expect(await daemonClient(nodeTransport({ socketPath: daemon.socket })).hello()).toMatchObject({ vault: { id } });
		} finally {
			// so that it takes its socket away, which lies outside of its folder
			await daemon.stop();
			await daemon.remove();
		}
	});
});
