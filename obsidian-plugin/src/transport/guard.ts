import { aborted, TransportError } from "./transport";

/** One exchange that is bounded. */
export interface Guard {
	/** `work`, unless the exchange ends before. */
	step: <T>(work: Promise<T>) => Promise<T>;
	/** Let go of timers and the signal. */
	release: () => void;
}

/**
 * Bounds one exchange: by the caller's signal, which is not aborted yet, by a time for the whole and by the longest
 * silence, in milliseconds (0: none). When one of them ends it, `stop` is called to close the connection, and what is
 * awaited rejects.
 */
export function guard(signal: AbortSignal | undefined, totalMs: number, silenceMs: number, stop: () => void): Guard {
	let end: (reason: Error) => void;
	const over = new Promise<never>((_, reject) => {
		end = (reason): void => {
			reject(reason);
			stop();
		};
	});
	over.catch(() => undefined);
	const onAbort = (): void => {
		end(aborted());
	};
	const timer = (ms: number): number =>
		ms &&
		window.setTimeout(() => {
			end(new TransportError("timeout", `no answer within ${ms} ms`));
		}, ms);
	const total = timer(totalMs);
	signal?.addEventListener("abort", onAbort);
	return {
		async step(work) {
			const silence = timer(silenceMs);
			try {
				return await Promise.race([over, work]);
			} finally {
				window.clearTimeout(silence);
			}
		},
		release() {
			window.clearTimeout(total);
			signal?.removeEventListener("abort", onAbort);
		},
	};
}
