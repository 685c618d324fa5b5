import type { Connection } from "../daemon/connection";
import { explain } from "../daemon/failures";
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

/** An error as what went wrong and what to do. */
export function faultOf(error: unknown): Fault {
	const body = told(error)?.body;
	if (body) return body;
	const failure = explain(error, { kind: "none", place: "", vault: "" });
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
