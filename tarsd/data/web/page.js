/** The page: who is there, which conversation is open, and what the keys and buttons do. */

import { Chat } from "./chat.js";
import { Daemon } from "./daemon.js";
import { $, brief, h, kept, plural } from "./dom.js";
import { linkInto } from "./markdown.js";
import { closeAll, History, Notes, Search, show, touch } from "./panels.js";

const daemon = new Daemon();
const notes = new Notes(daemon);
const chat = new Chat(daemon, notes);
const panels = { history: new History(daemon, chat), search: new Search(daemon, notes), settings: { open: () => show("settings") } };
const box = $("box");

// -------------------------------------------------------------------------------------------- the token

/** What the address says after its `#`: a token, which is taken out of it at once, or a conversation. */
function fromAddress() {
	const given = new URLSearchParams(location.hash.slice(1));
	const [token, conversation] = [given.get("token"), given.get("c")];
	address(conversation);
	if (token) keepToken(token, kept.get("token") !== "");
	return { token, conversation };
}

/** The open conversation stands in the address, so that it is there again after a reload. */
function address(conversation, state = { depth: 0 }) {
	history.replaceState(state, "", conversation ? `#c=${encodeURIComponent(conversation)}` : location.pathname);
}

/** Keep it for this tab, or for this device. */
function keepToken(token, forGood) {
	brief.put("token", forGood ? "" : token);
	kept.put("token", forGood ? token : "");
	$("keep").checked = $("token-keep").checked = forGood;
}

const token = () => kept.get("token") || brief.get("token");

$("token-form").addEventListener("submit", (event) => {
	event.preventDefault();
	keepToken($("token").value.trim(), $("token-keep").checked);
	$("token").value = "";
	daemon.connect(token());
});
$("keep").addEventListener("change", () => keepToken(token(), $("keep").checked));
$("forget").addEventListener("click", () => {
	keepToken("", false);
	closeAll();
	chat.begin();
	daemon.connect("");
});

// -------------------------------------------------------------------------------------------- the connection

let wanted = "";
let opened = false;

daemon.addEventListener("change", () => {
	const { state, failure, hello } = daemon;
	const gate = state === "idle" || ["token", "tries"].includes(failure?.kind);
	const before = $("gate").hidden;
	$("gate").hidden = !gate;
	$("chat").hidden = $("bar").hidden = gate;
	$("token-failure").hidden = !failure;
	$("token-failure").textContent = failure?.sentence ?? "";
	if (gate && before) {
		closeAll();
		$("token").focus();
	}
	if (hello) linkInto(hello.vault.name);
	$("failure").hidden = gate || !failure;
	$("failure-words").textContent = `${failure?.sentence ?? ""} ${state === "offline" ? "To see what it does, on its machine: tarsd status." : ""}`;
	drawHead();
	if (state !== "connected") return;
	drawAbout();
	if (!opened) {
		void (wanted ? chat.open(wanted) : chat.begin());
		if (!touch.matches) box.focus();
	} else void chat.refresh();
	opened = true;
});

function drawHead() {
	const { state, hello, status } = daemon;
	const title = chat.title || hello?.vault.name || "tars";
	$("title").textContent = title;
	document.title = title === "tars" ? title : `${title} · tars`;
	const words = { idle: "", connecting: "Connecting…", offline: "Not connected", refused: "Not connected" }[state];
	$("state").textContent = words ?? indexing(status) ?? hello.chat_model;
	document.body.dataset.state = state;
}

/** What the index lacks, if anything. */
function indexing({ behind, embedding, watch }) {
	if (watch?.reason) return watch.reason;
	if (behind) return `Indexing: ${plural(behind, "note")} behind`;
	if (embedding?.remaining) return `Reading for meaning: ${plural(embedding.remaining, "passage")} to go`;
	return undefined;
}

function drawAbout() {
	const { hello, status } = daemon;
	const rows = {
		Vault: hello.vault.path,
		Notes: `${status.counts.notes.toLocaleString()}, ${status.behind || "none"} behind`,
		"Answers by": `${hello.chat_model}${status.chat.local === false ? ", not on the daemon's machine" : ""}`,
		"Meaning by": hello.embedding_model,
		Version: hello.version,
		Problems: status.problems.map(({ path, reason, hint }) => [path, reason, hint].filter(Boolean).join(" ")).slice(0, 5).join("\n"),
	};
	const shown = Object.entries(rows).filter(([, text]) => text);
	$("about").replaceChildren(...shown.flatMap(([name, text]) => [h("dt", {}, name), h("dd", { dir: "auto" }, text)]));
}

// -------------------------------------------------------------------------------------------- the conversation

chat.addEventListener("change", () => {
	drawHead();
	$("stop").hidden = !chat.current;
	if (opened) address(chat.turns.length && chat.id, history.state);
});
// an entry of ours, which a dialog left behind, may name the conversation before
addEventListener("popstate", ({ state }) => state && address(chat.turns.length && chat.id, state));
chat.addEventListener("back", ({ detail }) => write([detail, box.value].filter(Boolean).join("\n\n")));
$("new").addEventListener("click", () => {
	chat.begin();
	box.focus();
});
$("stop").addEventListener("click", () => chat.stop());
$("try").addEventListener("click", () => daemon.check());
$("composer").addEventListener("submit", (event) => {
	event.preventDefault();
	const question = box.value.trim();
	if (!question) return;
	write("");
	// until the daemon has it, a reload brings it back
	brief.put("draft", question);
	void chat.send(question);
});

function write(text) {
	box.value = text;
	typed();
}

function typed() {
	brief.put("draft", box.value);
	box.style.height = "auto";
	box.style.height = `${box.scrollHeight + 2}px`;
	$("send").disabled = !box.value.trim();
}
box.addEventListener("input", typed);

$("send-key").value = kept.get("send-key") || "enter";
$("send-key").addEventListener("change", ({ target }) => kept.put("send-key", target.value));

box.addEventListener("keydown", (event) => {
	// a key that an input method takes for itself sends nothing
	if (event.key !== "Enter" || event.isComposing || event.keyCode === 229 || event.shiftKey || event.altKey) return;
	const mod = event.ctrlKey || event.metaKey;
	if (!mod && (touch.matches || $("send-key").value === "mod")) return;
	event.preventDefault();
	if (!event.repeat) $("composer").requestSubmit();
});

for (const button of document.querySelectorAll("[data-opens]")) {
	button.addEventListener("click", () => panels[button.dataset.opens].open());
}
addEventListener("keydown", (event) => {
	if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
	if (event.key === "Escape" && chat.current) void chat.stop();
	if (event.key !== "/" || $("bar").hidden || event.target.closest("input, textarea, select")) return;
	event.preventDefault();
	panels.search.open();
});

// -------------------------------------------------------------------------------------------- the beginning

addEventListener("hashchange", () => {
	const { token: given, conversation } = fromAddress();
	if (given) daemon.connect(given);
	else if (conversation && conversation !== chat.id) void chat.open(conversation);
});
// where a keyboard on the screen covers the page, only this tells how much is left
visualViewport?.addEventListener("resize", () => document.documentElement.style.setProperty("--height", `${visualViewport.height}px`));

keepToken(token(), kept.get("token") !== "");
wanted = fromAddress().conversation ?? "";
write(brief.get("draft"));
daemon.connect(token());
