"""A conversation over the real socket, with a stand-in for the model's server."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from tests.conftest import Daemon
from tests.support.doubles.anthropic import AnthropicDouble
from tests.support.doubles.ollama import OllamaDouble
from tests.support.doubles.openai import OpenAIDouble
from tests.support.engine import write

Start = Callable[..., Daemon]
Double = AnthropicDouble | OllamaDouble | OpenAIDouble


class Talk:
    """A daemon on a vault of two notes, with a double as its model."""

    def __init__(
        self, double: Double, start: Start, home: Path, vault: Path, *, notes: bool = True, settings: str = ""
    ) -> None:
        self.double = double
        self.vault = vault
        # keys of [chat] come first, and further tables after those of the double
        own, _, tables = settings.partition("\n[")
        text = double.config().replace("[chat]\n", f"[chat]\n{own.strip()}\n") + (f"\n[{tables}" if tables else "")
        (home / "config.toml").write_text(text, encoding="utf-8")
        if notes:
            write(vault, "Quorl.md", "# Quorl\n\nA quorl is the brass wedge that holds the ferry ramp level.\n")
            write(vault, "Tides.md", "# Tides\n\nHigh water at Carrow Slip was at 06:12.\n")
        # "" leaves the choice of the model to the file
        self.daemon = start(vault, TARSD_CHAT="", **double.env())
        self.client = self.daemon.client
        self.asked = 0

    def ask(self, message: str, **more: Any) -> str:
        """The id of a new turn."""
        self.asked += 1
        body = {"conversation": "c", "message": message, "request_id": f"r{self.asked}", **more}
        return str(self.client.post("/v1/turns", body)["turn"])

    def follow(self, turn: str, after: int = 0) -> Generator[dict[str, Any], None, None]:
        """The events of a turn as they come."""
        yield from self.client.stream(f"/v1/turns/{turn}/events?after={after}")

    def whole(self, turn: str) -> list[dict[str, Any]]:
        """All events of a turn."""
        return list(self.follow(turn))

    def note(self) -> str:
        """The note of the conversation."""
        (path,) = (self.vault / "tars" / "sessions").glob("*.md")
        return path.read_text(encoding="utf-8")

    def sent(self) -> str:
        """Everything that the model has been sent."""
        return json.dumps(self.double.requests, ensure_ascii=False)
