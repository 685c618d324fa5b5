import { addressText, isLoopback, parseAddress } from "../transport/address";
import { plan, type Host } from "../transport/choose";
import { fetchTransport } from "../transport/fetch";
import { nodeTransport, places } from "../transport/node-http";
import { pollTransport, type RequestUrl } from "../transport/poll";
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
	const id = here ? await vaultId(here.realPath) : "";
	const address = parseAddress(reach.address);
	return plan(host, reach).flatMap((kind): Way[] => {
		if (kind === "unix") {
			if (!here) return [];
			const place = reach.socket || socketPath(id, here);
			return [{ transport: nodeTransport({ socketPath: place }), vaultId: id, where: { kind, place, vault: vault.folder } }];
		}
		if (!address) return [];
		const { token } = reach;
		const transport =
			kind === "tcp"
				? nodeTransport({ address, token })
				: kind === "fetch"
					? fetchTransport(address, token)
					: pollTransport(address, token, request);
		const where = { kind, place: addressText(address), vault: vault.folder || vault.name };
		return [{ transport, vaultId: isLoopback(address) ? id : "", where }];
	});
}
