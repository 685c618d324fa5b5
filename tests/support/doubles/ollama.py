"""An Ollama server: chat in both of its shapes of tool calls, the models it has, and the prompts it does not read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from tests.support.doubles import server
from tests.support.doubles.script import Call, Cut, Fail, Raw, Say, Step, Think
from tests.support.doubles.server import Double, Reply

CREATED = "2026-10-01T12:00:00.123456Z"
ARCHITECTURE = "gemma3"


def tokens(text: str) -> int:
    """Four bytes each, as in plain English."""
    return -(-len(text.encode()) // 4)


def entry(
    name: str,
    *,
    capabilities: Sequence[str] | None = ("completion", "tools"),
    modified: str = CREATED,
    context: int = 131_072,
    **more: Any,
) -> dict[str, Any]:
    """A model as it stands in /api/tags; `capabilities` of None are those of servers that do not tell."""
    details = {"format": "gguf", "family": ARCHITECTURE, "parameter_size": "4.3B", "quantization_level": "Q4_K_M"}
    known = {} if capabilities is None else {"capabilities": list(capabilities)}
    about = {"name": name, "model": name, "modified_at": modified, "size": 3, "digest": "d" + name, **known}
    return {**about, "details": {**details, "context_length": context}, **more}


class OllamaDouble(Double):
    """Has `model` and `others` (entries), of which those in `loaded` (name → window) are in memory.

    `delivery` is where tool calls stand: in lines of their own, or on the last one. `default` is the window when a
    request names none. What a prompt has too much is refused, or with `cuts` silently left out at the front as older
    servers do; `ignores` is the window of one that does not care for `num_ctx`. `prompts` is what was read of each.
    `loads` has the options of every load.
    """

    def __init__(
        self,
        *,
        model: str = "gemma3:4b",
        context: int = 131_072,
        capabilities: Sequence[str] | None = ("completion", "tools"),
        num_ctx: int | None = None,
        loaded: Mapping[str, int] | None = None,
        others: Sequence[Mapping[str, Any]] = (),
        remote: str = "",
        delivery: Literal["rendered", "native"] = "rendered",
        default: int = 4096,
        cuts: bool = False,
        ignores: int | None = None,
        version: str = "0.33.0",
        ids: bool = True,
    ) -> None:
        super().__init__()
        self.model = model
        self.num_ctx = num_ctx
        elsewhere = {"remote_host": remote, "remote_model": model} if remote else {}
        self.models = [entry(model, capabilities=capabilities, context=context, **elsewhere), *map(dict, others)]
        self.loaded = dict(loaded or {})
        self.loads: list[dict[str, Any]] = []
        self.prompts: list[str] = []
        self.delivery = delivery
        self.default = default
        self.cuts = cuts
        self.ignores = ignores
        self.version = version
        self.ids = ids
        self.inline = False
        """Reasoning stands between tags in the answer, as where no template knows of it."""
        self._steps: list[tuple[Step, ...]] = []
        self._number = 0

    def enqueue(self, *steps: Step) -> None:
        """The next chat request is answered by these."""
        self._steps.append(steps)

    @property
    def requests(self) -> list[Any]:
        """The bodies of the chat requests, in order."""
        return [call.body for call in self.calls if call.path == "/api/chat"]

    def config(self) -> str:
        """What makes tarsd use it."""
        return f'[chat]\nmodel = "ollama:{self.model}"\n\n[ollama]\nhost = "{self.url}"\n'

    def env(self) -> dict[str, str]:
        """No key is needed."""
        return {}

    def reply(self, call: server.Call) -> Reply:
        route = (call.method, call.path)
        if route == ("GET", "/api/tags"):
            return Reply({"models": self.models})
        if route == ("GET", "/api/ps"):
            return Reply({"models": [self._running(name) for name in self.loaded]})
        if route == ("GET", "/api/version"):
            return Reply({"version": self.version})
        if call.method != "POST" or call.path not in ("/api/show", "/api/chat"):
            return Reply(status=404, stream=[b"404 page not found"], content_type="text/plain")
        found = self._entry(str(call.body.get("model")))
        if found is None:
            return Reply({"error": f"model '{call.body.get('model')}' not found"}, 404)
        return Reply(self._shown(found)) if call.path == "/api/show" else self._chat(call.body, found)

    def _entry(self, name: str) -> dict[str, Any] | None:
        full = name if ":" in name else f"{name}:latest"
        return next((one for one in self.models if one["name"] == full), None)

    def _running(self, name: str) -> dict[str, Any]:
        digest = next((one["digest"] for one in self.models if one["name"] == name), "d" + name)
        about = {"name": name, "model": name, "size": 9, "size_vram": 9, "digest": digest}
        return {**about, "details": {}, "expires_at": CREATED, "context_length": self.loaded[name]}

    def _shown(self, found: Mapping[str, Any]) -> dict[str, Any]:
        info = {
            "general.architecture": ARCHITECTURE,
            f"{ARCHITECTURE}.context_length": found["details"]["context_length"],
            f"{ARCHITECTURE}.embedding_length": 2560,
            "tokenizer.ggml.tokens": [],
        }
        shown = {key: found[key] for key in ("details", "capabilities", "remote_host", "remote_model") if key in found}
        parameters = 'stop                           "<end_of_turn>"\ntemperature                    1'
        if self.num_ctx is not None:
            parameters += f"\nnum_ctx                        {self.num_ctx}"
        return {**shown, "model_info": info, "parameters": parameters, "template": "{{ .Prompt }}"}

    def _chat(self, body: Mapping[str, Any], found: Mapping[str, Any]) -> Reply:
        with self._lock:
            steps = self._steps.pop(0) if self._steps else (Say("ok"),)
        if steps and isinstance(steps[0], Fail):
            return Reply({"error": steps[0].message}, steps[0].status, steps[0].headers)
        can = found.get("capabilities") or ("completion", "tools")
        if body.get("tools") and "tools" not in can:
            return Reply({"error": f"registry.ollama.ai/library/{found['name']} does not support tools"}, 400)
        if body.get("think") and "thinking" not in can:
            return Reply({"error": f'"{body["model"]}" does not support thinking'}, 400)
        options = body.get("options") or {}
        window = self.ignores or min(options.get("num_ctx") or self.default, found["details"]["context_length"])
        if self.loaded.get(found["name"]) != window:
            self.loads.append({**options, "shift": body.get("shift", True)})
            self.loaded[found["name"]] = window
        text = "".join(str(message.get("content") or "") for message in body["messages"])
        if (size := tokens(text)) > window:
            if not self.cuts:
                return Reply({"error": overflow(size, window)}, 400)
            text = text.encode()[-4 * window :].decode(errors="replace")
        self.prompts.append(text)
        lines = self._lines(steps, body["model"], tokens(text))
        # More is promised than comes: torn, and yet nothing that was sent gets lost, as it would with a reset.
        torn = {"content-length": "1000000000"} if any(isinstance(step, Cut) and step.abort for step in steps) else {}
        return Reply(stream=lines, headers=torn, content_type="application/x-ndjson")

    def _lines(self, steps: Sequence[Step], model: str, read: int) -> Iterator[bytes | float]:
        written, last = 0, list[dict[str, Any]]()

        def line(message: Mapping[str, Any], **more: Any) -> bytes:
            said = {"role": "assistant", "content": "", **message}
            return json.dumps({"model": model, "created_at": CREATED, "message": said, "done": False, **more}).encode()

        for step in steps:
            if isinstance(step, Say):
                for word in re.findall(r"\S*\s*", step.text)[:-1]:
                    if step.pause:
                        yield step.pause
                    written += 1
                    yield line({"content": word}) + b"\n"
            elif isinstance(step, Think):
                written += 1
                thought = {"content": f"<think>{step.text}</think>"} if self.inline else {"thinking": step.text}
                yield line(thought) + b"\n"
            elif isinstance(step, Call):
                written += 1
                last.append(self._call(step, len(last)))
                if self.delivery == "rendered":
                    yield line({"tool_calls": last[-1:]}) + b"\n"
            elif isinstance(step, Fail):
                yield json.dumps({"error": step.message}).encode() + b"\n"
                return
            elif isinstance(step, Cut):
                return
            elif isinstance(step, Raw):
                yield step.data
        counts = {"prompt_eval_count": read, "eval_count": written}
        times = {"total_duration": 5_000_000, "load_duration": 1_000_000}
        counts = {name: count for name, count in counts.items() if count}  # nought is left out
        said = {"tool_calls": last} if last and self.delivery == "native" else {}
        yield line(said, done=True, done_reason="stop", **times, **counts) + b"\n"

    def _call(self, step: Call, index: int) -> dict[str, Any]:
        with self._lock:
            self._number += 1
        call_id = {"id": f"call_{self._number:08}"} if self.ids else {}
        return {**call_id, "function": {"index": index, "name": step.name, "arguments": dict(step.arguments)}}


def overflow(size: int, window: int) -> str:
    """What the engine below says of a prompt that is too long: JSON, which the server puts into a string."""
    message = f"request ({size} tokens) exceeds the available context size ({window} tokens), try increasing it"
    error = {"code": 400, "message": message, "type": "exceed_context_size_error"}
    return json.dumps({"error": {**error, "n_prompt_tokens": size, "n_ctx": window}})
