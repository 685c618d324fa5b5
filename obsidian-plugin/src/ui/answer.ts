import { Component } from "obsidian";
import type { Source } from "../protocol/events";
import { blocksOf } from "./blocks";
import { drawAnswer } from "./markdown";
import type { Services } from "./services";

/** How often a growing answer is drawn, in milliseconds. */
export const DRAW_MS = 100;

interface Block {
	readonly key: string;
	readonly el: HTMLElement;
	readonly component: Component;
}

/** What an answer is to look like. */
export interface Answer {
	readonly text: string;
	readonly sources: readonly Source[];
	/** Whether more may come, so that it is not worth drawing it at once. */
	readonly growing: boolean;
}

/**
 * The text of an answer. While it grows, only blocks that changed are drawn again, ten times a second at most; each has
 * a component of its own, which goes with it.
 */
export class AnswerBody extends Component {
	readonly el: HTMLElement;
	private blocks: Block[] = [];
	private wanted: Answer = { text: "", sources: [], growing: true };
	private drawn: Answer | null = null;
	private timer = 0;
	private drawing: Promise<void> | null = null;

	constructor(
		parent: HTMLElement,
		private readonly services: Services,
		private readonly source: () => string,
		private readonly grew: () => void,
	) {
		super();
		this.el = parent.createDiv({ cls: "tarsd-answer markdown-rendered", attr: { dir: "auto" } });
		this.register(() => {
			window.clearTimeout(this.timer);
		});
	}

	/** Show this; soon while it grows, at once when it is whole. */
	update(answer: Answer): void {
		const { wanted } = this;
		if (wanted.text === answer.text && wanted.sources === answer.sources && wanted.growing === answer.growing) return;
		this.wanted = answer;
		if (!answer.growing) {
			window.clearTimeout(this.timer);
			this.timer = 0;
			void this.draw();
		} else if (this.timer === 0) {
			// the first words at once, the others in their time
			const ms = this.drawn === null ? 0 : DRAW_MS;
			this.timer = window.setTimeout(() => {
				this.timer = 0;
				void this.draw();
			}, ms);
		}
	}

	/** Resolves when what was last asked for can be seen. */
	async settled(): Promise<void> {
		await this.draw();
	}

	private draw(): Promise<void> {
		this.drawing ??= this.drawAll().finally(() => {
			this.drawing = null;
		});
		return this.drawing;
	}

	private async drawAll(): Promise<void> {
		while (this.drawn !== this.wanted) {
			const answer = this.wanted;
			await this.drawOnce(answer);
			this.drawn = answer;
			this.grew();
			// what came meanwhile waits for its time, unless it is the last
			if (this.wanted.growing && this.timer !== 0) return;
		}
	}

	private async drawOnce({ text, sources }: Answer): Promise<void> {
		const { app } = this.services;
		const numbers = sources.map((source) => `${source.n}:${source.path}:${source.link}`).join("|");
		const parts = blocksOf(text);
		let same = 0;
		const keys = parts.map((part) => (part.includes("[") ? `${part}\0${numbers}` : part));
		while (same < keys.length && this.blocks[same]?.key === keys[same]) same++;
		for (let index = same; index < parts.length; index++) {
			const component = this.addChild(new Component());
			const el = createDiv("tarsd-block");
			await drawAnswer(parts[index] ?? "", el, { app, sources, source: this.source() }, component);
			const old = this.blocks[index];
			if (old) {
				old.el.replaceWith(el);
				this.removeChild(old.component);
			} else {
				this.el.append(el);
			}
			this.blocks[index] = { key: keys[index] ?? "", el, component };
		}
		for (const gone of this.blocks.splice(parts.length)) {
			gone.el.remove();
			this.removeChild(gone.component);
		}
	}
}
