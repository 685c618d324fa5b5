import { Modal, Notice, setIcon } from "obsidian";
import type { ConnectionState } from "../daemon/connection";
import { en } from "../en";
import { copyText } from "./dom";
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
		const focused = el.contains(el.doc.activeElement);
		el.empty();
		const head = el.createDiv({ cls: `tarsd-link-state mod-${state.name}`, attr: { role: "status" } });
		setIcon(head.createSpan("tarsd-link-icon"), STATE_ICONS[state.name]);
		head.createSpan({ text: "failure" in state ? state.failure.title : words[state.name] });
		if (state.name === "connected") {
			const { version, vault, chat_model: model } = state.hello;
			const { place } = connection.where;
			const about = [words.daemon(version), state.kind === "unix" ? words.unix(place) : words.tcp(place), words.vault(vault.path)];
			if (model !== "") about.push(words.model(model));
			el.createDiv({ cls: "tarsd-link-about", text: about.join("\n") });
		}
		if ("failure" in state) {
			el.createEl("p", { text: state.failure.text });
			if (state.failure.command !== undefined) drawCommand(el, state.failure.command);
		}
		const again = el.createEl("button", { text: en.chat.tryAgain });
		again.addEventListener("click", () => {
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
	const row = el.createDiv("tarsd-copyable");
	row.createEl("code", { text: command, attr: { dir: "ltr" } });
	row.createEl("button", { text: en.chat.copyCommand }).addEventListener("click", () => void copy(el, command));
}

async function copy(el: HTMLElement, text: string): Promise<void> {
	new Notice(await copyText(el, text));
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
