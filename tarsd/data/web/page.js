/** The page: connection, open conversation, keys and buttons. */

import { Chat } from "./chat.js";
import { Daemon } from "./daemon.js";
import { $, brief, button, h, kept, plural } from "./dom.js";
import { linkInto } from "./markdown.js";
import { closeAll, History, Notes, Search, show, touch } from "./panels.js";

const daemon = new Daemon();
const notes = new Notes(daemon);
const chat = new Chat(daemon, notes);
const panels = { history: new History(daemon, chat), search: new Search(daemon, notes), settings: { open: () => show("settings") } };
const box = $("box");
let wanted = null;
let entered = false;
let lost = false;

// ---- the token ----

const token = () => kept.get("token") || brief.get("token");

/** Keep it for this device, or for this tab. */
function keepToken(token, forGood = !!kept.get("token")) {
	brief.put("token", forGood ? "" : token);
	kept.put("token", forGood ? token : "");
	$("keep").checked = $("token-keep").checked = forGood;
}

/** The open conversation stands in the address, for a reload. */
function address(conversation, state = { depth: 0 }) {
	history.replaceState(state, "", conversation ? `#c=${encodeURIComponent(conversation)}` : location.pathname);
}

/** The conversation or token in the address; a token is taken out. */
function fromAddress() {
	const said = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
	address(said.c);
	return said;
}

$("token-form").onsubmit = (event) => {
	event.preventDefault();
	keepToken($("token").value.trim(), $("token-keep").checked);
	$("token").value = "";
	daemon.connect(token());
};
$("keep").onchange = () => keepToken(token(), $("keep").checked);
$("forget").onclick = () => {
	keepToken("", false);
	chat.begin();
	daemon.connect("");
};

// ---- the connection ----

daemon.addEventListener("change", () => {
	const { state, failure, hello } = daemon;
	if (failure?.kind === "token" && token() && token() !== daemon.token) return daemon.connect(token());
	const gate = state === "idle" || ["token", "tries"].includes(failure?.kind);
	const comes = gate && $("gate").hidden;
	$("gate").hidden = !gate;
	$("chat").hidden = $("bar").hidden = gate;
	$("token-failure").hidden = !failure;
	$("failure").hidden = gate || !failure;
	$("token-failure").textContent = $("failure-words").textContent = failure?.sentence ?? "";
	if (comes) {
		closeAll();
		$("token").focus();
	}
	if (hello) linkInto(hello.vault.name);
	drawHead();
	if (state === "connecting") entered = false;
	if (state === "connected") {
		$("about").textContent = aboutWords(daemon);
		if (!entered) enter();
		else if (lost) void chat.refresh();
	}
	$("composer").hidden = !entered;
	lost = state !== "connected";
});
document.addEventListener("visibilitychange", () => document.hidden || void chat.refresh());

/** The token is right, and kept; all is asked for anew. */
function enter() {
	const conversation = chat.known ? chat.id : wanted;
	[entered, wanted] = [true, null];
	keepToken(daemon.token);
	if (conversation) void chat.open(conversation);
	else chat.begin();
	if (!touch.matches) setTimeout(() => box.focus());
}

function drawHead() {
	const { state, hello, status } = daemon;
	const title = chat.title || hello?.vault.name || "tars";
	$("title").textContent = title;
	document.title = `${title} · tars`;
	document.body.dataset.state = state;
	const words = { idle: "", connecting: "Connecting…", connected: indexing(status) || hello?.chat_model };
	$("state").textContent = words[state] ?? "Not connected";
}

/** What the index lacks, if anything. */
function indexing(status) {
	const { behind, embedding, watch } = status ?? {};
	if (behind) return `Indexing: ${plural(behind, "note")} behind`;
	if (embedding?.state === "embedding") return `Embedding: ${plural(embedding.remaining, "passage")} to go`;
	return watch?.reason || embedding?.reason;
}

