import { aborted } from "../transport/transport";

/** A pause of `ms` milliseconds that rejects with an `AbortError` when the signal is aborted. */
export type Wait = (ms: number, signal: AbortSignal) => Promise<void>;

const FIRST_MS = 250;
const LONGEST_MS = 15_000;

/** How long to pause before the next try, after `tries` in vain: doubling up to 15 seconds. */
export function retryDelay(tries: number): number {
	return Math.min(FIRST_MS * 2 ** Math.min(tries, 10), LONGEST_MS);
}

/** The real pause. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
	return new Promise((resolve, reject) => {
		if (signal.aborted) {
			reject(aborted());
			return;
		}
		const stop = (): void => {
			window.clearTimeout(timer);
			reject(aborted());
		};
		const timer = window.setTimeout(() => {
			signal.removeEventListener("abort", stop);
			resolve();
		}, ms);
		signal.addEventListener("abort", stop, { once: true });
	});
}
