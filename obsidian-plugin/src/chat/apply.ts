/** What each event does to the message that it belongs to. */

import type { Source, TurnEvent } from "../protocol/events";
import type { ApprovalRequest, Message, ToolUse, WriteView } from "./message";

type Of<T extends TurnEvent["type"]> = Extract<TurnEvent, { type: T }>;

/** Something comes, so nothing is waited for any more. */
const GOING = { state: "answering", waiting: "" } as const;

/** The message after an event that was not seen yet; `seq` is the caller's affair. */
export function apply(message: Message, event: TurnEvent): Message {
	switch (event.type) {
		case "queued":
			return { ...message, state: "queued", position: event.position };
		case "retrieved":
			return {
				...message,
				...GOING,
				position: 0,
				sources: event.sources,
				// no marker means them, so that they have no numbers of their own
				closest: event.closest.map((one, index) => ({ ...one, n: index + 1 })),
				behind: event.behind,
				notices: event.notices,
				withheld: event.withheld,
				model: event.model,
				modelIsLocal: event.local,
				private: message.private || event.private === true,
			};
		case "waiting":
			return { ...message, waiting: event.text };
		case "token":
			return { ...message, ...GOING, text: message.text + event.text };
		case "thinking":
			return { ...message, ...GOING, thinking: message.thinking + event.text };
		case "retract":
			return { ...message, text: "" };
		case "tool":
			return withTool(message, event);
		case "approval":
			return withApproval(message, event);
		case "write":
			return withWrite(message, event);
		case "written":
			return withWritten(message, event);
		case "usage": {
			const { input, output } = message.tokens;
			return { ...message, tokens: { input: input + event.input_tokens, output: output + event.output_tokens } };
		}
		case "done": {
			const { text, citations, notices } = event;
			const state = event.stopped ? "stopped" : "done";
			const seen = message.private || event.private === true;
			return closed({ ...message, state, text, citations, notices, private: seen });
		}
		case "failed": {
			const { error } = event;
			const text = event.text || message.text;
			const state = error.code === "interrupted" ? "interrupted" : "failed";
			return closed({ ...message, state, text, error, notices: event.notices ?? message.notices });
		}
	}
}

function withTool(message: Message, event: Of<"tool">): Message {
	const before = message.tools.find((tool) => tool.call === event.call);
	const tool: ToolUse = {
		call: event.call,
		name: event.name || before?.name || "",
		state: event.state,
		arguments: event.arguments ?? before?.arguments ?? {},
		text: event.text ?? "",
		sources: event.sources ?? [],
	};
	const verdict = event.state === "refused" ? "refused" : "allowed";
	return {
		...message,
		...GOING,
		tools: put(message.tools, "call", tool),
		sources: joined(message.sources, tool.sources),
		approvals:
			event.state === "running"
				? message.approvals
				: message.approvals.map((one) => (one.call === event.call ? { ...one, state: verdict } : one)),
		private: message.private || event.private === true,
	};
}

function withApproval(message: Message, event: Of<"approval">): Message {
	const { call, name, title, diff, arguments: given } = event;
	const asking: ApprovalRequest = { call, name, title, diff, arguments: given, state: "asked" };
	return { ...message, waiting: "", approvals: put(message.approvals, "call", asking) };
}

function withWrite(message: Message, event: Of<"write">): Message {
	const { id, path, op, kind } = event;
	const write: WriteView = { id, path, op, kind, state: "asked", hash: "", by: "" };
	return { ...message, writes: put(message.writes, "id", write) };
}

function withWritten(message: Message, event: Of<"written">): Message {
	const { id, path, op, hash, by, error } = event;
	const kind = message.writes.find((one) => one.id === id)?.kind ?? "";
	const state = error ? "failed" : "written";
	const write: WriteView = { id, path, op, kind, state, hash, by, ...(error ? { error } : {}) };
	return { ...message, writes: put(message.writes, "id", write) };
}

/** The turn has ended: nothing runs and nothing waits any more. */
function closed(message: Message): Message {
	return {
		...message,
		waiting: "",
		position: 0,
		tools: message.tools.map((tool) => (tool.state === "running" ? { ...tool, state: "stopped" } : tool)),
		approvals: message.approvals.map((one) =>
			one.state === "asked" || one.state === "answered" ? { ...one, state: "lapsed" } : one,
		),
	};
}

/** `list` with the item in the place of the one with its key, or at the end. */
function put<K extends string, T extends Record<K, string>>(list: readonly T[], key: K, item: T): readonly T[] {
	const at = list.findIndex((one) => one[key] === item[key]);
	return at < 0 ? [...list, item] : list.map((one, index) => (index === at ? item : one));
}

/** All sources by number, each number once. */
function joined(sources: readonly Source[], more: readonly Source[]): readonly Source[] {
	const fresh = more.filter((one) => !sources.some((known) => known.n === one.n));
	return fresh.length ? [...sources, ...fresh].sort((one, other) => one.n - other.n) : sources;
}
