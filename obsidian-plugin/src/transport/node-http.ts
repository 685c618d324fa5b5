import { Platform } from "obsidian";
import { object } from "../protocol/values";
import { addressText, isSecure, type Address } from "./address";
import { overHttp, type Outgoing } from "./http";
import { shortFolder, type Places } from "./socket-path";
import { TransportError, type Transport, type Trouble } from "./transport";

/** Where to connect to: a socket file, which needs no token, or an address with one. */
export type Target = { socketPath: string } | { address: Address; token: string };

/** Over Node's HTTP, on the desktop: a Unix socket, or TCP without the bounds that pages have. */
export function nodeTransport(target: Target): Transport {
	const local = "socketPath" in target;
	function open({ path, method, headers, body }: Outgoing): NodeRequest {
		const length = body === undefined ? {} : { "content-length": new TextEncoder().encode(body).length };
		// no kept-alive connections: the daemon may close one between two requests, and the second is lost
		const options = { method, headers: { ...headers, ...length }, agent: false };
		if (local) {
			checkFolder(target.socketPath);
			return node("http").request(`http://tarsd${path}`, { ...options, ...target });
		}
		return node(isSecure(target.address) ? "https" : "http").request(addressText(target.address) + path, options);
	}
	return overHttp({
		kind: local ? "unix" : "tcp",
		streams: true,
		token: local ? "" : target.token,
		send: (call, signal) =>
			new Promise((resolve, reject) => {
				const request = open(call);
				signal.addEventListener("abort", () => {
					request.destroy();
				});
				// the listener stays: destroying a request emits "error" again, and unheard that ends the app's script
				request.on("error", reject);
				request.once("response", (response) => {
					resolve({ status: response.statusCode ?? 0, pieces: response[Symbol.asyncIterator]() });
				});
				request.end(call.body);
			}),
		told: (error) => TROUBLES[String(object(error)["code"])] ?? "unreachable",
	});
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
	const home = os.homedir();
	const own = node("process").env["TARSD_HOME"];
	return {
		// links are followed as the daemon's own language does it: letters stay as they were written
		realPath: node("fs").realpathSync(vault),
		home,
		uid: os.userInfo().uid,
		tarsdHome: own ? node("path").resolve(own.replace(/^~(?=\/|$)/, home)) : "",
	};
}

/** In /tmp anybody could have made the folder first; then whoever listens in it is not our daemon. */
function checkFolder(socket: string): void {
	const uid = node("os").userInfo().uid;
	const folder = node("path").dirname(socket);
	if (folder !== shortFolder(uid)) return;
	const about = node("fs").lstatSync(folder, { throwIfNoEntry: false });
	if (about && (!about.isDirectory() || about.uid !== uid || (about.mode & 0o077) !== 0)) {
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
	request(url: string, options: object): NodeRequest;
}

interface NodeRequest {
	on(event: "error", listener: (error: Error) => void): void;
	once(event: "response", listener: (response: NodeResponse) => void): void;
	end(body?: string): void;
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
