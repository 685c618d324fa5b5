import { Modal, Notice } from "obsidian";
import type { ConnectionState } from "../daemon/connection";
import { en } from "../en";
import { add, addButton, addIcon, copyText, hasFocus } from "./dom";
import type { Services } from "./services";

const words = en.state;

/** The icon for each state, here and in the status bar. */
export const STATE_ICONS: Readonly<Record<ConnectionState["name"], string>> = {
	connected: "circle-check",
	connecting: "loader",
	offline: "circle-off",
	attention: "triangle-alert",
};

/**
 * Draws the state of the connection into `el`, with what to do about it, and redraws it at every change; `told` hears of
 * each. Returns how to end that. It is the same in the settings, behind the status bar and in a chat pane.
 */
export function drawConnection(el: HTMLElement, { connection }: Services, told?: (state: ConnectionState) => void): () => void {
	const draw = (state: ConnectionState): void => {
		const focused = hasFocus(el);
		el.empty();
		const head = add(el, "div", `tarsd-link-state mod-${state.name}`, "", { role: "status" });
		addIcon(head, "tarsd-link-icon", STATE_ICONS[state.name]);
		add(head, "span", "", "failure" in state ? state.failure.title : words[state.name], { role: "heading", "aria-level": "3" });
		if (state.name === "connected") {
			const { version, vault, chat_model: model } = state.hello;
			const { place } = connection.where;
			const where = state.kind === "unix" ? words.unix(place) : words.tcp(place);
			const about = [words.daemon(version), where, words.vault(vault.path || vault.name), model && words.model(model)];
			add(el, "div", "tarsd-link-about", about.filter(Boolean).join("\n"));
		}
		if ("failure" in state) {
			const { text, command } = state.failure;
			add(el, "p", "", text);
			if (command !== undefined) drawCommand(el, command);
		}
		const again = addButton(el, en.chat.tryAgain, () => {
			connection.retry();
		});
		if (focused) again.focus();
		told?.(state);
	};
	el.addClass("tarsd-link");
	draw(connection.state);
	return connection.onChange(draw);
}

/** A command for a terminal: it is shown and copied, and never run from here. */
export function drawCommand(el: HTMLElement, command: string): void {
	const row = add(el, "div", "tarsd-copyable");
	add(row, "code", "", command, { dir: "ltr" });
	addButton(row, en.chat.copyCommand, async () => new Notice(await copyText(el, command)));
}

/** The same by itself, for the status bar and for commands. */
export class ConnectionModal extends Modal {
	constructor(private readonly services: Services) {
		super(services.app);
		this.setTitle(en.settings.connection);
	}

	override onOpen(): void {
		this.setCloseCallback(drawConnection(this.contentEl, this.services));
	}
}
