import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { pause } from "../../src/daemon/backoff";
import { guard } from "../../src/transport/guard";
import { isAbort } from "../../src/transport/transport";

beforeEach(() => {
	vi.stubGlobal("window", globalThis);
	vi.useFakeTimers();
});

afterEach(() => {
	vi.useRealTimers();
	vi.unstubAllGlobals();
});

const never = (): Promise<never> => new Promise(() => undefined);

describe("Guard", () => {
	it("ends a stream that is silent for too long, and only then", async () => {
		const stop = vi.fn();
		const bounds = guard(undefined, 0, 45_000, stop);
		for (let n = 0; n < 5; n += 1) {
			const heartbeat = bounds.step(new Promise<string>((resolve) => setTimeout(resolve, 15_000, "heartbeat")));
			await vi.advanceTimersByTimeAsync(15_000);
			await expect(heartbeat).resolves.toBe("heartbeat");
			// what the reader does meanwhile is no silence of the daemon
			await vi.advanceTimersByTimeAsync(100_000);
		}
		expect(stop).not.toHaveBeenCalled();
		const silent = expect(bounds.step(never())).rejects.toMatchObject({ kind: "timeout" });
		await vi.advanceTimersByTimeAsync(45_000);
		await silent;
		expect(stop).toHaveBeenCalledTimes(1);
		bounds.release();
		expect(vi.getTimerCount()).toBe(0);
	});

	it("bounds the whole, whatever comes meanwhile", async () => {
		const stop = vi.fn();
		const bounds = guard(undefined, 1000, 0, stop);
		const late = expect(bounds.step(never())).rejects.toMatchObject({ kind: "timeout" });
		await vi.advanceTimersByTimeAsync(1000);
		await late;
		expect(stop).toHaveBeenCalledTimes(1);
		await expect(bounds.step(never())).rejects.toMatchObject({ kind: "timeout" });
	});

	it("ends by the signal, and leaves neither timers nor listeners behind", async () => {
		const controller = new AbortController();
		const remove = vi.spyOn(controller.signal, "removeEventListener");
		const stop = vi.fn();
		const bounds = guard(controller.signal, 1000, 1000, stop);
		const waiting = expect(bounds.step(never())).rejects.toSatisfy(isAbort);
		controller.abort();
		await waiting;
		bounds.release();
		expect(stop).toHaveBeenCalledTimes(1);
		expect(remove).toHaveBeenCalled();
		expect(vi.getTimerCount()).toBe(0);
	});
});

describe("pause", () => {
	it("passes, and is ended by the signal", async () => {
		const controller = new AbortController();
		const passing = pause(250, controller.signal);
		await vi.advanceTimersByTimeAsync(250);
		await expect(passing).resolves.toBeUndefined();
		const ended = expect(pause(250, controller.signal)).rejects.toSatisfy(isAbort);
		controller.abort();
		await ended;
		await expect(pause(250, controller.signal)).rejects.toSatisfy(isAbort);
		expect(vi.getTimerCount()).toBe(0);
	});
});
