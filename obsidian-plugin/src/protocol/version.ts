import type { Hello } from "./replies";

/** The versions of the protocol that this client speaks. */
export const OLDEST = 1;
export const NEWEST = 1;

export type Verdict = "ok" | "wrong-vault" | "too-old" | "too-new";

/**
 * Whether this daemon is one to talk to. `vaultId` is the id of the vault that is open here, "" when it cannot be
 * known (a daemon on another machine has its vault at another path). A version that is not spoken comes first: such a
 * daemon may mean something else by its vault's id.
 */
export function judge(hello: Hello, vaultId: string): Verdict {
	if (hello.protocol < OLDEST) return "too-old";
	if (hello.protocol > NEWEST) return "too-new";
	return vaultId === "" || hello.vault.id === vaultId ? "ok" : "wrong-vault";
}
