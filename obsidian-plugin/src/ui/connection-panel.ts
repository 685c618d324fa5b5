import { drawConnection } from "./connection-page";
import { show } from "./dom";
import type { Services } from "./services";

/**
 * Why there is no daemon to talk to, and what to do: on top of the messages, or in the middle of an empty pane. Returns
 * how to end that.
 */
export function connectionPanel(parent: HTMLElement, services: Services, say: (words: string) => void): () => void {
	const el = parent.createDiv("tarsd-connection");
	return drawConnection(el, services, (state) => {
		show(el, state.name !== "connected");
		if ("failure" in state) say(`${state.failure.title}. ${state.failure.text}`);
	});
}
