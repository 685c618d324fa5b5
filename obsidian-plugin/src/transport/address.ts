/** Where a daemon listens on TCP; `prefix` is the path below which a proxy has it, "" for none. */
export interface Address {
	secure: boolean;
	hostname: string;
	port: string;
	prefix: string;
}

/** An address that a person typed, or null when it is none; a host alone is meant as http. */
export function parseAddress(typed: string): Address | null {
	const trimmed = typed.trim();
	if (trimmed === "") return null;
	let url: URL;
	try {
		url = new URL(/^[a-z][a-z0-9+.-]*:\/\//i.test(trimmed) ? trimmed : `http://${trimmed}`);
	} catch {
		return null;
	}
	if (url.protocol !== "http:" && url.protocol !== "https:") return null;
	if (url.hostname === "" || url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") return null;
	return {
		secure: url.protocol === "https:",
		hostname: url.hostname,
		port: url.port,
		prefix: url.pathname.replace(/\/+$/, ""),
	};
}

/** The address as text, to show it and to append paths to. */
export function addressText(address: Address): string {
	const port = address.port === "" ? "" : `:${address.port}`;
	return `${address.secure ? "https" : "http"}://${address.hostname}${port}${address.prefix}`;
}

/** Whether what is sent there stays on this machine. */
export function isLoopback(address: Address): boolean {
	return /^(localhost|127(\.\d+){3}|\[::1\])$/i.test(address.hostname);
}
