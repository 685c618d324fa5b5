import { Modal, Notice, setIcon } from "obsidian";
import type { ConnectionState } from "../daemon/connection";
import { copyText } from "./dom";
import type { Services } from "./services";

/** What the state of the connection is called, and whether a person has to look at it. */
export function stateText(state: ConnectionState, words: Services["t"]["state"]): string {
	return words[state.name];
}

/**
 * Draws the state of the connection into `el`, with what to do about it, and redraws it at every change. Returns how to
 * end that. It is the same in the settings and behind the status bar.
 */
export function drawConnection(el: HTMLElement, services: Services): () => void {
	const { connection, t } = services;
	const words = t.state;
	el.addClass("tarsd-link");
	const draw = (state: ConnectionState): void => {
		el.empty();
		const head = el.createDiv({ cls: `tarsd-link-state mod-${state.name}`, attr: { role: "status" } });
		setIcon(head.createSpan("tarsd-link-icon"), ICONS[state.name]);
		head.createSpan({ text: "failure" in state ? state.failure.title : stateText(state, words) });
		if (state.name === "connected") {
			const { hello, kind } = state;
			const about = el.createDiv("tarsd-link-about");
			about.createDiv({ text: words.daemon(hello.version) });
			about.createDiv({ text: kind === "unix" ? words.unix(connection.where.place) : words.tcp(connection.where.place) });
			about.createDiv({ text: words.vault(hello.vault.path || hello.vault.name) });
			if (hello.chat_model !== "") about.createDiv({ text: words.model(hello.chat_model) });
		}
		if ("failure" in state) {
			const { text, command } = state.failure;
			el.createEl("p", { text });
			if (command !== undefined) drawCommand(el, command, words);
		}
		if (state.name !== "connecting") {
			const button = el.createEl("button", { text: words.retry });
			button.addEventListener("click", () => {
				connection.retry();
			});
		}
	};
	draw(connection.state);
	return connection.onChange(draw);
}

const ICONS: Readonly<Record<ConnectionState["name"], string>> = {
	connected: "circle-check",
	connecting: "loader",
	offline: "circle-off",
	attention: "triangle-alert",
};

/** The icon for a state, as in the status bar. */
export function stateIcon(state: ConnectionState): string {
	return ICONS[state.name];
}

/** A command for a terminal: it is shown and copied, and never run from here. */
export function drawCommand(el: HTMLElement, command: string, words: Services["t"]["state"]): void {
	const row = el.createDiv("tarsd-copyable");
	row.createEl("code", { text: command });
	const button = row.createEl("button", { text: words.copy });
	button.addEventListener("click", () => {
		void copyText(el, command).then((copied) => new Notice(copied ? words.copied : words.notCopied));
	});
}

/** The same by itself, for the status bar and for commands. */
export class ConnectionModal extends Modal {
	private end: (() => void) | null = null;

	constructor(private readonly services: Services) {
		super(services.app);
	}

	override onOpen(): void {
		this.setTitle(this.services.t.state.title);
		this.end = drawConnection(this.contentEl, this.services);
	}

	override onClose(): void {
		this.end?.();
		this.contentEl.empty();
	}
}
