import type { Connection } from "../daemon/connection";
import { explain, type Where } from "../daemon/failures";
import { en } from "../en";
import type { Fault } from "../protocol/events";

/** What a view may know of a `TransportError`, or of `NotConnected`; views do not import the transport itself. */
interface Told {
	status?: number;
	body?: Fault;
}

/** Whether the daemon answered with this status: 404 when there is no such thing, 409 when it is settled already. */
export function hasStatus(error: unknown, status: number): boolean {
	return (error as Told).status === status;
}

/** An error as what went wrong and what to do; `where` the daemon was reached before, if that is known. */
export function faultOf(error: unknown, where: Where = { kind: "none", place: "", vault: "" }): Fault {
	const { body } = error as Told;
	if (body) return body;
	// a way that was there before needs nothing that a first try may need
	const { kind, title, text } = explain(error, where.kind === "unix" ? where : { ...where, kind: "tcp" });
	return { code: kind, message: title, hint: text };
}

/** What went wrong and what to do, as one text. */
export function faultText({ message, hint }: Pick<Fault, "message" | "hint">): string {
	return `${message} ${hint}`.trim();
}

/** An error as one text, for a notice. */
export function sentence(error: unknown): string {
	return faultText(faultOf(error));
}

/** Nothing can be asked of a daemon that is not there. */
export class NotConnected extends Error {
	readonly body: Fault;

	constructor({ state }: Connection) {
		super("not connected");
		const [message, hint] = "failure" in state ? [`${state.failure.title}.`, state.failure.text] : [en.state.connecting, en.chat.connectingHint];
		this.body = { code: "not-connected", message, hint };
	}
}
