/** A conversation: its turns on the screen, those that run, and what a person does with them. */

import { TurnView } from "./answer.js";
import { $, brief, fresh, notice, wordsOf } from "./dom.js";
import { Tail } from "./scroll.js";
import { apply, begun, ended, fail, restored } from "./turn.js";

/** So many turns are drawn at first, and so many more with "Show earlier". */
const SHOWN = 30;
const DRAW_MS = 100;

export const conversationPath = (id) => `v1/conversations/${encodeURIComponent(id)}`;

export class Chat extends EventTarget {
	id = "";
	known = false; // whether the daemon may know it
	title = "";
	turns = [];
	tail = new Tail($("list"), $("turns"), $("jump"));
	#from = 0;
	#views = new Map();
	#running = new Map();
	#loading = new AbortController();
	#due = new Set();

	constructor(daemon, notes) {
		super();
		Object.assign(this, { daemon, notes });
		$("earlier").onclick = () => {
			const top = this.#views.get(this.turns[this.#from]).el;
			this.#from = Math.max(0, this.#from - SHOWN);
			this.tail.keep(top, () => this.#show());
		};
	}

	get current() {
		return this.turns.find((turn) => !ended(turn));
	}

	rename(title) {
		this.title = title;
		this.#changed();
	}

	/** Begin a conversation; the daemon knows it after its first question. */
	begin(id = `web-${fresh()}`, known = false) {
		this.#loading.abort();
		this.#loading = new AbortController();
		this.#running.clear();
		this.#from = 0;
		Object.assign(this, { id, known, title: "", turns: [] });
		this.#show();
	}

	/** Show a conversation and follow what runs in it. */
	async open(id) {
		this.begin(id, true);
		const { signal } = this.#loading;
		try {
			await this.daemon.persist(() => this.#load(signal), signal);
		} catch (error) {
			if (signal.aborted) return;
			if (error.status === 404) this.begin();
			else notice(wordsOf(error));
		}
	}

	/** Look for turns that were asked elsewhere. */
	async refresh() {
		const sending = this.turns.some((turn) => turn.state === "sending");
		if (this.turns.length && !sending) await this.#load(this.#loading.signal).catch(() => {});
	}

	async #load(signal) {
		const saved = await this.daemon.json("GET", conversationPath(this.id), undefined, signal);
		const known = new Set(this.turns.map((turn) => turn.id));
		this.title = saved.title;
		this.turns.push(...saved.turns.filter(({ id }) => !known.has(id)).map(restored));
		if (!known.size) this.#from = Math.max(0, this.turns.length - SHOWN);
		this.#show();
		if (!known.size) this.tail.toEnd();
		for (const turn of this.turns) if (!ended(turn) && !this.#running.has(turn)) void this.#follow(turn);
	}

	// ---- turns ----

	/** Ask. It is sent until the daemon has it, and does nothing twice. */
	send(question) {
		if (/^\/save\s*$/i.test(question)) return void this.#save();
		const turn = begun(fresh(), question, "sending");
		this.known = true;
		this.title ||= question.split(/\s+/).join(" ").slice(0, 80);
		this.turns.push(turn);
		// the first ones go when many have come, unless somebody looks at them
		if (this.tail.follows && this.turns.length - this.#from > SHOWN + 10) this.#from = this.turns.length - SHOWN;
		this.#show();
		this.tail.toEnd();
		void this.#follow(turn, { conversation: this.id, message: question, request_id: turn.id, writer: "daemon" });
	}

	async #save() {
		if (!this.turns.some(({ state }) => state === "done" || state === "stopped")) return notice("There is no answer to save yet.");
		try {
			const { note } = await this.daemon.json("POST", `${conversationPath(this.id)}/save`, {});
			notice(note ? `Saved in ${note}.` : "Not saved as a note: session notes are off.");
		} catch (error) {
			notice(wordsOf(error));
		}
	}

	async #follow(turn, request) {
		const controller = new AbortController();
		const signal = AbortSignal.any([this.#loading.signal, controller.signal]);
		this.#running.set(turn, controller);
		try {
			if (request) {
				const ask = () => this.daemon.json("POST", "v1/turns", request, signal);
				const { turn: id } = await this.daemon.persist(ask, signal, ({ message }) => this.#soon(turn, { waiting: message }));
				brief.put("draft", $("box").value);
				this.#soon(turn, { id, state: "looking", waiting: "" });
			}
			for await (const event of this.daemon.follow(turn.id, turn.seq, signal)) {
				apply(turn, event);
				this.#soon(turn);
			}
			if (!ended(turn) && !signal.aborted) throw new Error("The daemon no longer has this question.");
		} catch (error) {
			if (signal.aborted) return;
			if (turn.state !== "sending") fail(turn, error);
			else {
				notice(wordsOf(error));
				this.#takeBack(turn);
			}
		}
		this.#running.delete(turn);
		this.#soon(turn);
		this.#changed();
	}

	/** End the turn that runs, and keep what it has said. What was not sent yet comes back. */
	async stop() {
		const turn = this.current;
		if (turn?.state === "sending") this.#takeBack(turn);
		else if (turn) await this.#post(`v1/turns/${turn.id}/stop`);
	}

	#takeBack(turn) {
		this.#running.get(turn)?.abort();
		this.#running.delete(turn);
		this.turns = this.turns.filter((one) => one !== turn);
		this.dispatchEvent(new CustomEvent("back", { detail: turn.question }));
		this.#show();
	}

	async approve(turn, asked, answer) {
		if (asked.state !== "asked") return;
		asked.state = "answered";
		this.#draw(turn);
		const path = `v1/turns/${turn.id}/approvals/${encodeURIComponent(asked.call)}`;
		if (!(await this.#post(path, answer)) && asked.state === "answered") asked.state = "asked";
		this.#draw(turn);
	}

	async undo(turn, write) {
		write.undone = await this.#post(`v1/writes/${encodeURIComponent(write.id)}/undo`);
		this.#draw(turn);
	}

	/** Keep a verdict; whether that worked. */
	async judge(turn, verdict, note) {
		const done = await this.#post("v1/feedback", { turn: turn.id, verdict, note });
		if (done) notice("Saved.");
		return done;
	}

	/** Whether it worked; if not, why is said. */
	async #post(path, body = {}) {
		try {
			await this.daemon.json("POST", path, body);
			return true;
		} catch (error) {
			notice(wordsOf(error));
			return false;
		}
	}

	// ---- the screen ----

	/** Change a turn and draw it in a moment: many changes are one picture. */
	#soon(turn, change) {
		Object.assign(turn, change);
		if (this.#due.has(turn)) return;
		this.#due.add(turn);
		setTimeout(() => this.#due.delete(turn) && this.#draw(turn), DRAW_MS);
	}

	#draw(turn) {
		this.#views.get(turn)?.update();
	}

	#show() {
		const shown = this.turns.slice(this.#from);
		for (const [turn, { el }] of this.#views) {
			if (shown.includes(turn)) continue;
			el.remove();
			this.#views.delete(turn);
		}
		let next = null;
		for (const turn of shown.reverse()) {
			if (!this.#views.has(turn)) this.#views.set(turn, new TurnView(turn, this.turns.indexOf(turn) + 1, this));
			const { el } = this.#views.get(turn);
			if (!el.isConnected) $("turns").insertBefore(el, next);
			next = el;
		}
		$("empty").hidden = this.turns.length > 0;
		$("earlier").hidden = !this.#from;
		$("earlier").textContent = `Show earlier (${this.#from})`;
		this.#changed();
	}

	#changed() {
		for (const view of this.#views.values()) view.offer();
		this.dispatchEvent(new Event("change"));
	}
}
