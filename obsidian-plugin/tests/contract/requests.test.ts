import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { daemonClient, type Client } from "../../src/daemon/client";
import { isObject, type Json } from "../../src/protocol/values";
import { TransportError, type Call } from "../../src/transport/transport";
import { CALLS } from "../calls";
import { Refusal, tarsd, type Tarsd } from "./tarsd";

/** What the client sends for a call; nobody answers. */
async function requestOf(send: (client: Client) => Promise<unknown>): Promise<Call> {
	const sent: Call[] = [];
	const nobody = new TransportError("malformed", "nobody is there");
	const client = daemonClient({
		kind: "poll",
		streams: false,
		json: (call) => {
			sent.push(call);
			return Promise.reject(nobody);
		},
		stream: () => {
			throw nobody;
		},
	});
	await expect(send(client)).rejects.toBe(nobody);
	const [call] = sent;
	if (call === undefined) throw new Error("nothing was sent");
	return call;
}

/** The same body once for each of its fields, with a value there that no field takes; and the name of the field. */
function spoiled(body: Json): [string, Json][] {
	return Object.entries(body).flatMap(([name, value]): [string, Json][] => {
		const whole: [string, Json] = [name, { ...body, [name]: typeof value === "string" ? 5 : "wrong" }];
		if (!Array.isArray(value) || !isObject(value[0])) return [whole];
		return [whole, ...spoiled(value[0]).map(([inner, one]): [string, Json] => [inner, { ...body, [name]: [one] }])];
	});
}

/** A field that the daemon does not know is one that it does not look at; one that it knows, it refuses by its name. */
describe("the client's requests", () => {
	let daemon: Tarsd;

	beforeAll(async () => {
		daemon = tarsd({ "N.md": "# N\n" });
		await daemon.start();
	});

	afterAll(() => daemon.remove());

	async function refusal(method: string, path: string, body?: unknown): Promise<{ status: number; error: Json }> {
		const error: unknown = await daemon.call(method, path, body).catch((thrown: unknown) => thrown);
		if (!(error instanceof Refusal)) throw new Error(`${method} ${path} was not refused: ${JSON.stringify(error)}`);
		return { status: error.status, ...(JSON.parse(error.text) as { error: Json }) };
	}

	it.each(Object.entries(CALLS))("%s goes to a route of the daemon, and it knows every field", async (_, { send }) => {
		const { method, path, body } = await requestOf(send);
		// no route takes this method, so that a route is found and nothing is done
		const { status, error } = await refusal("OPTIONS", path);
		expect([status, error["code"]]).toEqual([405, "wrong_method"]);
		expect(String(error["hint"]).match(/[A-Z]{3,}/g)).toContain(method);
		for (const [field, wrong] of spoiled((body ?? {}) as Json)) {
			expect(await refusal(method, path, wrong)).toMatchObject({ status: 422, error: { code: "bad_request", field } });
		}
	});
});
