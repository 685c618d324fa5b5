import { Platform, type CliData, type CliFlags, type CliHandler } from "obsidian";
import { en } from "../en";
import { isLast, type TurnEvent } from "../protocol/events";
import { linktextOf } from "../vault/links";
import { performWrite } from "../vault/notes";
import { clientOf } from "./asking";
import { faultText, sentence } from "./errors";
import type { Services } from "./services";

const words = en.cli;

/** Where commands of the app's own command line are registered: the plugin. */
export interface CliRegistry {
	readonly manifest: { readonly id: string };
	register(end: () => void): void;
	registerCliHandler(command: string, description: string, flags: CliFlags | null, handler: CliHandler): void;
}

type Answer = (services: Services, data: CliData, signal: AbortSignal) => Promise<string>;

/** `obsidian tarsd:ask q="…"` and `obsidian tarsd:status`; there is a command line on the desktop only. */
export function registerCli(registry: CliRegistry, services: Services): void {
	if (!Platform.isDesktopApp) return;
	const flags = { q: { value: "<text>", description: words.question, required: true } };
	const unloaded = new AbortController();
	registry.register(() => {
		unloaded.abort();
	});
	const add = (name: string, about: string, flags: CliFlags | null, answer: Answer): void => {
		// a command answers with text, whatever happens
		registry.registerCliHandler(`${registry.manifest.id}:${name}`, about, flags, (data) => answer(services, data, unloaded.signal).catch(sentence));
	};
	add("ask", words.askAbout, flags, ask);
	add("status", words.statusAbout, null, status);
}

async function ask(services: Services, data: CliData, signal: AbortSignal): Promise<string> {
	const message = (data["q"] ?? "").trim();
	// a flag without a value is "true"
	if (message === "" || message === "true") return words.noQuestion;
	const client = clientOf(services);
	const id = (): string => window.crypto.randomUUID();
	// whatever needs a yes waits for one: it is denied, for nobody is there to give it
	const turn = await client.startTurn({ conversation: id(), message, request_id: id(), writer: "client", approvals: true }, signal);
	const answer: string[] = [];
	let denied = "";
	for await (const event of client.follow(turn, 0, signal)) {
		if (event.type === "approval") {
			denied = words.refused;
			await client.approve(turn, event.call, { allow: false, always: false });
		}
		// what is not made here the daemon makes itself
		if (event.type === "write") await performWrite(services.vault, client, event).catch(() => undefined);
		if (isLast(event)) answer.push(...reply(event));
	}
	if (signal.aborted) return words.unloaded;
	return [...answer, denied].filter(Boolean).join("\n\n");
}

function reply(last: TurnEvent): string[] {
	if (last.type === "failed") return [last.text, faultText(last.error)];
	if (last.type !== "done") return [];
	const sources = last.citations.map((source) => `[${source.n}] ${linktextOf(source)}`);
	return [last.text, sources.length > 0 ? `${en.chat.exportSources}:\n${sources.join("\n")}` : "", ...last.notices];
}

async function status(services: Services): Promise<string> {
	const { vault, counts, behind, chat, embedding } = await clientOf(services).status();
	return [
		en.state.vault(vault.path),
		words.notes(counts.notes),
		en.state.behind(behind),
		en.state.model(chat.model),
		words.embedding(embedding.model),
	].join("\n");
}
