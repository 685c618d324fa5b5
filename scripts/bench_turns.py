"""What tars adds to a turn before the model hears of it: from the question to the request at the model."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))  # the stand-in for a model is part of the tests

from tests.support.doubles.openai import OpenAIDouble
from tests.support.doubles.script import Say
from tests.support.doubles.server import Call, Reply

QUESTIONS = [
    "How do I link notes together?", "What is a zettelkasten, and who uses one?", "Which template for daily notes?",
    "Is there a plugin for spaced repetition?", "How can I export a note to PDF?", "Which theme is good for reading?",
    "How do I sync between phone and laptop?", "What does the graph show me?", "Can I see my tasks in a calendar?",
    "How do people manage citations with Zotero?",
]  # fmt: skip


class Timed(OpenAIDouble):
    """Notes when each chat request came."""

    def __init__(self) -> None:
        super().__init__()
        self.came: list[float] = []

    def reply(self, call: Call) -> Reply:
        """As the stand-in."""
        if call.method == "POST":
            self.came.append(time.perf_counter())
        return super().reply(call)


def turns(make: Any, vault: Path, home: Path, rounds: int) -> tuple[list[float], list[float]]:
    """(seconds until the model is asked, seconds of a bare request to the same server) for every question.

    `make(vault, home, embedding)` starts a daemon, as `bench.Daemon` does.
    """
    asked, bare = [], []
    with Timed() as double:
        (home / "config.toml").write_text(double.config(), encoding="utf-8")
        os.environ |= double.env()
        daemon = make(vault, home, "table")
        try:
            daemon.wait(lambda status: status["behind"] == 0, 300)
            for number in range(rounds * len(QUESTIONS)):
                double.enqueue(Say("An answer of a few words [1]."))
                body = {
                    "conversation": f"c{number // 5}", "request_id": f"r{number}",
                    "message": QUESTIONS[number % len(QUESTIONS)],
                }  # fmt: skip
                began = time.perf_counter()
                turn = daemon.call("POST", "/v1/turns", body)["turn"]
                daemon.call("GET", f"/v1/turns/{turn}/events")
                asked.append(double.came[-1] - began)
                bare.append(_bare(double))
        finally:
            daemon.stop()
    return asked[len(QUESTIONS) :], bare  # the first round loads the SDK and the index's pages


def _bare(double: Timed) -> float:
    """The same kind of request without anything before it."""
    import http.client

    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", double.port)
    body = {"model": double.model, "messages": [{"role": "user", "content": "x"}], "stream": True}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
    connection.getresponse().read()
    connection.close()
    return double.came[-1] - began
