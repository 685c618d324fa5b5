import { FileSystemAdapter, Platform, requestUrl, type App } from "obsidian";
import type { Way } from "./daemon/connection";
import { waysTo as ways } from "./daemon/ways";
import type { DeviceSettings } from "./settings";
import { hasNode } from "./transport/node-http";

/** The ways to the daemon of this vault, best first, as the device and its settings have them now. */
export function waysTo(app: App, device: DeviceSettings): Promise<Way[]> {
	const { adapter } = app.vault;
	const token = device.tokenName && app.secretStorage.getSecret(device.tokenName);
	return ways(
		{ name: app.vault.getName(), folder: adapter instanceof FileSystemAdapter ? adapter.getBasePath() : "" },
		{ node: hasNode(), windows: Platform.isWin, ios: Platform.isIosApp },
		{ socket: device.socket, address: device.address, token: token ?? "" },
		requestUrl,
	);
}
