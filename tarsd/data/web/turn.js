/** A question and its answer: what each event of the daemon does to it. Nothing here touches the page. */

const ENDS = ["done", "stopped", "interrupted", "failed"];

/** A turn of which only the question is known. `state`: "sending", "queued", "looking", "answering" or one of the ends. */
export const begun = (id, question, state = "looking") => ({
	id, question, state, seq: 0, text: "", waiting: "", position: 0, error: null, model: "", local: true, private: false, behind: 0, usage: "",
	sources: [], closest: [], citations: [], notices: [], withheld: [], tools: [], approvals: [], writes: [],
});

export const ended = (turn) => ENDS.includes(turn.state);

/** A turn as the daemon keeps it; of one that still runs, its events bring everything. */
export function restored(saved) {
	const turn = begun(saved.id, saved.message);
	return saved.state === "running" ? turn : { ...turn, ...saved, tools: saved.tools.map((tool, n) => ({ ...tool, call: `t${n}` })) };
}

/** Change the turn by an event that is not in it yet. */
export function apply(turn, event) {
	if (event.seq <= turn.seq || ended(turn)) return;
	turn.seq = event.seq;
	turn.private ||= event.private === true;
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
			Object.assign(turn, { waiting: "", text: turn.text + event.text });
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
			close(turn, event.stopped ? "stopped" : "done", event);
			break;
		case "failed":
			close(turn, "failed", event);
	}
}

/** The turn ends here, whatever the daemon may still do. */
export const fail = (turn, error) => close(turn, "failed", { error });

function used(turn, { call, name, state, sources = [] }) {
	turn.waiting = "";
	put(turn.tools, "call", { call, name, state });
	for (const source of sources) put(turn.sources, "n", source);
	const asked = turn.approvals.find((one) => one.call === call);
	if (asked && state !== "running") asked.state = state === "refused" ? "refused" : "allowed";
}

function close(turn, state, { text, citations = [], notices = turn.notices, error = null, usage, month }) {
	const used = [usage, month].filter(Boolean).join(" · ");
	Object.assign(turn, { state, text: text || turn.text, citations, notices, error, waiting: "", usage: used });
	for (const one of turn.tools) if (one.state === "running") one.state = "stopped";
	for (const one of turn.approvals) if (["asked", "answered"].includes(one.state)) one.state = "lapsed";
}

function put(list, key, item) {
	const known = list.find((one) => one[key] === item[key]);
	if (known) Object.assign(known, item);
	else list.push(item);
}
