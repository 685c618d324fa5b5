import { DropdownComponent, Modal, Notice, TextAreaComponent } from "obsidian";
import type { ReviewDecision } from "../daemon/client";
import type { Review, ReviewProposal } from "../protocol/events";
import { clientOf, told } from "./asking";
import { sentence } from "./errors";
import type { Services } from "./services";

type Choice = "keep" | "drop" | "later";

interface Decided {
	readonly proposal: ReviewProposal;
	choice: Choice;
	text: string;
}

/** What a review proposes to remember, each to be kept, changed, dropped or left for later. Nothing is kept unasked. */
export class ReviewModal extends Modal {
	private review = "";
	private decided: Decided[] = [];
	private open_ = true;

	constructor(private readonly services: Services) {
		super(services.app);
		this.modalEl.addClass("tarsd-review");
	}

	override async onOpen(): Promise<void> {
		const words = this.services.t.memory;
		this.setTitle(words.reviewTitle);
		this.say(words.reviewing);
		try {
			const review = await clientOf(this.services).review();
			if (this.open_) this.draw(review);
		} catch (error) {
			if (this.open_) this.say(sentence(error));
		}
	}

	override onClose(): void {
		this.open_ = false;
		this.contentEl.empty();
	}

	private say(text: string): void {
		this.contentEl.empty();
		this.contentEl.createEl("p", { text, attr: { role: "status" } });
	}

	private draw(review: Review): void {
		const words = this.services.t.memory;
		if (review.proposals.length === 0) {
			this.say(words.reviewNothing);
			return;
		}
		this.review = review.review;
		this.contentEl.empty();
		this.contentEl.createEl("p", { text: words.reviewIntro });
		if (review.model !== "") this.contentEl.createEl("p", { cls: "tarsd-hit-place", text: words.reviewBy(review.model) });
		this.decided = review.proposals.map((proposal) => ({ proposal, choice: "later", text: proposal.text }));
		this.decided.forEach((one, index) => {
			this.drawProposal(one, index + 1);
		});
		if (review.diff !== "") {
			const details = this.contentEl.createEl("details");
			details.createEl("summary", { text: words.showDiff });
			details.createEl("pre", { cls: "tarsd-review-diff", text: review.diff });
		}
		const buttons = this.contentEl.createDiv("modal-button-container");
		const apply = buttons.createEl("button", { cls: "mod-cta", text: words.apply });
		apply.addEventListener("click", () => {
			apply.disabled = true;
			void this.apply().finally(() => {
				apply.disabled = false;
			});
		});
	}

	private drawProposal(one: Decided, number: number): void {
		const words = this.services.t.memory;
		const { proposal } = one;
		const box = this.contentEl.createDiv({ cls: "tarsd-proposal", attr: { role: "group", "aria-label": words.proposal(number) } });
		const about = [proposal.kind === "rule" ? words.rule : words.fact, proposal.private ? words.private : ""].filter(Boolean);
		box.createDiv({ cls: "tarsd-hit-place", text: about.join(" · ") });
		const area = new TextAreaComponent(box).setValue(one.text).onChange((text) => {
			one.text = text;
		});
		area.inputEl.setAttr("aria-label", words.proposalText);
		if (proposal.why !== "") box.createDiv({ cls: "tarsd-hit-text", text: proposal.why });
		if (proposal.replaces !== "") box.createDiv({ cls: "tarsd-hit-text", text: words.replaces(proposal.replaces) });
		const choice = new DropdownComponent(box).addOptions({ later: words.later, keep: words.keep, drop: words.drop }).setValue(one.choice);
		choice.selectEl.setAttr("aria-label", words.decision);
		choice.onChange((value) => {
			one.choice = value === "keep" || value === "drop" ? value : "later";
		});
	}

	private async apply(): Promise<void> {
		const words = this.services.t.memory;
		const decisions = this.decided.flatMap(decision);
		if (decisions.length === 0) {
			new Notice(words.nothingChosen);
			return;
		}
		await told(async () => {
			const { written } = await clientOf(this.services).applyReview(this.review, decisions);
			new Notice(words.applied(written.length));
			this.close();
		});
	}
}

function decision({ proposal, choice, text }: Decided): ReviewDecision[] {
	const { id } = proposal;
	const own = text.trim();
	if (choice === "later") return [];
	if (choice === "drop" || own === "") return [{ id, action: "drop" }];
	return [own === proposal.text.trim() ? { id, action: "apply" } : { id, action: "edit", text: own }];
}
