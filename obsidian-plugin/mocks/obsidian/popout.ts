/** A window of its own for one pane. */
export interface Popout {
	readonly body: HTMLElement;
	close(): void;
}

/** How the app opens one; it calls `closed` when a person closes it. Here it is a frame, with its own document and window. */
export const popouts: { open(closed: () => void): Popout } = {
	open: () => {
		const frame = document.body.appendChild(document.createElement("iframe"));
		const body = frame.contentDocument?.body;
		if (!body) throw new Error("A frame has no document.");
		return {
			body,
			close: () => {
				frame.remove();
			},
		};
	},
};
