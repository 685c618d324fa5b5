"""A new person's first session, without a model and with a real small one: remember, ask, correct, review, find it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tarsd.parse import parse
from tests.conftest import Daemon
from tests.support.doubles.llama import NO_WHEEL, Llama
from tests.support.engine import until

Start = Callable[..., Daemon]
SAMPLE = Path(__file__).parents[2] / "tarsd" / "data" / "sample-vault"


@pytest.fixture(scope="module")
def llama() -> Iterator[Llama]:
    with Llama(8192) as server:
        yield server


@pytest.fixture
def sample(vault: Path) -> Path:
    shutil.copytree(SAMPLE, vault, dirs_exist_ok=True)
    return vault


def ask(daemon: Daemon, conversation: str, message: str) -> list[dict[str, Any]]:
    """All events of a turn."""
    body = {"conversation": conversation, "message": message, "request_id": f"{conversation} {message}", "save": True}
    turn = daemon.client.post("/v1/turns", body)["turn"]
    events = list(daemon.client.stream(f"/v1/turns/{turn}/events"))
    assert events[-1]["type"] == "done", events[-1]
    return [*events, {"turn": turn}]


def first_session(daemon: Daemon, vault: Path) -> list[dict[str, Any]]:
    """The whole of it; the events of the question."""
    client = daemon.client
    added = client.post("/v1/memory", {"text": "My boat is called Plover"})
    assert "+- My boat is called Plover" in added["diff"]
    # asked at once: what was just remembered is known
    events = ask(daemon, "new", "What is my boat called?")
    turn, events = events[-1]["turn"], events[:-1]
    client.post("/v1/feedback", {"turn": turn, "verdict": "wrong", "note": "Name the boat in capitals"})
    review = client.post("/v1/review")
    rules = [proposal for proposal in review["proposals"] if proposal["kind"] == "rule"]
    assert "Name the boat in capitals" in [rule["text"] for rule in rules]
    decisions = [
        {"id": rule["id"]}
        | (
            {"action": "edit", "text": rule["text"]}
            if rule["text"] == "Name the boat in capitals"
            else {"action": "drop"}
        )
        for rule in rules
    ]
    applied = client.post("/v1/review/apply", {"review": review["review"], "decisions": decisions})
    assert any(path.endswith("Procedural.md") for path in applied["written"])
    assert [rule["line"] for rule in client.get("/v1/memory")["rules"]] == ["Name the boat in capitals"]
    assert client.post("/v1/review")["proposals"] == []

    def found() -> bool:
        hits = client.post("/v1/search", {"query": "What is my boat called?", "limit": 50})["hits"]
        return any(hit["path"].startswith("tars/sessions/") for hit in hits)

    until(found)
    return events


def check_notes(vault: Path) -> None:
    """Every note that was written reads without a complaint, and is marked as ours."""
    notes = sorted((vault / "tars").rglob("*.md"))
    assert len(notes) >= 4
    for path in notes:
        note = parse(path.read_text(encoding="utf-8"), path.name)
        assert note.problems == ()
        assert note.ours, path


def test_without_a_model(daemon: Start, sample: Path) -> None:
    one = daemon(sample)
    events = first_session(one, sample)
    assert "My boat is called Plover" in events[-1]["text"]
    assert any(source["path"] == "tars/Memory.md" for source in events[-1]["citations"])
    check_notes(sample)


@pytest.mark.timeout(900)  # it really computes
@pytest.mark.skipif(NO_WHEEL != "", reason=NO_WHEEL or "-")
def test_with_a_real_small_model(daemon: Start, sample: Path, home: Path, llama: Llama) -> None:
    # so small a model talks on and on, and reads a long prompt slowly
    settings = llama.config().replace("[chat]\n", "[chat]\nreply_tokens = 64\nevidence_tokens = 300\n")
    (home / "config.toml").write_text(settings, encoding="utf-8")
    one = daemon(sample, TARSD_CHAT=f"openai:{llama.model}")
    events = first_session(one, sample)
    retrieved = next(event for event in events if event["type"] == "retrieved")
    assert retrieved["model"] == f"openai:{llama.model}"
    assert retrieved["local"] is True
    assert sum(event["type"] == "token" for event in events) > 3
    assert any(event["type"] == "usage" and event["input_tokens"] > 100 for event in events)
    assert events[-1]["text"].strip()
    (note,) = (sample / "tars" / "sessions").glob("*boat*.md")
    assert "What is my boat called?" in note.read_text(encoding="utf-8")
    # the end of it: the real model is asked for a summary, which is found as episodic memory
    one.client.post("/v1/conversations/new/close")
    one.wait(lambda status: status["behind"] == 0 and any((sample / "tars").glob("summaries/*.md")))
    (summary,) = (sample / "tars" / "summaries").glob("*.md")
    assert parse(summary.read_text(encoding="utf-8"), summary.name).memory_type == "episodic"
    check_notes(sample)
