import { FileSystemAdapter, Platform, requestUrl, type App } from "obsidian";
import type { Way } from "./daemon/connection";
import type { DeviceSettings } from "./settings";
import { addressText, isLoopback, parseAddress } from "./transport/address";
import { plan } from "./transport/choose";
import { FetchTransport } from "./transport/fetch";
import { hasNode, NodeTransport, places } from "./transport/node-http";
import { PollTransport } from "./transport/poll";
import { socketPath, vaultId } from "./transport/socket-path";
import type { Kind } from "./transport/transport";

/** The ways to the daemon of this vault, best first, as the device and its settings have them now. */
export async function waysTo(app: App, device: DeviceSettings): Promise<Way[]> {
	const node = hasNode();
	const { adapter } = app.vault;
	const folder = node && adapter instanceof FileSystemAdapter ? adapter.getBasePath() : "";
	const here = folder === "" ? null : places(folder);
	const id = here ? await vaultId(here.realPath) : "";
	const address = parseAddress(device.address);
	const token = device.tokenName === "" ? "" : (app.secretStorage.getSecret(device.tokenName) ?? "");
	const ways: Way[] = [];
	for (const kind of plan({ node, windows: Platform.isWin, ios: Platform.isIosApp }, { address: device.address })) {
		if (kind === "unix") {
			if (!here) continue;
			const place = device.socket || socketPath(id, here);
			ways.push(way(new NodeTransport({ socketPath: place }), id, kind, place, folder));
		} else if (address) {
			// on another machine the vault lies elsewhere, so its id says nothing
			const expected = isLoopback(address) ? id : "";
			const transport =
				kind === "tcp" ? new NodeTransport({ address, token })
				: kind === "fetch" ? new FetchTransport(address, token)
				: new PollTransport(address, token, requestUrl);
			ways.push(way(transport, expected, kind, addressText(address), folder));
		}
	}
	return ways;
}

function way(transport: Way["transport"], id: string, kind: Kind, place: string, vault: string): Way {
	return { transport, vaultId: id, where: { kind, place, vault } };
}
