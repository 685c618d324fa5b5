import { addressText, isLoopback, parseAddress, type Address } from "../transport/address";
import { plan, type Host } from "../transport/choose";
import { FetchTransport } from "../transport/fetch";
import { NodeTransport, places } from "../transport/node-http";
import { PollTransport, type RequestUrl } from "../transport/poll";
import { socketPath, vaultId } from "../transport/socket-path";
import type { Way } from "./connection";

/** What this device says about reaching the daemon; all "" when there is only the socket in its usual place. */
export interface Reach {
	socket: string;
	address: string;
	token: string;
}

/** The vault that is open here; `folder` is its path on the disk, "" on a phone. */
export interface OpenVault {
	name: string;
	folder: string;
}

/**
 * The ways to the daemon of this vault, best first. The vault's id is demanded of a daemon on this machine; one on
 * another has its vault at another path, and with it another id.
 */
export async function waysTo(vault: OpenVault, host: Host, reach: Reach, request: RequestUrl): Promise<Way[]> {
	const here = host.node && !host.windows ? places(vault.folder) : null;
	const id = here === null ? "" : await vaultId(here.realPath);
	const address = parseAddress(reach.address);
	return plan(host, reach).flatMap((kind): Way[] => {
		if (kind === "unix") {
			if (here === null) return [];
			const place = reach.socket === "" ? socketPath(id, here) : reach.socket;
			const transport = new NodeTransport({ socketPath: place });
			return [{ transport, vaultId: id, where: { kind, place, vault: vault.folder } }];
		}
		if (address === null) return [];
		const where = { kind, place: addressText(address), vault: vault.folder || vault.name };
		return [{ transport: over(kind, address, reach.token, request), vaultId: isLoopback(address) ? id : "", where }];
	});
}

function over(kind: "tcp" | "fetch" | "poll", address: Address, token: string, request: RequestUrl): Way["transport"] {
	if (kind === "tcp") return new NodeTransport({ address, token });
	return kind === "fetch" ? new FetchTransport(address, token) : new PollTransport(address, token, request);
}
