import { setIcon, setTooltip, type Component } from "obsidian";
import { en } from "../en";
import type { Status } from "../protocol/events";
import { STATE_ICONS } from "./connection-page";
import type { Services } from "./services";

const words = en.state;

/** How often the index is looked at: seldom when it is done, often while it is worked on. */
const IDLE_MS = 30_000;
const BUSY_MS = 2_000;

/** How many of how many notes or passages are indexed; null when nothing is left to do. */
export function progress({ counts, embedding }: Status): { done: number; total: number } | null {
	if (counts.pending > 0) return { done: counts.notes, total: counts.notes + counts.pending };
	const { done, remaining, state } = embedding;
	return remaining > 0 && state !== "failed" && state !== "unavailable" ? { done, total: done + remaining } : null;
}

/** How many problems there are: one for each kind and note, however many lines of the note have it. */
export function problemCount(problems: Status["problems"]): number {
	return new Set(problems.map(({ reason, hint, collection, path }) => JSON.stringify([reason, hint, collection, path]))).size;
}

/** Keeps the state of connection and index in `el`, in the bar at the bottom; a click shows what to do about it. */
export function statusBar(el: HTMLElement, services: Services, owner: Component): void {
	const { connection } = services;
	const icon = el.createSpan("tarsd-status-icon");
	const label = el.createSpan("tarsd-status-text");
	let timer = 0;
	let asking = new AbortController();

	const rest = (): void => {
		asking.abort();
		window.clearTimeout(timer);
	};
	const look = async (): Promise<void> => {
		rest();
		asking = new AbortController();
		const { signal } = asking;
		const { client, state: { name } } = connection;
		// without a status, the connection itself says soon what is wrong, if anything is
		const status = await client?.status(signal).catch(() => null);
		if (signal.aborted) return;
		const left = status && progress(status);
		const text = left ? words.indexing(left.done, left.total) : words[name];
		setIcon(icon, STATE_ICONS[name]);
		label.setText(text);
		el.toggleClass("mod-warning", name === "attention");
		setTooltip(el, [words.tip(text), ...(status ? details(status) : [])].join("\n"), { placement: "top" });
		if (client) timer = window.setTimeout(() => void look(), left ? BUSY_MS : IDLE_MS);
	};
	el.addClass("tarsd-status", "mod-clickable");
	el.setAttrs({ role: "button", tabindex: "0" });
	const open = (): void => {
		services.openConnection();
	};
	owner.registerDomEvent(el, "click", open);
	owner.registerDomEvent(el, "keydown", (event) => {
		if (event.key !== "Enter" && event.key !== " ") return;
		event.preventDefault();
		open();
	});
	owner.register(connection.onChange(() => void look()));
	owner.register(rest);
	void look();
}

function details({ behind, chat, problems }: Status): string[] {
	return [
		behind > 0 ? words.behind(behind) : "",
		problems.length > 0 ? words.problems(problemCount(problems)) : "",
		chat.model === "" ? "" : words.model(chat.model),
	].filter(Boolean);
}
