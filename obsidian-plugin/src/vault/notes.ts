import { pause, type Wait } from "../daemon/backoff";
import type { Client } from "../daemon/client";
import { en } from "../en";
import type { WriteOrder } from "../protocol/events";
import type { VaultPort } from "./port";

/** How often a report is tried when the connection breaks; without one the daemon looks itself, after a minute. */
const REPORTS = 4;
const REPORT_PAUSE_MS = 500;

type Report = { ok: true; hash: string } | { ok: false; error: string };

/**
 * Make a change that the daemon asks for, and tell it what became of that. The daemon writes by itself what nobody
 * claims within ten seconds, so a change is claimed first, and one that is taken or settled is left alone. Resolves
 * when the daemon knows; rejects when it could not be reached.
 */
export async function performWrite(port: VaultPort, client: Client, order: WriteOrder, wait: Wait = pause): Promise<void> {
	// what the app does not show as a note stays the daemon's
	if (!isNote(order.path)) return;
	try {
		const claimed = await client.claim(order.id);
		const report = await carryOut(port, order, claimed).then(
			(hash): Report => ({ ok: true, hash }),
			(error: unknown): Report => ({ ok: false, error: (error as Error).message }),
		);
		await tell(client, order.id, report, wait);
	} catch (error) {
		// the change is somebody else's, or over
		if (![404, 409].includes(statusOf(error))) throw error;
	}
}

/** Whether a path is that of a note the app shows: below the vault, not hidden, in the form the app gives paths. */
export function isNote(path: string): boolean {
	if (!path.endsWith(".md") || path !== path.normalize() || /[\\\u00a0\u202f\0]/.test(path)) return false;
	return path.split("/").every((name) => name !== "" && !name.startsWith("."));
}

/** The SHA-256 of bytes, or of a text as UTF-8, in hex. */
export async function sha256(content: string | ArrayBuffer): Promise<string> {
	const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
	const digest = new Uint8Array(await window.crypto.subtle.digest("SHA-256", bytes));
	return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The text of bytes that are UTF-8, whole and unchanged; null when they are not. */
export function textOf(bytes: ArrayBuffer): string | null {
	try {
		return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
	} catch {
		return null;
	}
}

/** Make the change that was claimed, if it is the one that was asked for; resolves with the hash of what the note holds by it. */
async function carryOut(port: VaultPort, asked: WriteOrder, order: WriteOrder): Promise<string> {
	if (asked.path !== order.path || asked.op !== order.op || asked.kind !== order.kind) throw new Error(en.vault.another);
	if (order.if_hash === null) return create(port, order);
	const path = (await port.exists(order.path)) ? order.path : port.moved(order.path);
	if (!(await port.exists(path))) throw new Error(en.vault.missing);
	const { expected, next } = await plan(port, path, order);
	// a hash cannot be made inside of `process`, which must not wait: the text it belongs to is compared instead
	let same = false;
	const written = await port.process(path, (now) => {
		same = now === expected;
		return same ? next : now;
	});
	if (!same) throw new Error(en.vault.changed);
	return sha256(written);
}

async function create(port: VaultPort, order: WriteOrder): Promise<string> {
	const hash = await sha256(order.content);
	if (await port.exists(order.path)) {
		// made before the app was closed, say: there is nothing left to do
		if ((await sha256(await port.bytes(order.path))) === hash) return hash;
		throw new Error(en.vault.exists);
	}
	await port.create(order.path, order.content);
	return hash;
}

/**
 * The text that the note has to have, and the one that takes its place. The first is the text which the change was made
 * for; only an append may also go below what was typed in an open editor and was not saved yet.
 */
async function plan(port: VaultPort, path: string, order: WriteOrder): Promise<{ expected: string; next: string }> {
	const before = await port.bytes(path);
	const known = (await sha256(before)) === order.if_hash;
	const typed = await port.flush(path);
	if (!known || (typed && order.op !== "append")) throw new Error(en.vault.changed);
	const expected = textOf(typed ? await port.bytes(path) : before);
	if (expected === null) throw new Error(en.vault.notText);
	if (order.op !== "append") return { expected, next: order.content };
	const joins = !typed || expected === "" || /[\r\n]$/.test(expected) || /^[\r\n]/.test(order.content);
	return { expected, next: `${expected}${joins ? "" : "\n"}${order.content}` };
}

async function tell(client: Client, id: string, report: Report, wait: Wait): Promise<void> {
	for (let tries = 1; ; tries++) {
		try {
			await client.report(id, report);
			return;
		} catch (error) {
			if (tries === REPORTS || statusOf(error) !== 0) throw error;
		}
		await wait(REPORT_PAUSE_MS * tries, new AbortController().signal);
	}
}

/** The daemon's answer as a number; 0 when there was none. */
function statusOf(error: unknown): number {
	return (error as { status?: number }).status ?? 0;
}
