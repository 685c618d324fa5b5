import { add } from "./dom";

/**
 * What a screen reader says by itself. Two regions take turns, so that the same words twice are heard twice, and none
 * holds an answer while it grows: it is said once, when it is whole.
 */
export function live(parent: HTMLElement): (words: string) => void {
	const region = (): HTMLElement => add(parent, "div", "tarsd-live", "", { role: "status", "aria-live": "polite", "aria-atomic": "true" });
	let [next, other] = [region(), region()];
	return (words) => {
		other.setText("");
		next.setText(words);
		[next, other] = [other, next];
	};
}
