import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { keepConnected, type Connection, type ConnectionState } from "../../src/daemon/connection";
import { waysTo } from "../../src/daemon/ways";
import { vaultId } from "../../src/transport/socket-path";
import { nativeRequest } from "./native-request";
import { Scripted, TOKEN } from "./scripted";

const DESKTOP = { node: true, windows: false, ios: false };
const IPHONE = { node: false, windows: false, ios: true };
const NOTHING = { socket: "", address: "", token: "" };

describe("the ways to the daemon", () => {
	let folder: string;
	let vault: { name: string; folder: string };

	beforeEach(() => {
		folder = mkdtempSync("/tmp/tw-");
		vault = { name: "Notes", folder: join(folder, "Notes") };
		mkdirSync(vault.folder);
		process.env["TARSD_HOME"] = folder;
	});

	afterEach(() => {
		rmSync(folder, { recursive: true });
		delete process.env["TARSD_HOME"];
	});

	it("are the socket and then the address, each asked for the right vault", async () => {
		const id = await vaultId(vault.folder);
		const only = await waysTo(vault, DESKTOP, NOTHING, nativeRequest);
		expect(only).toMatchObject([{ vaultId: id, where: { kind: "unix", place: join(folder, `${id}.sock`), vault: vault.folder } }]);
		const both = await waysTo(vault, DESKTOP, { socket: "/own.sock", address: "127.0.0.1:8620", token: "t" }, nativeRequest);
		expect(both).toMatchObject([
			{ vaultId: id, where: { kind: "unix", place: "/own.sock" } },
			{ vaultId: id, where: { kind: "tcp", place: "http://127.0.0.1:8620" } },
		]);
		const far = await waysTo(vault, DESKTOP, { ...NOTHING, address: "https://notes.example/tarsd/" }, nativeRequest);
		expect(far[1]).toMatchObject({ vaultId: "", where: { kind: "tcp", place: "https://notes.example/tarsd" } });
		const phone = await waysTo({ name: "Notes", folder: "" }, IPHONE, { ...NOTHING, address: "https://notes.example" }, nativeRequest);
		expect(phone).toMatchObject([{ vaultId: "", where: { kind: "fetch", vault: "Notes" } }, { where: { kind: "poll" } }]);
	});

	async function after(connection: Connection): Promise<ConnectionState> {
		const state = new Promise<ConnectionState>((resolve) => {
			connection.onChange(resolve);
		});
		connection.start();
		const found = await state;
		connection.close();
		return found;
	}

	it("are tried in turn until one answers", async () => {
		const daemon = new Scripted(TOKEN);
		const address = await daemon.listen();
		const phone = { name: "Notes", folder: "" };
		// the socket is not there; a phone comes by fetch, or by native requests where pages may not go
		for (const [open, host, kind] of [[phone, { ...IPHONE, ios: false }, "fetch"], [phone, IPHONE, "poll"]] as const) {
			const connection = keepConnected(() => waysTo(open, host, { ...NOTHING, address, token: TOKEN }, nativeRequest));
			expect(await after(connection)).toMatchObject({ name: "connected", kind, hello: { vault: { name: "Notes" } } });
		}
		const wrong = keepConnected(() => waysTo(vault, DESKTOP, { ...NOTHING, address, token: TOKEN }, nativeRequest));
		expect(await after(wrong)).toMatchObject({ name: "attention", failure: { kind: "wrong-vault" } });
		const stranger = keepConnected(() => waysTo(phone, IPHONE, { ...NOTHING, address, token: "no" }, nativeRequest));
		expect(await after(stranger)).toMatchObject({ name: "attention", failure: { kind: "unauthorized", command: "tarsd token --rotate" } });
		await daemon.close();
		const gone = keepConnected(() => waysTo(phone, IPHONE, { ...NOTHING, address, token: TOKEN }, nativeRequest));
		expect(await after(gone)).toMatchObject({ name: "offline", failure: { kind: "unreachable" } });
		const nowhere = keepConnected(() => waysTo(phone, IPHONE, NOTHING, nativeRequest));
		expect(await after(nowhere)).toMatchObject({ name: "attention", failure: { kind: "other", title: "No address yet" } });
	});
});
