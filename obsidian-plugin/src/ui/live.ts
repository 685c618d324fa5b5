/**
 * What a screen reader says by itself. Two regions take turns, so that the same words twice are heard twice, and none
 * holds an answer while it grows: it is said once, when it is whole.
 */
export class Live {
	private readonly regions: HTMLElement[];
	private next = 0;

	constructor(parent: HTMLElement) {
		this.regions = [0, 1].map(() =>
			parent.createDiv({ cls: "tarsd-live", attr: { role: "status", "aria-live": "polite", "aria-atomic": "true" } }),
		);
	}

	say(words: string): void {
		const region = this.regions[this.next];
		this.next = (this.next + 1) % this.regions.length;
		for (const one of this.regions) one.setText(one === region ? words : "");
	}
}
