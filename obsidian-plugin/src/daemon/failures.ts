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
	}
}

/** There is no way to try: a phone without an address. */
export class NoWay extends Error {}

/** Whether a person has to do something before it can work; everything else may be gone at the next try. */
export function needsPerson({ kind }: Failure): boolean {
	return kind !== "not-running" && kind !== "unreachable";
}

/** An error as sentences. */
export function explain(error: unknown, where: Where): Failure {
	const words = en.connection;
	if (error instanceof WrongDaemon) return mismatch(error, where);
	if (error instanceof NoWay) return failure("other", words.nowhereTitle, words.nowhere);
	if (!(error instanceof TransportError)) {
		return failure("other", words.otherTitle, error instanceof Error ? error.message : String(error));
	}
	const { kind, place } = where;
	const local = kind === "unix";
	const start = startCommand(where);
	switch (error.kind) {
		case "not-running":
			return failure("not-running", words.notRunningTitle, words.notRunning, start);
		case "refused":
			return local
				? failure("not-running", words.staleTitle, words.stale, start)
				: failure("unreachable", words.unreachableTitle, words.nobodyListens(place));
		case "not-allowed": {
			const look = local ? `ls -ld ${quoted(place)}` : undefined;
			return failure("refused", words.notAllowedTitle, `${words.notAllowed} ${words.sandbox}`, look);
		}
		case "unauthorized":
			return failure("unauthorized", words.unauthorizedTitle, words.unauthorized, "tarsd token --rotate");
		case "unreachable": {
			const phone = (kind === "fetch" || kind === "poll") && !place.startsWith("https:");
			const text = local ? words.unreachableHere : words.unreachable(place);
			return failure("unreachable", words.unreachableTitle, phone ? `${text} ${words.phone}` : text);
		}
		case "timeout":
			return failure("unreachable", words.timeoutTitle, words.timeout, "tarsd status");
		case "cut":
			return failure("unreachable", words.cutTitle, words.cut);
		case "malformed":
			return failure("other", words.foreignTitle, words.foreign(place));
		case "http": {
			const { status, body, message } = error;
			if (!body && status && status < 500) return failure("other", words.foreignTitle, words.foreign(place));
			if (!body && status) return failure("unreachable", words.unreachableTitle, words.proxy(status, place));
			const text = body ? `${body.message} ${body.hint}`.trim() : message;
			return status === 403 ? failure("refused", words.forbiddenTitle, text) : failure("other", words.otherTitle, text);
		}
	}
}

function mismatch({ verdict, hello }: WrongDaemon, where: Where): Failure {
	const words = en.connection;
	const { vault, version } = hello;
	switch (verdict) {
		case "wrong-vault":
			return failure(verdict, words.wrongVaultTitle, words.wrongVault(vault.path || vault.name, where.vault), startCommand(where));
		case "too-old":
			return failure(verdict, words.tooOldTitle, words.tooOld(version));
		case "too-new":
			return failure(verdict, words.tooNewTitle, words.tooNew(version));
	}
}

function failure(kind: FailureKind, title: string, text: string, command?: string): Failure {
	return { kind, title, text, ...(command && { command }) };
}

function startCommand({ vault }: Where): string {
	return vault ? `tarsd run --vault ${quoted(vault)}` : "tarsd run";
}

/** As one word for a shell, whatever is in it. */
function quoted(path: string): string {
	return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replace(/'/g, "'\\''")}'`;
}
