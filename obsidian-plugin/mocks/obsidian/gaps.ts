/**
 * What a browser has and jsdom has not, so far as a pane uses it. There is no layout here: nothing observes
 * anything, and a scroll goes where it is told. Where the browser has its own, that stays.
 */
export function fillGaps(): void {
	fill(Element.prototype, "scrollIntoView", () => undefined);
	fill(Element.prototype, "scrollTo", function (this: Element, to: ScrollToOptions | number, top?: number) {
		this.scrollTop = typeof to === "number" ? (top ?? 0) : (to.top ?? this.scrollTop);
		this.dispatchEvent(new Event("scroll"));
	});
	for (const name of ["ResizeObserver", "IntersectionObserver"]) fill(window, name, Observer);
	fill(window, "matchMedia", (media: string) => Object.assign(new EventTarget(), { media, matches: false }));
	fill(navigator, "clipboard", new Clipboard());
}

function fill(target: object, name: string, value: unknown): void {
	if (!(name in target) || Reflect.get(target, name) === undefined) {
		Object.defineProperty(target, name, { value, configurable: true, writable: true });
	}
}

class Observer {
	observe(): void {}
	unobserve(): void {}
	disconnect(): void {}
	takeRecords(): unknown[] {
		return [];
	}
}

/** Keeps the last text, so that a test can read what was copied. */
class Clipboard {
	private text = "";

	async writeText(text: string): Promise<void> {
		this.text = text;
	}
	async readText(): Promise<string> {
		return this.text;
	}
}
