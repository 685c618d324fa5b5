import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Client } from "../../src/daemon/client";
import { NodeTransport } from "../../src/transport/node-http";
import { socketPath, vaultId } from "../../src/transport/socket-path";

/** Where the daemon's package is. */
export const ROOT = join(import.meta.dirname, "../../..");
const OWN = join(ROOT, ".venv/bin/python");

/** The interpreter that has tarsd's own requirements. */
export const PYTHON = process.env["TARSD_PYTHON"] ?? (existsSync(OWN) ? OWN : "python3");

/** A real daemon process on a vault of its own, with everything of it in one temporary folder. */
export class Tarsd {
	readonly vault: string;
	readonly home: string;
	private process: ChildProcess | null = null;
	private said = "";

	/** `notes` are the vault's files by path; `config` is appended to its config.toml. */
	constructor(
		private readonly folder: string,
		notes: Record<string, string>,
		config: string,
	) {
		this.vault = join(folder, "vault");
		this.home = join(folder, "home");
		mkdirSync(join(this.vault, ".obsidian"), { recursive: true });
		mkdirSync(this.home);
		for (const [path, text] of Object.entries(notes)) {
			mkdirSync(dirname(join(this.vault, path)), { recursive: true });
			writeFileSync(join(this.vault, path), text);
		}
		writeFileSync(join(this.home, "config.toml"), `[vault]\npath = ${JSON.stringify(this.vault)}\n${config}`);
	}

	/** The socket as the plugin computes it. */
	async socket(): Promise<string> {
		const id = await vaultId(realpathSync(this.vault));
		return socketPath(id, { realPath: this.vault, home: "/nowhere", uid: process.getuid?.() ?? 0, tarsdHome: this.home });
	}

	async client(): Promise<Client> {
		return new Client(new NodeTransport({ socketPath: await this.socket() }));
	}

	/** Start it and wait until its index is complete. */
	async start(): Promise<void> {
		const env = { ...process.env, TARSD_HOME: this.home, TARSD_EMBEDDING: "table", TARSD_OPENAI_KEY: "sk-scripted", PYTHONPATH: ROOT };
		const child = spawn(PYTHON, ["-c", "from tarsd.cli import main; main()", "run", "--vault", this.vault], {
			env,
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
		const client = await this.client();
		for (;;) {
			if (ended) throw new Error(`The daemon ended (${PYTHON}): ${this.said.slice(-2000)}`);
			const status = await client.status().catch(() => null);
			if (status !== null && status.behind === 0) return;
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
}

/** A daemon that is not started yet; its folder has a short path, as a socket's must be. */
export function tarsd(notes: Record<string, string>, config = '[chat]\nmodel = "extractive"\n'): Tarsd {
	return new Tarsd(mkdtempSync("/tmp/tp-"), notes, config);
}
