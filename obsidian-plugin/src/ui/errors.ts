import type { Connection } from "../daemon/connection";
import { explain, type Where } from "../daemon/failures";
import { en } from "../en";
import type { Fault } from "../protocol/events";

/** The parts of a `TransportError` that a view may know; views do not import the transport itself. */
interface Told {
	kind: string;
	status?: number;
	body?: Fault;
}

function told(error: unknown): Told | null {
	return error instanceof Error && "kind" in error ? (error as Error & Told) : null;
}

/** Whether the daemon says that there is no such thing. */
export function isNotFound(error: unknown): boolean {
	return told(error)?.status === 404;
}

/** Whether the daemon says that something else has happened first. */
export function isConflict(error: unknown): boolean {
	return told(error)?.status === 409;
}

const NOWHERE: Where = { kind: "none", place: "", vault: "" };

/** An error as what went wrong and what to do; `where` the daemon was reached before, if that is known. */
export function faultOf(error: unknown, where = NOWHERE): Fault {
	const body = told(error)?.body;
	if (body) return body;
	const failure = explain(error, where.kind === "unix" ? where : { ...where, kind: where.place === "" ? "none" : "tcp" });
	return { code: failure.kind, message: failure.title, hint: failure.text };
}

/** The same as one text, for a notice. */
export function sentence(error: unknown): string {
	const { message, hint } = faultOf(error);
	return [message, hint].filter(Boolean).join(" ");
}

/** Nothing can be asked of a daemon that is not there. */
export class NotConnected extends Error {
	readonly kind = "not-connected";
	readonly body: Fault;

	constructor({ state }: Connection) {
		super("not connected");
		this.name = "NotConnected";
		this.body =
			"failure" in state
				? { code: state.failure.kind, message: `${state.failure.title}.`, hint: state.failure.text }
				: { code: "connecting", message: en.chat.connecting, hint: en.chat.connectingHint };
	}
}
