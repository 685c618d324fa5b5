/** Where a daemon listens on TCP; its path is the one below which a proxy has it. */
export type Address = Readonly<URL>;

/** An address that a person typed, or null when it is none; a host alone is meant as http. */
export function parseAddress(typed: string): Address | null {
	const trimmed = typed.trim();
	try {
		const url = new URL(/^[a-z][a-z0-9+.-]*:\/\//i.test(trimmed) ? trimmed : `http://${trimmed}`);
		const { username, password, search, hash } = url;
		return /^https?:$/.test(url.protocol) && !(username || password || search || hash) ? url : null;
	} catch {
		return null;
	}
}

/** The address as text, to show it and to append paths to. */
export function addressText({ origin, pathname }: Address): string {
	return (origin + pathname).replace(/\/+$/, "");
}

/** Whether it is encrypted on its way. */
export function isSecure({ protocol }: Address): boolean {
	return protocol === "https:";
}

/** Whether what is sent there stays on this machine. */
export function isLoopback({ hostname }: Address): boolean {
	return /^(localhost|127(\.\d+){3}|\[::1\])$/i.test(hostname);
}
