import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { expect, test as base, type Locator, type Page } from "@playwright/test";
import { Model } from "../tests/contract/model";

export { expect };

const ROOT = join(import.meta.dirname, "../..");
const OWN = join(ROOT, ".venv/bin/python");
const PYTHON = process.env["TARSD_PYTHON"] ?? (existsSync(OWN) ? OWN : "python3");
export const TOKEN = "a-token-of-the-page-tests-0123456789";

const NOTES: Readonly<Record<string, string>> = {
	"House/Boiler.md": "---\ntags: [house]\n---\n# Boiler\n\n## Pressure\n\nThe gauge should read 1.2 bar when cold. See [[Plumber]].\n\n## Summer\n\nTurn it off in June.\n",
	"House/Plumber.md": "# Plumber\n\nOlla Brandt repairs the boiler and its gauge. She comes on Tuesdays.\n",
	"Tea.md": "---\ntags: [tea]\n---\n# Tea\n\nGyokuro wants water of 60 degrees. <b>Not</b> more.\n\n- [ ] buy sencha\n- [x] wash the pot\n",
	"House/Paint.md": "# Paint\n\nThe kitchen is painted in a warm white, number 9010.\n",
};

/** A real daemon with its page, on a vault of its own; all of it is in one temporary folder. */
export class House {
	readonly model = new Model();
	private readonly folder = mkdtempSync("/tmp/tp-");
	readonly vault = join(this.folder, "Notes & more");
	private readonly home = join(this.folder, "home");
	private port = 0;
	private process: ChildProcess | null = null;
	private said = "";

	get address(): string {
		return `http://127.0.0.1:${this.port}`;
	}

	/** Make the vault and begin; `config` is appended to its config.toml. */
	async begin(config = ""): Promise<void> {
		mkdirSync(join(this.vault, ".obsidian"), { recursive: true });
		mkdirSync(this.home);
		for (const [path, text] of Object.entries(NOTES)) this.write(path, text);
		this.port = await freePort();
		const listener = `[http]\nenabled = true\nport = ${this.port}\n`;
		writeFileSync(join(this.home, "config.toml"), `${listener}${await this.model.config()}${config}`);
		await this.start();
	}

	read(path: string): string {
		return readFileSync(join(this.vault, path), "utf8");
	}

	write(path: string, text: string): void {
		const place = join(this.vault, path);
		mkdirSync(dirname(place), { recursive: true });
		writeFileSync(place, text);
	}

	/** Start the daemon, at the same address as before, and wait until its index is complete. */
	async start(): Promise<void> {
		const env = { ...process.env, TARSD_HOME: this.home, TARSD_EMBEDDING: "table", TARSD_OPENAI_KEY: "sk-scripted", TARSD_TCP_KEY: TOKEN, PYTHON_KEYRING_BACKEND: "keyring.backends.fail.Keyring", PYTHONPATH: ROOT };
		const child = spawn(PYTHON, ["-c", "from tarsd.cli import main; main()", "run", "--vault", this.vault], { env, stdio: ["ignore", "pipe", "pipe"] });
		this.process = child;
		for (const stream of [child.stdout, child.stderr]) stream.on("data", (text: Buffer) => (this.said += text.toString()));
		for (const end = Date.now() + 30_000; ; ) {
			if (child.exitCode !== null || Date.now() > end) throw new Error(`The daemon did not start (${PYTHON}): ${this.said.slice(-2000)}`);
			const status = await this.call<{ behind: number }>("GET", "v1/status").catch(() => null);
			if (status?.behind === 0) return;
			await new Promise((resolve) => setTimeout(resolve, 50));
		}
	}

	/** End it as a person would, or as a crash does. */
	async stop(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
		const child = this.process;
		this.process = null;
		if (child === null || child.exitCode !== null) return;
		const gone = new Promise((resolve) => child.once("exit", resolve));
		child.kill(signal);
		await gone;
	}

	async end(): Promise<void> {
		await this.stop("SIGKILL");
		await this.model.close();
		rmSync(this.folder, { recursive: true, force: true });
	}

	/** A request as another client would make it. */
	async call<T>(method: string, path: string, body?: unknown): Promise<T> {
		const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
		const reply = await fetch(`${this.address}/${path}`, { method, headers, body: body === undefined ? null : JSON.stringify(body) });
		const text = await reply.text();
		if (!reply.ok) throw new Error(`${path}: ${text}`);
		return JSON.parse(text.trim().split("\n").at(-1) ?? "null") as T;
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
			const house = new House();
			try {
				await house.begin();
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

function freePort(): Promise<number> {
	return new Promise((resolve) => {
		const server = createServer();
		server.listen(0, "127.0.0.1", () => {
			const { port } = server.address() as AddressInfo;
			server.close(() => {
				resolve(port);
			});
		});
	});
}
