import { Platform, type CliData, type CliFlags, type CliHandler } from "obsidian";
import { isLast, type Source, type TurnEvent } from "../protocol/events";
import { linktextOf } from "../vault/links";
import { performWrite } from "../vault/notes";
import { clientOf } from "./asking";
import { sentence } from "./errors";
import type { Services } from "./services";

/** Where commands of the app's own command line are registered: the plugin. */
export interface CliRegistry {
	readonly manifest: { readonly id: string };
	registerCliHandler(command: string, description: string, flags: CliFlags | null, handler: CliHandler): void;
}

/** `obsidian tarsd:ask q="…"` and `obsidian tarsd:status`; there is a command line on the desktop only. */
export function registerCli(registry: CliRegistry, services: Services): void {
	if (!Platform.isDesktopApp) return;
	const words = services.t.cli;
	const { id } = registry.manifest;
	const question = { value: "<text>", description: words.question, required: true };
	const conversation = { value: "<id>", description: words.conversation };
	registry.registerCliHandler(`${id}:ask`, words.askAbout, { q: question, conversation }, (data) => answered(() => ask(services, data)));
	registry.registerCliHandler(`${id}:status`, words.statusAbout, null, () => answered(() => status(services)));
}

/** A command of the command line answers with text, whatever happens. */
async function answered(act: () => Promise<string>): Promise<string> {
	try {
		return await act();
	} catch (error) {
		return sentence(error);
	}
}

async function ask(services: Services, data: CliData): Promise<string> {
	const words = services.t.cli;
	const message = (data["q"] ?? "").trim();
	// a flag without a value is "true"
	if (message === "" || message === "true") return words.noQuestion;
	const client = clientOf(services);
	const conversation = data["conversation"] ?? window.crypto.randomUUID();
	// whatever needs a yes waits for one: it is denied, for nobody is there to give it
	const turn = await client.startTurn({
		conversation,
		message,
		request_id: window.crypto.randomUUID(),
		writer: "client",
		approvals: true,
	});
	let denied = false;
	let last: TurnEvent | null = null;
	for await (const event of client.follow(turn, 0, new AbortController().signal)) {
		if (event.type === "approval") {
			denied = true;
			await client.approve(turn, event.call, { allow: false, always: false });
		}
		// what is not made here the daemon makes itself
		if (event.type === "write") await performWrite(services.vault, client, event).catch(() => undefined);
		if (isLast(event)) last = event;
	}
	return [reply(last, words.sources), ...(denied ? [words.refused] : [])].join("\n\n");
}

function reply(last: TurnEvent | null, heading: string): string {
	if (last?.type === "failed") return [last.text, [last.error.message, last.error.hint].filter(Boolean).join(" ")].filter(Boolean).join("\n\n");
	if (last?.type !== "done") return "";
	const sources = last.citations.map((source: Source) => `[${source.n}] ${linktextOf(source)}`);
	const list = sources.length > 0 ? [`${heading}:\n${sources.join("\n")}`] : [];
	return [last.text, ...list, ...last.notices].join("\n\n");
}

async function status(services: Services): Promise<string> {
	const words = services.t.cli;
	const { vault, counts, behind, chat, embedding } = await clientOf(services).status();
	return [
		words.vault(vault.name, vault.path),
		words.notes(counts.notes, behind),
		words.model(chat.model),
		words.embedding(embedding.model),
	].join("\n");
}
