"""Chat models as the status and `tarsd models` tell of them."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tarsd.cli.models import chat_line, tool_rows
from tarsd.cli.terminal import Terminal
from tarsd.errors import EXIT_OK
from tests.support.stub import Run, Stub

OFFER = {"id": "ollama:qwen3:8b", "local": True, "context": 32768, "tools": True, "note": "8.2B, Q4"}
MODELS: dict[str, Any] = {
    "chat": {"configured": "auto", "fallback": "extractive", "model": "ollama:qwen3:8b", "local": True},
    "providers": [
        {"provider": "ollama", "state": "ready", "reason": "", "hint": "", "models": [OFFER]},
        {
            "provider": "anthropic",
            "state": "no key",
            "reason": "No key\x1b.",
            "hint": "tarsd key set anthropic",
            "models": [],
        },
    ],
    "embedding": {"model": "minilm"},
}


def test_models_are_listed_by_provider(run: Run, stub: Stub) -> None:
    stub.replies["GET /v1/models"] = MODELS
    code, out, err = run("models")
    assert (code, err) == (EXIT_OK, "")
    assert out.splitlines() == [
        "Chat       ollama:qwen3:8b",
        "Fallback   extractive",
        "Embedding  minilm",
        "",
        "● ollama",
        "  ollama:qwen3:8b  32,768 tokens · 8.2B, Q4",
        "",
        "○ anthropic no key",
        "  No key␛.",
        "  tarsd key set anthropic",
    ]
    assert json.loads(run("models", "--json")[1]) == MODELS


def test_many_models_are_cut_unless_all_are_asked_for(run: Run, stub: Stub) -> None:
    far = {"id": "openai:x", "local": False, "context": 0, "tools": False, "note": ""}
    provider = {"provider": "openai", "state": "ready", "models": [far] * 45}
    stub.replies["GET /v1/models"] = {"chat": {"model": "extractive"}, "providers": [provider]}
    out = run("models")[1]
    assert "  openai:x  no tools · not on this machine\n" in out
    assert "  … and 25 more: tarsd models --all\n" in out
    assert run("models", "--all")[1].count("openai:x") == 45


@pytest.mark.parametrize(
    ("chat", "shown"),
    [
        ({}, "none"),
        ({"model": "extractive", "state": "ready", "local": True}, "extractive (no model: quotes the best passages)"),
        ({"model": "ollama:x", "state": "ready", "local": True}, "ollama:x"),
        ({"model": "ollama:x", "state": "busy", "local": True}, "ollama:x, busy"),
        ({"model": "anthropic:x\x07", "state": "ready", "local": False}, "anthropic:x␇, not on this machine"),
        ({"model": "ollama:x", "reason": "Away.", "hint": "Start it."}, "ollama:x · Away. Start it."),
    ],
)
def test_the_chat_model_in_a_line(chat: dict[str, Any], shown: str) -> None:
    assert chat_line(chat, Terminal(sys.stdout)) == shown


def test_tool_servers_have_a_line_each() -> None:
    servers = [
        {"name": "files", "state": "ready", "reason": "", "hint": "", "tools": 3},
        {"name": "one", "state": "ready", "tools": ["one_a"]},
        {"name": "web", "state": "down", "reason": "It ended.", "hint": "Look.", "tools": 0},
    ]
    rows = tool_rows({"mcp": servers}, Terminal(sys.stdout))
    assert rows == [
        ("Tools", "files, ready, 3 tools"),
        ("Tools", "one, ready, 1 tool"),
        ("Tools", "web, down"),
        ("", "It ended."),
    ]


def test_a_model_that_could_not_answer_is_told_in_the_status(run: Run, stub: Stub) -> None:
    problem = {"message": "Ollama is not running", "hint": "Start it: ollama serve"}
    chat = {"model": "ollama:x", "state": "ready", "local": True, "fallback": "extractive", "problem": problem}
    stub.replies["GET /v1/status"] = {"chat": chat}
    out = run("status")[1]
    told = "could not answer: Ollama is not running. Start it: ollama serve extractive answers instead."
    assert f"ollama:x · {told}" in out
    assert "extractive answers" not in chat_line({**chat, "fallback": ""}, Terminal(sys.stdout))
