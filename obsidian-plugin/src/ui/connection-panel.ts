import { Component, Notice } from "obsidian";
import type { ConnectionState } from "../daemon/connection";
import { en } from "../en";
import { copyText, show, textButton } from "./dom";
import type { Services } from "./services";

/** Why there is no daemon to talk to, and what to do: on top of the messages, or in the middle of an empty pane. */
export class ConnectionPanel extends Component {
	private readonly el: HTMLElement;
	private parts: Component | null = null;
	private key = "";

	constructor(
		parent: HTMLElement,
		private readonly services: Services,
		private readonly say: (words: string) => void,
	) {
		super();
		this.el = parent.createDiv("tarsd-connection");
		show(this.el, false);
	}

	override onload(): void {
		this.register(
			this.services.connection.onChange((state) => {
				this.update(state);
			}),
		);
		this.update(this.services.connection.state);
	}

	private update(state: ConnectionState): void {
		const key = JSON.stringify("failure" in state ? state : state.name);
		if (key === this.key) return;
		const focused = this.el.contains(this.el.doc.activeElement);
		this.key = key;
		if (this.parts) this.removeChild(this.parts);
		this.parts = this.addChild(new Component());
		this.el.empty();
		show(this.el, state.name !== "connected");
		this.el.toggleClass("is-attention", state.name === "attention");
		if (state.name === "connecting") this.el.createDiv({ cls: "tarsd-faint", text: en.chat.connecting });
		if ("failure" in state) this.drawFailure(state, this.parts, focused);
	}

	private drawFailure({ failure }: Extract<ConnectionState, { failure: unknown }>, parts: Component, focused: boolean): void {
		const { title, text, command } = failure;
		this.el.createDiv({ cls: "tarsd-connection-title", text: title, attr: { role: "heading", "aria-level": "3" } });
		this.el.createDiv({ text });
		if (command !== undefined) this.el.createEl("code", { cls: "tarsd-command", text: command, attr: { dir: "ltr" } });
		const row = this.el.createDiv("tarsd-buttons");
		if (command !== undefined) {
			textButton(row, parts, {
				text: en.chat.copyCommand,
				onClick: () =>
					void copyText(this.el, command).then((done) => new Notice(done ? en.chat.copied : en.chat.copyFailed)),
			});
		}
		const again = textButton(row, parts, {
			text: en.chat.tryAgain,
			onClick: () => {
				this.services.connection.check();
			},
		});
		textButton(row, parts, {
			text: en.chat.connectionPage,
			onClick: () => {
				this.services.openConnection();
			},
		});
		if (focused) again.focus();
		this.say(`${title}. ${text}`);
	}
}
