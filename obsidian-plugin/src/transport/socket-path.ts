/** What a socket's place depends on; `realPath` is the vault's, links followed. `tarsdHome` is TARSD_HOME, "" unset. */
export interface Places {
	realPath: string;
	home: string;
	uid: number;
	tarsdHome: string;
}

/** Longest socket path in bytes that every system takes; the daemon counts the same. */
const SOCKET_BYTES = 103;

/** The first 12 hex digits of the SHA-256 of the vault's real path, as the daemon names it. */
export async function vaultId(realPath: string): Promise<string> {
	const digest = await window.crypto.subtle.digest("SHA-256", new TextEncoder().encode(realPath));
	return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("").slice(0, 12);
}

/** Where the daemon of the vault with this id listens; it computes the same. */
export function socketPath(id: string, places: Places): string {
	const folder = places.tarsdHome || `${places.home.replace(/\/+$/, "")}/.tarsd`;
	const wanted = `${folder.replace(/\/+$/, "")}/${id}.sock`;
	return new TextEncoder().encode(wanted).length <= SOCKET_BYTES ? wanted : `${shortFolder(places.uid)}/${id}.sock`;
}

/** The folder of sockets whose own path would be too long. Anybody may make it, so it is looked at before use. */
export function shortFolder(uid: number): string {
	return `/tmp/tars-${uid}`;
}
