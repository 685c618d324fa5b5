import { ConfirmationModal, type App } from "obsidian";

/** What is asked before something is done: about a text, or for one in a box. */
export interface Question {
	readonly title: string;
	readonly content: string | HTMLInputElement;
	readonly yes: string;
}

/** Ask; resolves true for a yes, which Enter in a box is too, and false for everything else that closes the question. */
export function confirm(app: App, { title, content, yes }: Question): Promise<boolean> {
	return new Promise((resolve) => {
		let answer = false;
		new ConfirmationModal(app)
			.addButton((button) => {
				button.setButtonText(yes).onClick(() => {
					answer = true;
				});
				if (typeof content === "string") button.setDestructive();
				else content.addEventListener("keydown", ({ key, isComposing }) => {
					if (key === "Enter" && !isComposing) button.buttonEl.click();
				});
			})
			.addCancelButton()
			.setTitle(title)
			.setContent(createFragment((el) => {
				el.append(content);
			}))
			.setCloseCallback(() => {
				resolve(answer);
			})
			.open();
	});
}
