import { Platform } from "obsidian";
import type { Address } from "./address";
import { HttpTransport, type Incoming, type Outgoing } from "./http";
import { shortFolder, type Places } from "./socket-path";
import { TransportError, type Trouble } from "./transport";

/** Where to connect to: a socket file, which needs no token, or an address with one. */
export type Target = { socketPath: string } | { address: Address; token: string };

/** Over Node's HTTP, on the desktop: a Unix socket, or TCP without the bounds that pages have. */
export class NodeTransport extends HttpTransport {
	readonly kind: "unix" | "tcp";
	readonly streams = true;

	constructor(private readonly target: Target) {
		const socket = "socketPath" in target;
		super(socket ? "" : target.token);
		this.kind = socket ? "unix" : "tcp";
	}

	protected send({ body, ...call }: Outgoing, signal: AbortSignal): Promise<Incoming> {
		const length: Record<string, string> = body === undefined ? {} : { "content-length": String(new TextEncoder().encode(body).length) };
		// no kept-alive connections: the daemon may close one between two requests, and the second is lost
		const request = this.open({ ...call, headers: { ...call.headers, ...length }, agent: false });
		signal.addEventListener("abort", () => {
			request.destroy();
		});
		return new Promise((resolve, reject) => {
			// the listener stays: destroying a request emits "error" again, and unheard that ends the app's script
			request.on("error", reject);
			request.once("response", (response) => {
				resolve({ status: response.statusCode ?? 0, pieces: response[Symbol.asyncIterator]() });
			});
			request.end(body);
		});
	}

	private open(options: Omit<Outgoing, "body"> & { agent: false }): NodeRequest {
		if ("socketPath" in this.target) {
			const { socketPath } = this.target;
			checkFolder(socketPath);
			return node("http").request({ ...options, socketPath, headers: { ...options.headers, host: "tarsd" } });
		}
		const { secure, hostname, port, prefix } = this.target.address;
		return node(secure ? "https" : "http").request({
			...options,
			host: hostname.replace(/^\[|\]$/g, ""),
			...(port === "" ? {} : { port }),
			path: prefix + options.path,
		});
	}

	protected told(error: unknown): Trouble {
		const code = error instanceof Error && "code" in error ? String(error.code) : "";
		return TROUBLES[code] ?? "unreachable";
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
	request(options: object): NodeRequest;
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
	if (!hasNode()) throw new TransportError("not-allowed", "this needs the desktop app");
	return window.require(`node:${name}`) as NodeModules[Name];
}
