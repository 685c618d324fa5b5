/** What each event does to the message that it belongs to. */

import type { Source, TurnEvent } from "../protocol/events";
import type { Message, ToolUse } from "./message";

type Of<T extends TurnEvent["type"]> = Extract<TurnEvent, { type: T }>;

/** Something comes, so nothing is waited for any more. */
const GOING = { state: "answering", waiting: "" } as const;

/** The message after an event that was not seen yet; `seq` is the caller's affair. */
export function apply(message: Message, event: TurnEvent): Message {
	const next = { ...message, ...changes(message, event) };
	return "private" in event && event.private ? { ...next, private: true } : next;
}

function changes(message: Message, event: TurnEvent): Partial<Message> {
	switch (event.type) {
		case "queued":
			return { state: "queued", position: event.position };
		case "retrieved": {
			const { sources, behind, notices, withheld, model } = event;
			// no marker means the closest, so that they have no numbers of their own
			const closest = event.closest.map((one, index) => ({ ...one, n: index + 1 }));
			return { ...GOING, position: 0, sources, closest, behind, notices, withheld, model, modelIsLocal: event.local };
		}
		case "waiting":
			return { waiting: event.text };
		case "token":
			return { ...GOING, text: message.text + event.text };
		case "thinking":
			return { ...GOING, thinking: message.thinking + event.text };
		case "retract":
			return { text: "" };
		case "tool":
			return withTool(message, event);
		case "approval": {
			const { seq: _, type: __, ...call } = event;
			return { waiting: "", approvals: put(message.approvals, "call", { ...call, state: "asked" as const }) };
		}
		case "write": {
			const { id, path, op, kind } = event;
			return { writes: put(message.writes, "id", { id, path, op, kind, state: "asked", hash: "", by: "" }) };
		}
		case "written": {
			const { seq: _, type: __, ...written } = event;
			const kind = message.writes.find((one) => one.id === event.id)?.kind ?? "";
			return { writes: put(message.writes, "id", { ...written, kind, state: event.error ? "failed" : "written" }) };
		}
		case "usage":
			return {};
		case "done": {
			const { text, citations, notices } = event;
			return { ...closed(message), ...used(event), state: event.stopped ? "stopped" : "done", text, citations, notices };
		}
		case "failed": {
			const { error, text, notices = message.notices } = event;
			const state = error.code === "interrupted" ? "interrupted" : "failed";
			return { ...closed(message), ...used(event), state, text: text || message.text, error, notices };
		}
	}
}

function withTool(message: Message, { call, name, state, text = "", sources = [], ...event }: Of<"tool">): Partial<Message> {
	const before = message.tools.find((tool) => tool.call === call);
	const tool: ToolUse = {
		call,
		name: name || before?.name || "",
		state,
		arguments: event.arguments ?? before?.arguments ?? {},
		text,
		sources,
	};
	const verdict = state === "refused" ? state : "allowed";
	return {
		...GOING,
		tools: put(message.tools, "call", tool),
		sources: joined(message.sources, sources),
		approvals: message.approvals.map((one) => (one.call === call && state !== "running" ? { ...one, state: verdict } : one)),
	};
}

function used({ usage = "", month = "" }: Of<"done" | "failed">): Pick<Message, "usage"> {
	return { usage: [usage, month].filter(Boolean).join(" · ") };
}

/** The turn has ended: nothing runs and nothing waits any more. */
function closed({ tools, approvals }: Message): Partial<Message> {
	return {
		waiting: "",
		position: 0,
		tools: tools.map((tool) => (tool.state === "running" ? { ...tool, state: "stopped" } : tool)),
		approvals: approvals.map((one) => (/asked|answered/.test(one.state) ? { ...one, state: "lapsed" } : one)),
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
	return [...sources, ...fresh].sort((one, other) => one.n - other.n);
}
