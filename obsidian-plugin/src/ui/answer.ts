import { Component } from "obsidian";
import { en } from "../en";
import type { Source } from "../protocol/events";
import { blocksOf } from "./blocks";
import { add, AUTO } from "./dom";
import { drawAnswer } from "./markdown";
import type { MessageContext } from "./message-context";

/** How often a growing answer is drawn, in milliseconds. */
const DRAW_MS = 100;

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

/** The text of an answer, in its element. */
export interface AnswerBody {
	readonly el: HTMLElement;
	/** Show this; soon while it grows, at once when it is whole. */
	readonly update: (answer: Answer) => void;
	/** Resolves when what was last asked for can be seen. */
	readonly settled: () => Promise<void>;
}

/**
 * Draws an answer. While it grows, only blocks that changed are drawn again, ten times a second at most; each has a
 * component of its own, which goes with it.
 */
export function answerBody(parent: HTMLElement, about: MessageContext, owner: Component): AnswerBody {
	const { services, source, grew } = about;
	const el = add(parent, "div", "tarsd-answer markdown-rendered", "", AUTO);
	const blocks: Block[] = [];
	let wanted: Answer = { text: "", sources: [], growing: true };
	let drawn: Answer | null = null;
	let timer = 0;
	let drawing: Promise<void> | null = null;

	const remove = (block: Block): void => {
		block.el.remove();
		owner.removeChild(block.component);
	};

	async function drawOnce({ text, sources }: Answer): Promise<void> {
		const numbers = sources.map((one) => `${one.n}:${one.path}:${one.link}`).join("|");
		const parts = blocksOf(text);
		for (const [index, part] of parts.entries()) {
			const key = part.includes("[") ? `${part}\0${numbers}` : part;
			const old = blocks[index];
			if (old?.key === key) continue;
			const component = owner.addChild(new Component());
			const block = createDiv("tarsd-block");
			await drawAnswer(part, block, { app: services.app, sources, source: source(), tasks: about }, component);
			// a table may be too wide, and what scrolls sideways is scrolled by keys, too
			if (block.querySelector("table")) block.setAttrs({ role: "group", "aria-label": en.chat.table, tabindex: 0 });
			el.insertBefore(block, old?.el ?? null);
			if (old) remove(old);
			blocks[index] = { key, el: block, component };
		}
		blocks.splice(parts.length).forEach(remove);
	}

	async function drawAll(): Promise<void> {
		while (drawn !== wanted) {
			const answer = wanted;
			await drawOnce(answer);
			drawn = answer;
			grew();
			// what came meanwhile waits for its time, unless it is the last
			if (wanted.growing && timer !== 0) return;
		}
	}

	function draw(): Promise<void> {
		window.clearTimeout(timer);
		timer = 0;
		drawing ??= drawAll().finally(() => {
			drawing = null;
		});
		return drawing;
	}

	owner.register(() => {
		window.clearTimeout(timer);
	});
	return {
		el,
		update: (answer) => {
			if (wanted.text === answer.text && wanted.sources === answer.sources && wanted.growing === answer.growing) return;
			wanted = answer;
			if (!answer.growing) void draw();
			// the first words at once, the others in their time
			else if (timer === 0) timer = window.setTimeout(() => void draw(), drawn ? DRAW_MS : 0);
		},
		settled: draw,
	};
}
