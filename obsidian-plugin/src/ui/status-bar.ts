import { Component, setIcon, setTooltip } from "obsidian";
import type { Status } from "../protocol/events";
import { stateIcon } from "./connection-page";
import type { Services } from "./services";

/** How often the index is looked at: seldom when it is done, often while it is worked on. */
const IDLE_MS = 30_000;
const BUSY_MS = 2_000;

/** How many of how many notes or passages are indexed; null when nothing is left to do. */
export function progress({ counts, embedding }: Status): { done: number; total: number } | null {
	if (counts.pending > 0) return { done: counts.notes, total: counts.notes + counts.pending };
	const working = embedding.remaining > 0 && embedding.state !== "failed" && embedding.state !== "unavailable";
	return working ? { done: embedding.done, total: embedding.done + embedding.remaining } : null;
}

/** The state of connection and index in the bar at the bottom; a click shows what to do about it. */
export class StatusBar extends Component {
	private readonly iconEl: HTMLElement;
	private readonly textEl: HTMLElement;
	private timer: number | null = null;
	private asking: AbortController | null = null;

	constructor(
		private readonly el: HTMLElement,
		private readonly services: Services,
	) {
		super();
		el.addClass("tarsd-status", "mod-clickable");
		el.setAttrs({ role: "button", tabindex: "0" });
		this.iconEl = el.createSpan("tarsd-status-icon");
		this.textEl = el.createSpan("tarsd-status-text");
	}

	override onload(): void {
		const { connection } = this.services;
		const open = (): void => {
			this.services.openConnection();
		};
		this.registerDomEvent(this.el, "click", open);
		this.registerDomEvent(this.el, "keydown", (event) => {
			if (event.key !== "Enter" && event.key !== " ") return;
			event.preventDefault();
			open();
		});
		this.register(connection.onChange(() => void this.look()));
		this.register(() => {
			this.rest();
		});
		void this.look();
	}

	/** Hidden or not, as the settings have it. */
	show(shown: boolean): void {
		this.el.toggle(shown);
	}

	private rest(): void {
		this.asking?.abort();
		this.asking = null;
		if (this.timer !== null) window.clearTimeout(this.timer);
		this.timer = null;
	}

	private async look(): Promise<void> {
		this.rest();
		const { connection, t } = this.services;
		const { client, state } = connection;
		if (!client) {
			this.draw(t.state[state.name]);
			return;
		}
		this.asking = new AbortController();
		const { signal } = this.asking;
		let next = IDLE_MS;
		try {
			const status = await client.status(signal);
			if (signal.aborted) return;
			const left = progress(status);
			if (left) next = BUSY_MS;
			this.draw(left ? t.state.indexing(left.done, left.total) : t.state.connected, this.details(status));
		} catch {
			// the connection itself says soon what is wrong, if anything is
			if (signal.aborted) return;
			this.draw(t.state[connection.state.name]);
		}
		this.timer = window.setTimeout(() => void this.look(), next);
	}

	private details({ behind, chat, problems }: Status): string[] {
		const words = this.services.t.state;
		return [
			...(behind > 0 ? [words.behind(behind)] : []),
			...(problems.length > 0 ? [words.problems(problems.length)] : []),
			...(chat.model !== "" ? [words.model(chat.model)] : []),
		];
	}

	private draw(text: string, details: readonly string[] = []): void {
		const { connection, t } = this.services;
		setIcon(this.iconEl, stateIcon(connection.state));
		this.textEl.setText(text);
		this.el.toggleClass("mod-warning", connection.state.name === "attention");
		const tip = [t.state.tip(text), ...details].join("\n");
		setTooltip(this.el, tip, { placement: "top" });
		this.el.setAttr("aria-label", tip);
	}
}