function aboutWords({ hello, status }) {
	const { size } = new Set(status.problems.map((of) => JSON.stringify([of.reason, of.hint, of.collection, of.path])));
	const problems = size && `${plural(size, "problem")} (tarsd status)`;
	return [hello.vault.path, plural(status.counts.notes, "note"), hello.chat_model, hello.embedding_model, `tarsd ${hello.version}`, problems].filter(Boolean).join(" · ");
}

// ---- the conversation ----

chat.addEventListener("change", () => {
	drawHead();
	$("stop").hidden = !chat.current;
	address(chat.known && chat.id, history.state);
});
// what a dialog leaves may name another one
addEventListener("popstate", ({ state }) => state && address(chat.known && chat.id, state));
chat.addEventListener("back", ({ detail }) => write([detail, box.value].filter(Boolean).join("\n\n")));
$("new").onclick = () => {
	chat.begin();
	box.focus();
};
$("stop").onclick = () => chat.stop();
$("try").onclick = () => daemon.check();
$("composer").onsubmit = (event) => {
	event.preventDefault();
	const question = box.value.trim();
	if (!question) return;
	write("");
	brief.put("draft", question); // until the daemon has it, a reload brings it back
	chat.send(question);
};

function write(text) {
	box.value = text;
	box.oninput();
}

box.oninput = () => {
	brief.put("draft", box.value);
	box.style.height = "auto";
	box.style.height = `${box.scrollHeight + 2}px`;
	$("send").disabled = !box.value.trim();
	$("commands").hidden = !box.value.startsWith("/");
	void offerPrompts();
};

// ---- prompts ----

let prompts = [];

/** Those whose names begin with what follows the slash; looked for anew with each slash. */
async function offerPrompts() {
	const name = /^\/(\S*)$/.exec(box.value)?.[1].toLowerCase();
	if (name === "" && daemon.hello) prompts = await daemon.json("GET", "v1/prompts").then((reply) => reply.prompts, () => []);
	const shown = name === undefined ? [] : prompts.filter((prompt) => prompt.name.startsWith(name));
	if (name === "" && box.value !== "/") return; // it went on while they were looked for
	$("prompts").replaceChildren(...shown.map(promptButton));
	$("prompts").hidden = !shown.length;
}

function promptButton({ name, arguments: takes, description, problem }) {
	const choose = () => {
		write(`/${name} `);
		box.focus();
	};
	const made = button(`/${name} ${takes}`.trim(), choose, "pick");
	made.append(h("span", { class: "faint" }, problem || description));
	return made;
}

box.onkeydown = (event) => {
	// a key that an input method takes for itself sends nothing
	if (event.key !== "Enter" || event.isComposing || event.keyCode === 229 || event.shiftKey || event.altKey) return;
	if (!event.ctrlKey && !event.metaKey && (touch.matches || $("send-key").value === "mod")) return;
	event.preventDefault();
	if (!event.repeat) $("composer").requestSubmit();
};
$("send-key").value = kept.get("send-key") || "enter";
$("send-key").onchange = () => kept.put("send-key", $("send-key").value);

for (const button of document.querySelectorAll("[data-opens]")) button.onclick = () => panels[button.dataset.opens].open();
addEventListener("keydown", (event) => {
	if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
	if (event.key === "Escape") void chat.stop();
	if (event.key !== "/" || $("bar").hidden || event.target.closest("input, textarea, select")) return;
	event.preventDefault();
	panels.search.open();
});

// ---- the beginning ----

addEventListener("hashchange", () => {
	const said = fromAddress();
	if (said.token) daemon.connect(said.token);
	else if (said.c && said.c !== chat.id) void chat.open(said.c);
});
// only this tells what a screen keyboard leaves
visualViewport?.addEventListener("resize", () => {
	if (visualViewport.scale === 1) document.documentElement.style.setProperty("--height", `${visualViewport.height}px`);
	scrollTo(0, 0);
});

keepToken(token());
const said = fromAddress();
wanted = said.c;
write(brief.get("draft"));
daemon.connect(said.token || token());
