import { Modal, Notice, Setting } from "obsidian";
import type { ReviewDecision } from "../daemon/client";
import { en } from "../en";
import type { Review } from "../protocol/events";
import { clientOf, told } from "./asking";
import { sentence } from "./errors";
import { joined } from "./memory-modal";
import type { Services } from "./services";

const words = en.memory;

/** What a review proposes to remember, each to be kept, changed, dropped or left for later. Nothing is kept unasked. */
export class ReviewModal extends Modal {
	constructor(private readonly services: Services) {
		super(services.app);
		this.modalEl.addClass("tarsd-review");
		this.setTitle(en.commands.review);
		this.setContent(words.reviewing);
	}

	override async onOpen(): Promise<void> {
		try {
			const review = await clientOf(this.services).review();
			if (review.proposals.length > 0) this.draw(review);
			else this.setContent(words.reviewNothing);
		} catch (error) {
			this.setContent(sentence(error));
		}
	}

	private draw({ review, model, proposals, diff }: Review): void {
		const { contentEl } = this;
		this.setContent(words.reviewIntro(model));
		const decided = proposals.map(({ id, kind, text, why, replaces, private: closed, remark }) => {
			const proposed = remark ? "" : text.trim();
			const one = { id, proposed, text: proposed, choice: "later" };
			new Setting(contentEl)
				.setClass("tarsd-proposal")
				.setName(joined(kind === "rule" ? (remark ? words.remark : words.rule) : words.fact, closed && words.private))
				.setDesc([remark && words.said(text), why, replaces && words.replaces(replaces)].filter(Boolean).join("\n"))
				.addTextArea((area) => {
					area.setPlaceholder(remark ? words.writeRule : "").setValue(proposed).onChange((now) => {
						one.text = now.trim();
					}).inputEl.setAttr("aria-label", words.proposalText);
				})
				.addDropdown((choice) => {
					choice.addOptions({ later: words.later, keep: words.keep, drop: words.drop }).onChange((now) => {
						one.choice = now;
					}).selectEl.setAttr("aria-label", words.decision);
				});
			return one;
		});
		if (diff !== "") {
			const details = contentEl.createEl("details");
			details.createEl("summary", { text: words.showDiff });
			details.createEl("pre", { cls: "tarsd-review-diff", text: diff });
		}
		new Setting(contentEl).addButton((button) => {
			button.setButtonText(words.apply).setCta().onClick(async () => {
				button.setDisabled(true);
				await this.apply(review, decided.flatMap(decision));
				button.setDisabled(false);
			});
		});
	}

	private async apply(review: string, decisions: ReviewDecision[]): Promise<void> {
		if (decisions.length === 0) {
			new Notice(words.nothingChosen);
			return;
		}
		await told(async () => {
			const { written } = await clientOf(this.services).applyReview(review, decisions);
			new Notice(words.applied(written.length));
			this.close();
		});
	}
}

function decision({ id, proposed, text, choice }: { id: string; proposed: string; text: string; choice: string }): ReviewDecision[] {
	if (choice === "later" || (choice === "keep" && proposed === "" && text === "")) return [];
	if (choice === "drop" || text === "") return [{ id, action: "drop" }];
	return [text === proposed ? { id, action: "apply" } : { id, action: "edit", text }];
}
