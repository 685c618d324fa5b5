import { aborted, TransportError } from "./transport";

/**
 * Bounds one exchange: by the caller's signal, which is not aborted yet, by a time for the whole and by the longest
 * silence, in milliseconds (0: none). When one of them ends it, `stop` is called to close the connection, and what is
 * awaited rejects.
 */
export class Guard {
	private readonly over: Promise<never>;
	private fail: (reason: Error) => void = () => undefined;
	private readonly total: number | null = null;
	private readonly onAbort = (): void => {
		this.end(aborted());
	};

	constructor(
		private readonly signal: AbortSignal | undefined,
		totalMs: number,
		private readonly silenceMs: number,
		private readonly stop: () => void,
	) {
		this.over = new Promise<never>((_, reject) => {
			this.fail = reject;
		});
		this.over.catch(() => undefined);
		signal?.addEventListener("abort", this.onAbort, { once: true });
		if (totalMs > 0) this.total = this.timer(totalMs);
	}

	/** `work`, unless the exchange ends before. */
	async step<T>(work: Promise<T>): Promise<T> {
		const silence = this.silenceMs > 0 ? this.timer(this.silenceMs) : null;
		try {
			return await Promise.race([this.over, work]);
		} finally {
			if (silence !== null) window.clearTimeout(silence);
		}
	}

	/** Let go of timers and the signal. */
	release(): void {
		if (this.total !== null) window.clearTimeout(this.total);
		this.signal?.removeEventListener("abort", this.onAbort);
	}

	private timer(ms: number): number {
		return window.setTimeout(() => {
			this.end(new TransportError("timeout", `no answer within ${ms} ms`));
		}, ms);
	}

	private end(reason: Error): void {
		this.fail(reason);
		this.stop();
	}
}
