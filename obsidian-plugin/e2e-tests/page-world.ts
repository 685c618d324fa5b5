import { expect, test as base, type Locator, type Page } from "@playwright/test";
import type { Model } from "../tests/contract/model";
import { TOKEN } from "../tests/contract/tarsd";
import { World } from "./world";

export { expect, TOKEN };

const NOTES: Readonly<Record<string, string>> = {
	"House/Boiler.md": "---\ntags: [house]\n---\n# Boiler\n\n## Pressure\n\nThe gauge should read 1.2 bar when cold. See [[Plumber]].\n\n## Summer\n\nTurn it off in June.\n",
	"House/Plumber.md": "# Plumber\n\nOlla Brandt repairs the boiler and its gauge. She comes on Tuesdays.\n",
	"Tea.md": "---\ntags: [tea]\n---\n# Tea\n\nGyokuro wants water of 60 degrees. <b>Not</b> more.\n\n- [ ] buy sencha\n- [x] wash the pot\n",
	"House/Paint.md": "# Paint\n\nThe kitchen is painted in a warm white, number 9010.\n",
};

/** A real daemon with its page, and its model. */
export class House {
	private constructor(private readonly world: World) {}

	static async begin(): Promise<House> {
		return new House(await World.begin(NOTES, "", "Notes & more"));
	}

	end(): Promise<void> {
		return this.world.end();
	}

	get model(): Model {
		return this.world.model;
	}

	get address(): string {
		return this.world.daemon.address;
	}

	read(path: string): string {
		return this.world.daemon.read(path);
	}

	write(path: string, text: string): void {
		this.world.daemon.write(path, text);
	}

	/** Start the daemon, at the same address as before, and wait until its index is complete. */
	start(): Promise<void> {
		return this.world.daemon.start();
	}

	/** End it as a person would, or as a crash does. */
	stop(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
		return this.world.daemon.stop(signal);
	}

	/** A request as another client would make it. */
	async call<T>(method: string, path: string, body?: unknown): Promise<T> {
		return (await this.world.daemon.call(method, `/${path}`, body)) as T;
	}

	/** A turn that was asked elsewhere, and is over. */
	async past(conversation: string, message: string, ...text: string[]): Promise<string> {
		this.model.replies.push({ text });
		const { turn } = await this.call<{ turn: string }>("POST", "v1/turns", { conversation, message, request_id: `${conversation}-${message}` });
		await this.call("GET", `v1/turns/${turn}/events`);
		return turn;
	}
}

/** The page in a browser, and what a person does there. */
export class Phone {
	/** What the console said that it should not have, and every request that left for elsewhere. */
	readonly complaints: string[] = [];
	/** Browsers put failed requests into the console, which nobody can prevent; a test says when it makes some fail. */
	readonly expected: RegExp[] = [];

	constructor(
		readonly page: Page,
		readonly house: House,
	) {
		page.on("pageerror", (error) => this.complaints.push(String(error)));
		page.on("console", (message) => {
			if (["error", "warning"].includes(message.type())) this.complaints.push(`${message.text()} (${message.location().url})`);
		});
		page.on("request", (request) => {
			if (!request.url().startsWith(`${house.address}/`) && !request.url().startsWith("data:")) this.complaints.push(`asked for ${request.url()}`);
		});
	}

	/** Load the page with a token, and wait until it is connected. */
	async open(hash = ""): Promise<void> {
		await this.page.goto(`${this.house.address}/#token=${TOKEN}${hash}`);
		await this.connected();
	}

	async connected(): Promise<void> {
		await expect(this.page.locator("body")).toHaveAttribute("data-state", "connected", { timeout: 20_000 });
	}

	get box(): Locator {
		return this.page.getByRole("textbox", { name: "Message" });
	}
	get turns(): Locator {
		return this.page.locator(".turn");
	}
	/** The newest answer, as it is drawn. */
	get answer(): Locator {
		return this.turns.last().locator(".reply > .text");
	}
	button(name: string | RegExp): Locator {
		return this.page.getByRole("button", { name, exact: typeof name === "string" });
	}

	async ask(question: string): Promise<void> {
		await this.box.fill(question);
		await this.box.press("Enter");
	}

	/** Ask, with what the model is to say, and wait for the end of the answer. */
	async hear(question: string, ...text: string[]): Promise<void> {
		this.house.model.replies.push({ text });
		const before = await this.turns.count();
		await this.ask(question);
		await expect(this.turns).toHaveCount(before + 1);
		await expect(this.turns.last().locator(".reply")).toHaveAttribute("aria-busy", "false");
	}
}

export const test = base.extend<{ phone: Phone }, { house: House }>({
	house: [
		// eslint-disable-next-line no-empty-pattern -- Playwright reads from the pattern what a fixture needs
		async ({}, use) => {
			const house = await House.begin();
			try {
				await use(house);
			} finally {
				await house.end();
			}
		},
		{ scope: "worker", timeout: 60_000 },
	],
	phone: async ({ page, house }, use) => {
		const phone = new Phone(page, house);
		await use(phone);
		house.model.release();
		house.model.replies.length = 0;
		const complaints = phone.complaints.filter((one) => !phone.expected.some((pattern) => pattern.test(one)));
		expect(complaints, "what the console said, and what was asked of others").toEqual([]);
	},
});
