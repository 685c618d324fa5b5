import { readFileSync, existsSync } from "node:fs";
import { extname, join } from "node:path";
import { test as base, expect, type Locator, type Page, type WorkerFixture } from "@playwright/test";
import { Model } from "../tests/contract/model";
import { tarsd, type Tarsd } from "../tests/contract/tarsd";
import type { HarnessOptions } from "./bridge";
import { BUILD } from "./build";

export { expect };

/** The vault that most tests begin with. */
export const NOTES: Readonly<Record<string, string>> = {
	"House/Boiler.md": "# Boiler\n\n## Pressure\n\nThe gauge should read 1.2 bar when cold. See [[Plumber]].\n",
	"House/Plumber.md": "# Plumber\n\nOlla Brandt repairs the boiler and its gauge. She comes on Tuesdays.\n",
	"Tea.md": "---\ntags: [tea]\n---\n# Tea\n\nGyokuro wants water of 60 degrees.\n",
	"House/Paint.md": "# Paint\n\nThe kitchen is painted in a warm white, number 9010.\n",
};

/** A page's origin that the daemon knows: the one of the app on Android. */
const ORIGIN = "http://localhost";
const TYPES: Readonly<Record<string, string>> = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css" };

/** A daemon and its model. */
export class World {
	private constructor(
		readonly model: Model,
		readonly daemon: Tarsd,
		readonly files: Readonly<Record<string, string>>,
	) {}

	static async begin(files = NOTES, config = "", name = "vault"): Promise<World> {
		const model = new Model();
		const daemon = tarsd(files, (await model.config()) + config, { tcp: true, name });
		const world = new World(model, daemon, files);
		try {
			await daemon.start();
		} catch (error) {
			await world.end();
			throw error;
		}
		return world;
	}

	async end(): Promise<void> {
		await this.daemon.remove();
		await this.model.close();
	}

	/** A request as another client would make it. */
	async call<T>(method: string, path: string, body?: unknown): Promise<T> {
		return (await this.daemon.call(method, path, body)) as T;
	}

	/** A turn that was asked elsewhere, and is over. */
	async past(conversation: string, message: string, ...text: string[]): Promise<string> {
		this.model.replies.push({ text });
		const { turn } = await this.call<{ turn: string }>("POST", "/v1/turns", { conversation, message, request_id: `${conversation}-${message}` });
		await this.call("GET", `/v1/turns/${turn}/events`);
		return turn;
	}
}

/** A chat in a browser, and what a person does there. */
export abstract class Chat {
	/** What the console said that it should not have. */
	readonly complaints: string[] = [];
	/** Browsers put failed requests into the console, which nobody can prevent; a test says when it makes some fail. */
	readonly expected: RegExp[] = [];

	constructor(
		readonly page: Page,
		readonly world: World,
	) {
		this.listen(page);
	}

	/** Hear what the console of this page says. */
	listen(page: Page): void {
		page.on("pageerror", (error) => this.complaints.push(String(error)));
		page.on("console", (message) => {
			if (["error", "warning"].includes(message.type())) this.complaints.push(`${message.text()} (${message.location().url})`);
		});
	}

	abstract get root(): Locator;
	abstract get box(): Locator;
	/** The replies as a whole, each with `aria-busy` while it grows. */
	abstract get replies(): Locator;

	button(name: string | RegExp): Locator {
		return this.root.getByRole("button", { name, exact: typeof name === "string" });
	}

	async ask(question: string): Promise<void> {
		await this.box.fill(question);
		await this.box.press("Enter");
	}

	/** Ask, with what the model is to say, and wait for the end of the answer. */
	async hear(question: string, ...text: string[]): Promise<void> {
		this.world.model.replies.push({ text });
		const before = await this.replies.count();
		await this.ask(question);
		await expect(this.replies).toHaveCount(before + 1);
		await expect(this.replies.last()).toHaveAttribute("aria-busy", "false");
	}

	/** After a test: the model is as before, and nobody complained. */
	leave(): void {
		this.world.model.release();
		this.world.model.replies.length = 0;
		const complaints = this.complaints.filter((complaint) => !this.expected.some((pattern) => pattern.test(complaint)));
		expect(complaints, "what the console said, and what was asked of others").toEqual([]);
	}
}

/** The page with the pane in it. */
export class Pane extends Chat {
	/** The notes that the plugin wrote. */
	readonly written: string[] = [];

	/** Load the page and wait until the pane is there; `connected` is false where no daemon is to be found. */
	async open(options: Partial<HarnessOptions> & { connected?: boolean } = {}): Promise<void> {
		const { page, world } = this;
		const { connected = true, ...given } = options;
		const { address, token } = world.daemon;
		const all: HarnessOptions = { address, token, files: world.files, theme: "light", phone: false, rtl: false, settings: {}, ...given };
		await page.route(`${ORIGIN}/**`, (route) => {
			const name = new URL(route.request().url()).pathname.slice(1) || "harness.html";
			const place = join(BUILD, name);
			if (!existsSync(place)) return route.fulfill({ status: 404 });
			return route.fulfill({ body: readFileSync(place), contentType: TYPES[extname(name)] ?? "text/plain" });
		});
		await page.exposeFunction("harnessDisk", (path: string, text: string | null) => {
			world.daemon.write(path, text);
			this.written.push(path);
		});
		await page.addInitScript((value) => {
			window.harnessOptions = value;
		}, all);
		await page.goto(`${ORIGIN}/`);
		await expect(page.locator("body[data-ready]")).toBeAttached();
		if (connected) await expect(this.panel).toBeHidden();
	}

	get root(): Locator {
		return this.page.locator(".tarsd-chat");
	}
	get box(): Locator {
		return this.root.getByRole("combobox", { name: "Message" }).or(this.root.locator("textarea.tarsd-box")).first();
	}
	get panel(): Locator {
		return this.root.locator(".tarsd-connection");
	}
	get answers(): Locator {
		return this.root.locator(".tarsd-answer");
	}
	get lastAnswer(): Locator {
		return this.answers.last();
	}
	get replies(): Locator {
		return this.root.locator(".tarsd-reply");
	}
}

/** The fixture of a world that serves all tests of a worker. */
export function lasting(begin: () => Promise<World>): [WorkerFixture<World, object>, { scope: "worker"; timeout: number }] {
	return [
		// eslint-disable-next-line no-empty-pattern -- Playwright reads from the pattern what a fixture needs
		async ({}, use) => {
			const world = await begin();
			try {
				await use(world);
			} finally {
				await world.end();
			}
		},
		{ scope: "worker", timeout: 120_000 },
	];
}

export const test = base.extend<{ pane: Pane }, { world: World }>({
	world: lasting(() => World.begin()),
	pane: async ({ page, world }, use) => {
		const pane = new Pane(page, world);
		await use(pane);
		pane.leave();
	},
});
