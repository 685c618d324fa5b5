import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { createServer, type AddressInfo } from "node:net";
import { dirname, join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");
const OWN = join(ROOT, ".venv/bin/python");
const PYTHON = process.env["TARSD_PYTHON"] ?? (existsSync(OWN) ? OWN : "python3");
const MAIN = ["-c", "from tarsd.cli import main; main()"];

/** A real daemon process with its TCP listener, on a vault of its own; all of it is in one temporary folder. */
export class Daemon {
	readonly folder = mkdtempSync("/tmp/te-");
	readonly vault = join(this.folder, "vault");
	readonly home = join(this.folder, "home");
	address = "";
	token = "";
	private process: ChildProcess | null = null;
	private said = "";

	/** `notes` are the vault's files by path; `config` is appended to its config.toml. */
	constructor(notes: Record<string, string>, private readonly config: string) {
		mkdirSync(join(this.vault, ".obsidian"), { recursive: true });
		mkdirSync(this.home);
		for (const [path, text] of Object.entries(notes)) this.write(path, text);
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

	/** Start it, at the same address as before, and wait until its index is complete. */
	async start(): Promise<void> {
		if (this.address === "") await this.prepare();
		const child = spawn(PYTHON, [...MAIN, "run", "--vault", this.vault], { env: this.env(), stdio: ["ignore", "pipe", "pipe"] });
		this.process = child;
		for (const stream of [child.stdout, child.stderr]) {
			stream.on("data", (text: Buffer) => {
				this.said += text.toString();
			});
		}
		for (;;) {
			if (child.exitCode !== null || child.signalCode !== null) throw new Error(`The daemon ended (${PYTHON}): ${this.said.slice(-2000)}`);
			const status = (await this.call("GET", "/v1/status").catch(() => null)) as { behind?: number } | null;
			if (status?.behind === 0) break;
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

	/** One request over the socket; resolves with the JSON of the reply, or with the last line of a stream. */
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
					if ((reply.statusCode ?? 500) >= 400) reject(new Error(`${path}: ${text}`));
					else resolve(JSON.parse(text.trim().split("\n").at(-1) ?? "null"));
				});
			});
			sent.on("error", reject);
			sent.end(payload);
		});
	}

	private get socket(): string {
		const id = createHash("sha256").update(realpathSync(this.vault)).digest("hex").slice(0, 12);
		return join(this.home, `${id}.sock`);
	}

	private async prepare(): Promise<void> {
		const port = await freePort();
		this.address = `http://127.0.0.1:${port}`;
		const told = spawnSync(PYTHON, [...MAIN, "token"], { env: this.env(), encoding: "utf8" });
		this.token = /^[\w-]{32,}$/m.exec(told.stdout)?.[0] ?? "";
		if (told.status !== 0 || this.token === "") throw new Error(`tarsd token: ${told.stderr}`);
		const lines = [`[vault]\npath = ${JSON.stringify(this.vault)}\n`, `[http]\nenabled = true\nport = ${port}\n`, this.config];
		writeFileSync(join(this.home, "config.toml"), lines.join("\n"));
	}

	private env(): NodeJS.ProcessEnv {
		return { ...process.env, TARSD_HOME: this.home, TARSD_EMBEDDING: "table", TARSD_OPENAI_KEY: "sk-scripted", PYTHONPATH: ROOT };
	}
}

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
