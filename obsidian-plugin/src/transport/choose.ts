import { isSecure, parseAddress } from "./address";
import type { Kind } from "./transport";

/** What of the app decides which ways there are. `node`: the desktop app, and not playing a phone. */
export interface Host {
	node: boolean;
	windows: boolean;
	ios: boolean;
}

/** What of the settings does. `address` is "" when only the socket is to be used. */
export interface Reach {
	address: string;
}

/**
 * The ways to try, best first. On the desktop the socket, then the address; on a phone `fetch`, which streams, and
 * then native requests. Windows has no sockets that the daemon could listen on, and iOS keeps pages from plain http.
 */
export function plan(host: Host, reach: Reach): Kind[] {
	const address = parseAddress(reach.address);
	const kinds: Kind[] = host.node && !host.windows ? ["unix"] : [];
	if (address === null) return kinds;
	if (host.node) return [...kinds, "tcp"];
	return host.ios && !isSecure(address) ? ["poll"] : ["fetch", "poll"];
}
