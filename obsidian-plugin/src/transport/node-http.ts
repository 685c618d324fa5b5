import { Platform } from "obsidian";
import type { Address } from "./address";
import { Guard } from "./guard";
import { headers, payload, readJson, readLines, replyError } from "./reply";
import { shortFolder, type Places } from "./socket-path";
import { aborted, isAbort, REPLY_MS, SILENCE_MS, TransportError, type Call, type Transport, type Trouble } from "./transport";

/** Where to connect to: a socket file, which needs no token, or an address with one. */
export type Target = { socketPath: string } | { address: Address; token: string };

/** Over Node's HTTP, on the desktop: a Unix socket, or TCP without the bounds that pages have. */
export class NodeTransport implements Transport {
	readonly kind: "unix" | "tcp";
	readonly streams = true;

	constructor(private readonly target: Target) {
		this.kind = "socketPath" in target ? "unix" : "tcp";
	}

	json(call: Call): Promise<unknown> {
		return readJson(this.exchange(call, "application/json", call.timeout ?? REPLY_MS, 0));
	}

	stream(call: Call): AsyncIterable<unknown> {
		return readLines(this.exchange(call, "application/x-ndjson", 0, SILENCE_MS));
	}

	private async *exchange(call: Call, accept: string, total: number, silence: number): AsyncGenerator<Uint8Array> {
		if (call.signal?.aborted) throw aborted();
		const body = payload(call);
		const request = this.open(call, accept, body);
		// the listener stays: destroying a request emits "error" again, and unheard that ends the app's script
		const failed = new Promise<never>((_, reject) => request.on("error", reject));
		failed.catch(() => undefined);
		const guard = new Guard(call.signal, total, silence, () => {
			request.destroy();
		});
		try {
			const answered = new Promise<NodeResponse>((resolve) => request.once("response", resolve));
			request.end(body);
			const response = await guard.step(Promise.race([failed, answered]));
			const status = response.statusCode ?? 0;
			const pieces = response[Symbol.asyncIterator]();
			const error: Uint8Array[] = [];
			for (;;) {
				const next = await guard.step(pieces.next());
				if (next.done) break;
				if (status < 300) yield next.value;
				else error.push(next.value);
			}
			if (status >= 300) throw replyError(status, new TextDecoder().decode(joined(error)));
		} catch (error) {
			throw this.told(error);
		} finally {
			guard.release();
			request.destroy();
		}
	}

	private open(call: Call, accept: string, body: string | undefined): NodeRequest {
		const size = body === undefined ? {} : { "content-length": String(new TextEncoder().encode(body).length) };
		// no kept-alive connections: the daemon may close one between two requests, and the second is lost
		const options = { method: call.method, agent: false };
		if ("socketPath" in this.target) {
			checkFolder(this.target.socketPath);
			const own = { ...headers(call, "", accept), ...size, host: "tarsd" };
			return node("http").request({ ...options, socketPath: this.target.socketPath, path: call.path, headers: own });
		}
		const { address, token } = this.target;
		const host = address.hostname.replace(/^\[|\]$/g, "");
		return node(address.secure ? "https" : "http").request({
			...options,
			host,
			...(address.port === "" ? {} : { port: address.port }),
			path: address.prefix + call.path,
			headers: { ...headers(call, token, accept), ...size },
		});
	}

	private told(error: unknown): unknown {
		if (error instanceof TransportError || isAbort(error)) return error;
		const code = error instanceof Error && "code" in error ? String(error.code) : "";
		return new TransportError(TROUBLES[code] ?? "unreachable", String(error), { cause: error });
	}
}

const TROUBLES: Record<string, Trouble> = {
	ENOENT: "not-running",
	ENOTSOCK: "not-running",
	ECONNREFUSED: "refused",
	EACCES: "not-allowed",
	EPERM: "not-allowed",
	ETIMEDOUT: "timeout",
	ECONNRESET: "cut",
	EPIPE: "cut",
	ECONNABORTED: "cut",
	HPE_INVALID_CONSTANT: "malformed",
};

/** Whether Node can be used: `app.emulateMobile(true)` leaves the desktop app without it. */
export function hasNode(): boolean {
	return Platform.isDesktopApp && !Platform.isMobile;
}

/** What a socket's place depends on here. `vault` is the vault's folder; never a path from a note or a setting in it. */
export function places(vault: string): Places {
	const os = node("os");
	const home = node("process").env["TARSD_HOME"] ?? "";
	return {
		// links are followed as the daemon's own language does it: letters stay as they were written
		realPath: node("fs").realpathSync(vault),
		home: os.homedir(),
		uid: os.userInfo().uid,
		tarsdHome: home === "" ? "" : node("path").resolve(home.replace(/^~(?=\/|$)/, os.homedir())),
	};
}

/** In /tmp anybody could have made the folder first; then whoever listens in it is not our daemon. */
function checkFolder(socket: string): void {
	const uid = node("os").userInfo().uid;
	const folder = node("path").dirname(socket);
	if (folder !== shortFolder(uid)) return;
	const about = node("fs").lstatSync(folder, { throwIfNoEntry: false });
	if (about === undefined) return;
	if (!about.isDirectory() || about.uid !== uid || (about.mode & 0o077) !== 0) {
		throw new TransportError("not-allowed", `${folder} is not private`);
	}
}

function joined(pieces: Uint8Array[]): Uint8Array {
	const all = new Uint8Array(pieces.reduce((size, piece) => size + piece.byteLength, 0));
	let at = 0;
	for (const piece of pieces) {
		all.set(piece, at);
		at += piece.byteLength;
	}
	return all;
}

/** As much of Node as is used here. */
interface NodeModules {
	http: NodeHttp;
	https: NodeHttp;
	os: { homedir(): string; userInfo(): { uid: number } };
	fs: {
		realpathSync(path: string): string;
		lstatSync(path: string, options: { throwIfNoEntry: false }): NodeStat | undefined;
	};
	path: { dirname(path: string): string; resolve(path: string): string };
	process: { env: Record<string, string | undefined> };
}

interface NodeHttp {
	request(options: Record<string, unknown>): NodeRequest;
}

interface NodeRequest {
	on(event: "error", listener: (error: Error) => void): void;
	once(event: "response", listener: (response: NodeResponse) => void): void;
	end(body: string | undefined): void;
	destroy(): void;
}

interface NodeResponse extends AsyncIterable<Uint8Array> {
	statusCode?: number;
}

interface NodeStat {
	uid: number;
	mode: number;
	isDirectory(): boolean;
}

function node<Name extends keyof NodeModules>(name: Name): NodeModules[Name] {
	if (!Platform.isDesktopApp || Platform.isMobile) throw new TransportError("not-allowed", "this needs the desktop app");
	return window.require(`node:${name}`) as NodeModules[Name];
}
