/** A question and its answer: what each event of the daemon does to it. Pure; nothing here touches the page. */

const ENDS = ["done", "stopped", "interrupted", "failed", "unsent"];

/**
 * A turn of which nothing is known yet but its question. `id` is ours until the daemon gives one. `state` is "sending",
 * "queued", "looking", "answering", or one of the ends; `seq` is the number of the last event that is in it.
 */
export function begun(id, question, state = "looking") {
	return {
		id, question, state, seq: 0, text: "", waiting: "", position: 0, error: null, model: "", local: true, private: false,
		sources: [], closest: [], citations: [], notices: [], withheld: [], behind: 0, tools: [], approvals: [], writes: [],
	}; // prettier-ignore
}

export const ended = (turn) => ENDS.includes(turn.state);

/** A turn as the daemon keeps it. What still runs is empty: its events bring everything, from the first on. */
export function restored(saved) {
	const turn = begun(saved.id, saved.message);
	if (saved.state === "running") return turn;
	const { state, text, sources, citations, error, model, private: seen } = saved;
	const tools = saved.tools.map((tool, n) => ({ ...tool, call: `t${n}` }));
	return Object.assign(turn, { state, text, sources, citations, error, model, private: seen, tools, seq: Infinity });
}

/** Change the turn by an event that is not in it yet. */
export function apply(turn, event) {
	if (event.seq <= turn.seq || ended(turn)) return;
	turn.seq = event.seq;
	turn.private ||= event.private === true;
	if (["token", "thinking", "tool"].includes(event.type)) Object.assign(turn, { state: "answering", waiting: "" });
	switch (event.type) {
		case "queued":
			Object.assign(turn, { state: "queued", position: event.position });
			break;
		case "retrieved": {
			const { sources, closest, behind, notices, withheld, model, local } = event;
			Object.assign(turn, { state: "answering", sources, closest, behind, notices, withheld, model, local });
			break;
		}
		case "waiting":
			turn.waiting = event.text;
			break;
		case "token":
			turn.text += event.text;
			break;
		case "retract":
			turn.text = "";
			break;
		case "tool":
			used(turn, event);
			break;
		case "approval":
			put(turn.approvals, "call", { ...event, state: "asked" });
			break;
		case "written":
			// the conversation's own note is written when no tool runs
			if (turn.tools.some((tool) => tool.state === "running")) put(turn.writes, "id", event);
			break;
		case "done":
			closed(turn, event.stopped ? "stopped" : "done", event);
			break;
		case "failed":
			closed(turn, event.error.code === "interrupted" ? "interrupted" : "failed", event);
	}
}

/** The turn ends here, whatever the daemon may still do. */
export function fail(turn, failure, state = "failed") {
	closed(turn, state, { error: { message: failure.message, hint: failure.hint }, text: turn.text });
}

function used(turn, { call, name, state, sources = [] }) {
	put(turn.tools, "call", { call, name, state });
	turn.sources = [...turn.sources, ...sources.filter(({ n }) => !turn.sources.some((known) => known.n === n))];
	const asked = turn.approvals.find((one) => one.call === call);
	if (asked && state !== "running") asked.state = state === "refused" ? "refused" : "allowed";
}

function closed(turn, state, { text, citations = [], notices = turn.notices, error = null }) {
	Object.assign(turn, { state, text: text || turn.text, citations, notices, error, waiting: "" });
	for (const one of turn.tools) if (one.state === "running") one.state = "stopped";
	for (const one of turn.approvals) if (["asked", "answered"].includes(one.state)) one.state = "lapsed";
}

function put(list, key, item) {
	const known = list.find((one) => one[key] === item[key]);
	if (known) Object.assign(known, item, { name: item.name || known.name });
	else list.push(item);
}
