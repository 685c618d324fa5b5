import { Notice } from "obsidian";
import { NotConnected, sentence } from "./errors";
import type { Services } from "./services";

/** The client, or what is wrong with the connection as an error to show. */
export function clientOf({ connection }: Services): NonNullable<Services["connection"]["client"]> {
	if (!connection.client) throw new NotConnected(connection);
	return connection.client;
}

/** Do something that was asked for; what goes wrong is told in the corner. */
export async function told(act: () => Promise<void>): Promise<void> {
	try {
		await act();
	} catch (error) {
		new Notice(sentence(error));
	}
}
