"""The command about chat models, and how the status tells of them and of the tool servers."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from tarsd.cli.common import Command, hinted, json_option, print_json, sentence, vault_option
from tarsd.cli.terminal import Terminal, fit, line
from tarsd.client import Client

MOST_MODELS = 20
INDENT = 12
"""Columns before the text of a row of the status."""


@click.command(cls=Command)
@click.option("--all", "every", is_flag=True, help="List every model of each provider.")
@vault_option
@json_option
def models(every: bool, vault: Path | None, as_json: bool) -> None:
    """List the chat models of the configured providers."""
    reply = Client.find(vault).get("/v1/models")
    if as_json:
        print_json(reply)
        return
    out = Terminal(sys.stdout)
    chat = reply.get("chat") or {}
    click.echo(f"{out.dim('Chat')}       {chat_line(chat, out)}")
    if chat.get("fallback"):
        click.echo(f"{out.dim('Fallback')}   {line(chat['fallback'])}")
    click.echo(f"{out.dim('Embedding')}  {line((reply.get('embedding') or {}).get('model') or 'none')}")
    for provider in reply.get("providers") or []:
        for text in _provider(provider, out, every):
            click.echo(text)


def _provider(provider: Mapping[str, Any], out: Terminal, every: bool) -> list[str]:
    ready = provider.get("state") == "ready"
    sign = out.green("●") if ready else out.dim("○")
    state = "" if ready else f" {line(provider.get('state', ''))}"
    shown = ["", f"{sign} {out.bold(line(provider.get('provider', '')))}{state}"]
    shown += [
        f"  {text}" for text in (line(provider.get("reason") or ""), out.dim(line(provider.get("hint") or ""))) if text
    ]
    listed = provider.get("models") or []
    kept = listed if every else listed[:MOST_MODELS]
    for model in kept:
        about = (
            f"{int(model.get('context') or 0):,} tokens" if model.get("context") else "",
            "no tools" if model.get("tools") is False else "",
            "not on this machine" if model.get("local") is False else "",
            line(model.get("note") or ""),
        )
        shown.append(f"  {line(model.get('id', ''))}  {out.dim(' · '.join(filter(None, about)))}".rstrip())
    if len(kept) < len(listed):
        shown.append(f"  … and {len(listed) - len(kept):,} more: tarsd models --all")
    return shown


def chat_line(chat: Mapping[str, Any], out: Terminal) -> str:
    """Which model answers, where it runs, and what it is doing."""
    model = line(chat.get("model") or "none")
    if model == "extractive":
        text = f"{model} (no model: quotes the best passages)"
    elif chat.get("local") is False:
        text = f"{model}, {out.yellow('not on this machine')}"
    else:
        text = model
    if chat.get("state") not in (None, "", "ready"):
        text += f", {line(chat['state'])}"
    problem = chat.get("problem")
    if isinstance(problem, dict) and problem.get("message"):
        text += out.yellow(f" · could not answer: {_told(problem, 'message')}")
        if chat.get("fallback"):
            text += f" {line(chat['fallback'])} answers instead."
    elif chat.get("reason"):
        text += out.yellow(f" · {_told(chat, 'reason')}")
    return text


def _told(about: Mapping[str, Any], name: str) -> str:
    """What is wrong, and what to do."""
    return f"{sentence(line(about[name]))} {line(hinted(about.get('hint') or ''))}".rstrip()


def tool_rows(chat: Mapping[str, Any], out: Terminal) -> list[tuple[str, str]]:
    """A row for each MCP server, and one for its problem, cut to a line."""
    rows = []
    for server in chat.get("mcp") or []:
        tools = server.get("tools")
        count = len(tools) if isinstance(tools, list) else int(tools or 0)
        text = f"{line(server.get('name', ''))}, {line(server.get('state', ''))}"
        rows.append(("Tools", text + (f", {count} tool{'s' * (count != 1)}" if count else "")))
        if server.get("reason"):
            rows.append(("", out.yellow(fit(line(server["reason"]), out.width - INDENT))))
    return rows
