import { ConfirmationModal, type App } from "obsidian";

/** What is asked before something that cannot be taken back easily. */
export interface Question {
	readonly title: string;
	readonly text: string;
	readonly yes: string;
	readonly no: string;
}

/** Ask; resolves true for a yes, and false for everything else that closes the question. */
export function confirm(app: App, question: Question): Promise<boolean> {
	return new Promise((resolve) => {
		let answer = false;
		new ConfirmationModal(app)
			.addButton((button) =>
				button.setButtonText(question.yes).setDestructive().onClick(() => {
					answer = true;
				}),
			)
			.addCancelButton(question.no)
			.setTitle(question.title)
			.setContent(question.text)
			.setCloseCallback(() => {
				resolve(answer);
			})
			.open();
	});
}
