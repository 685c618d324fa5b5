import { spawn, type ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { dirname, join } from "node:path";

/** Where the daemon's package is. */
export const ROOT = join(import.meta.dirname, "../../..");
const OWN = join(ROOT, ".venv/bin/python");

/** The interpreter that has tarsd's own requirements. */
export const PYTHON = process.env["TARSD_PYTHON"] ?? (existsSync(OWN) ? OWN : "python3");

/** Settings of whoever runs the tests, which are no business of the daemon here. */
const THEIRS = /^(TARSD|OLLAMA|OPENAI|ANTHROPIC|XDG)_/;
/** What TCP asks for. */
export const TOKEN = "a-token-of-the-tests-0123456789-0123456789";

/** Time to start and index; less than a test has, so that it can still say what is wrong and clear up. */
const START_MS = 110_000;

/** As much of the status as is waited for. */
interface Status {
	behind: number;
	http: { url: string };
}

/**
 * A real daemon process on a vault of its own, with everything of it in one temporary folder. It knows nothing of the
 * plugin's code, so that the plugin's code can be held against it.
 */
export class Tarsd {
	readonly vault: string;
	readonly home: string;
	readonly token = TOKEN;
	/** Of the daemon's process; to be changed before it is started. */
	readonly env: Record<string, string | undefined>;
	/** Where it is expected to listen. */
	socket: string;
	/** Its TCP listener, once it was started with one; the same after the next start. */
	address = "";
	private process: ChildProcess | null = null;
	private said = "";

	constructor(
		private readonly folder: string,
		notes: Readonly<Record<string, string>>,
		private readonly config: string,
		private readonly tcp: boolean,
		name: string,
	) {
		this.vault = join(folder, name);
		this.home = join(folder, "home");
		mkdirSync(join(this.vault, ".obsidian"), { recursive: true });
		mkdirSync(this.home);
		for (const [path, text] of Object.entries(notes)) this.write(path, text);
		const id = createHash("sha256").update(realpathSync(this.vault)).digest("hex").slice(0, 12);
		this.socket = join(this.home, `${id}.sock`);
		this.env = {
			...Object.fromEntries(Object.entries(process.env).filter(([name]) => !THEIRS.test(name))),
			TARSD_HOME: this.home,
			TARSD_CONFIG: join(this.home, "config.toml"),
			TARSD_EMBEDDING: "table",
			TARSD_OPENAI_KEY: "sk-scripted",
			TARSD_TCP_KEY: TOKEN,
			PYTHON_KEYRING_BACKEND: "keyring.backends.fail.Keyring",
			PYTHONPATH: ROOT,
		};
	}

	/** A file of the vault as another program would write it; null removes it. */
	write(path: string, text: string | null): void {
		const place = join(this.vault, path);
		if (text === null) rmSync(place);
		else {
			mkdirSync(dirname(place), { recursive: true });
			writeFileSync(place, text);
		}
	}

	read(path: string): string {
		return readFileSync(join(this.vault, path), "utf8");
	}

	/** The text of the note below a folder that has these words; "" while there is none. */
	find(folder: string, words: string): string {
		const place = join(this.vault, folder);
		const names = existsSync(place) ? readdirSync(place, { recursive: true, encoding: "utf8" }) : [];
		const texts = names.filter((name) => name.endsWith(".md")).map((name) => this.read(join(folder, name)));
		return texts.find((text) => text.includes(words)) ?? "";
	}

	/** Start it and wait until its index is complete. */
	async start(): Promise<void> {
		this.configure();
		const child = spawn(PYTHON, ["-c", "from tarsd.cli import main; main()", "run", "--vault", this.vault], {
			env: this.env,
			stdio: ["ignore", "pipe", "pipe"],
		});
		this.process = child;
		for (const stream of [child.stdout, child.stderr]) {
			stream.on("data", (text: Buffer) => {
				this.said += text.toString();
			});
		}
		let ended = false;
		child.once("exit", () => {
			ended = true;
		});
		child.once("error", (error) => {
			ended = true;
			this.said += String(error);
		});
		const end = Date.now() + START_MS;
		for (let status: Status | null = null; ; ) {
			const why = ended ? "ended" : `is not ready: ${JSON.stringify(status)}`;
			if (ended || Date.now() > end) throw new Error(`The daemon (${PYTHON}) ${why}\n${this.said.slice(-2000)}`);
			status = (await this.call("GET", "/v1/status").catch(() => null)) as Status | null;
			if (status?.behind === 0 && (!this.tcp || status.http.url !== "")) {
				this.address = status.http.url;
				return;
			}
			await new Promise((resolve) => setTimeout(resolve, 25));
		}
	}

	/** End it as a person would, or as a crash does. */
	async stop(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
		const child = this.process;
		this.process = null;
		if (child === null || child.exitCode !== null || child.signalCode !== null) return;
		const gone = new Promise((resolve) => child.once("exit", resolve));
		child.kill(signal);
		await gone;
	}

	async remove(): Promise<void> {
		await this.stop("SIGKILL");
		rmSync(this.folder, { recursive: true, force: true });
	}

	/** The JSON of the reply to a request over the socket, or the last line of a stream; rejects with a `Refusal`. */
	call(method: string, path: string, body?: unknown): Promise<unknown> {
		const payload = body === undefined ? "" : JSON.stringify(body);
		const headers = { host: "tarsd", ...(payload === "" ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(payload) }) };
		return new Promise((resolve, reject) => {
			const sent = request({ socketPath: this.socket, method, path, headers, agent: false }, (reply) => {
				let text = "";
				reply.setEncoding("utf8");
				reply.on("data", (piece: string) => (text += piece));
				reply.on("error", reject);
				reply.on("end", () => {
					const status = reply.statusCode ?? 500;
					if (status >= 400) reject(new Refusal(`${method} ${path}`, status, text));
					else resolve(JSON.parse(text.trim().split("\n").at(-1) ?? "null"));
				});
			});
			sent.on("error", reject);
			sent.end(payload);
		});
	}

	private configure(): void {
		const port = this.address === "" ? 0 : Number(new URL(this.address).port);
		const listener = this.tcp ? `[http]\nenabled = true\nport = ${port}\n` : "";
		writeFileSync(join(this.home, "config.toml"), `[vault]\npath = ${JSON.stringify(this.vault)}\n${listener}${this.config}`);
	}
}

/** What the daemon says when it does not do what it is asked. */
export class Refusal extends Error {
	constructor(
		request: string,
		readonly status: number,
		readonly text: string,
	) {
		super(`${request}: ${status} ${text}`);
	}
}

const EXTRACTIVE = '[chat]\nmodel = "extractive"\n';

/**
 * A daemon that is not started yet; its folder has a short path, as a socket's must be. With `tcp` it listens there,
 * too; `name` is the vault's.
 */
export function tarsd(notes: Readonly<Record<string, string>>, config = EXTRACTIVE, { tcp = false, name = "vault" } = {}): Tarsd {
	return new Tarsd(mkdtempSync("/tmp/tp-"), notes, config, tcp, name);
}
