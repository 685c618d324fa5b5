import { en } from "../en";
import type { Hello } from "../protocol/events";
import type { Verdict } from "../protocol/version";
import { TransportError, type Kind } from "../transport/transport";

/** Where it was tried: over what, at which address (the socket's path, or an URL), and for which vault's folder. */
export interface Where {
	kind: Kind | "none";
	place: string;
	vault: string;
}

export type FailureKind =
	| "not-running" | "wrong-vault" | "too-old" | "too-new" | "refused" | "unauthorized" | "unreachable" | "other";

/** A failure in words: what is the matter, what to do, and a command to copy where one helps. */
export interface Failure {
	kind: FailureKind;
	title: string;
	text: string;
	command?: string;
}

/** A daemon that answers and is not the right one. */
export class WrongDaemon extends Error {
	constructor(
		readonly verdict: Exclude<Verdict, "ok">,
		readonly hello: Hello,
	) {
		super(verdict);
		this.name = "WrongDaemon";
	}
}

/** There is no way to try: a phone without an address. */
export class NoWay extends Error {
	constructor() {
		super("no address");
		this.name = "NoWay";
	}
}

/** Whether a person has to do something before it can work; everything else may be gone at the next try. */
export function needsPerson(failure: Failure): boolean {
	return failure.kind !== "not-running" && failure.kind !== "unreachable";
}

/** An error as sentences. */
export function explain(error: unknown, where: Where): Failure {
	const words = en.connection;
	if (error instanceof WrongDaemon) return mismatch(error, where);
	if (error instanceof NoWay) return { kind: "other", title: words.nowhereTitle, text: words.nowhere };
	if (!(error instanceof TransportError)) {
		return { kind: "other", title: words.otherTitle, text: error instanceof Error ? error.message : String(error) };
	}
	const local = where.kind === "unix";
	const command = startCommand(where);
	switch (error.kind) {
		case "not-running":
			return { kind: "not-running", title: words.notRunningTitle, text: words.notRunning, command };
		case "refused":
			return local
				? { kind: "not-running", title: words.staleTitle, text: words.stale, command }
				: { kind: "unreachable", title: words.unreachableTitle, text: words.nobodyListens(where.place) };
		case "not-allowed":
			return {
				kind: "refused",
				title: words.notAllowedTitle,
				text: `${words.notAllowed} ${words.sandbox}`,
				...(local ? { command: `ls -ld ${quoted(where.place)}` } : {}),
			};
		case "unauthorized":
			return { kind: "unauthorized", title: words.unauthorizedTitle, text: words.unauthorized, command: "tarsd token --rotate" };
		case "unreachable": {
			const phone = (where.kind === "fetch" || where.kind === "poll") && !where.place.startsWith("https:");
			const text = local ? words.unreachableHere : words.unreachable(where.place);
			return { kind: "unreachable", title: words.unreachableTitle, text: phone ? `${text} ${words.phone}` : text };
		}
		case "timeout":
			return { kind: "unreachable", title: words.timeoutTitle, text: words.timeout, command: "tarsd status" };
		case "cut":
			return { kind: "unreachable", title: words.cutTitle, text: words.cut };
		case "malformed":
			return { kind: "other", title: words.foreignTitle, text: words.foreign(where.place) };
		case "http":
			return {
				kind: error.status === 403 ? "refused" : "other",
				title: error.status === 403 ? words.forbiddenTitle : words.otherTitle,
				text: error.body ? `${error.body.message} ${error.body.hint}`.trim() : error.message,
			};
	}
}

function mismatch(error: WrongDaemon, where: Where): Failure {
	const words = en.connection;
	const { verdict, hello } = error;
	switch (verdict) {
		case "wrong-vault": {
			const text = words.wrongVault(hello.vault.path || hello.vault.name, where.vault);
			return { kind: verdict, title: words.wrongVaultTitle, text, command: startCommand(where) };
		}
		case "too-old":
			return { kind: verdict, title: words.tooOldTitle, text: words.tooOld(hello.version) };
		case "too-new":
			return { kind: verdict, title: words.tooNewTitle, text: words.tooNew(hello.version) };
	}
}

function startCommand(where: Where): string {
	return where.vault === "" ? "tarsd run" : `tarsd run --vault ${quoted(where.vault)}`;
}

/** As one word for a shell, whatever is in it. */
function quoted(path: string): string {
	return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replace(/'/g, "'\\''")}'`;
}
