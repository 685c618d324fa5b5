"""What MCP servers send, in the form in which the SDK takes it, which refuses a whole list for one slip. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tarsd.errors import ToolError
from tarsd.tools.schemas import arguments

NAME_CHARS, SCHEMA_CHARS = 128, 20_000

_NEEDED = {
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
}
"""The kinds of content besides text and files, and the texts without which they are none."""


def usable(tool: object) -> dict[str, Any]:
    """A tool of a list with what we use of it. Raises `ToolError` that says why it cannot be offered to a model.

    How its answers look is left out: an answer that breaks that promise is an answer.
    """
    if not isinstance(tool, Mapping) or not isinstance(tool.get("name"), str):
        raise ToolError("it has no name")
    if not tool["name"].strip() or len(tool["name"]) > NAME_CHARS:
        raise ToolError(f"its name must have 1 to {NAME_CHARS} characters")
    given = tool.get("inputSchema")
    fit = arguments(given).schema
    if any(_size(schema) > SCHEMA_CHARS for schema in (fit, given)):
        raise ToolError(f"the description of its arguments is longer than {SCHEMA_CHARS:,} characters")
    kept = {key: tool[key] for key in ("name", "title", "description") if isinstance(tool.get(key), str)}
    return {**kept, "inputSchema": given if _is_whole(given) else fit}


def _is_whole(schema: object) -> bool:
    """Whether the SDK takes a schema as it is: it looks for marks of its own in it."""
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        return False
    return isinstance(schema.get("properties", {}), Mapping) and isinstance(schema.get("required", []), list)


def _size(schema: object) -> int:
    try:
        return len(json.dumps(schema, default=str))
    except RecursionError:
        return SCHEMA_CHARS + 1


def is_answer(result: Mapping[str, Any]) -> bool:
    """Whether a result is that of a call of a tool."""
    return "role" not in result and any(key in result for key in ("content", "structuredContent", "toolResult"))


def answered(result: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of a tool: its content as a list of blocks, whatever was sent as such, and its data as an object."""
    content = result.get("content")
    if content is None:  # as the first version of the protocol had it
        content = result.get("toolResult", [])
    blocks = content if isinstance(content, list) else [content]
    fit = {**result, "content": [_block(block) for block in blocks if block is not None]}
    fit["isError"] = str(result.get("isError")).lower() in ("true", "1")
    data = fit.pop("structuredContent", None)
    if data is not None:
        fit["structuredContent"] = data if isinstance(data, Mapping) else {"result": data}
    return fit


def _block(block: object) -> dict[str, Any]:
    """A piece of content; unknown kinds are passed on unchanged."""
    if not isinstance(block, Mapping):
        return {"type": "text", "text": block if isinstance(block, str) else _json(block)}
    kind = block.get("type")
    if isinstance(block.get("text"), str) and (kind == "text" or not isinstance(kind, str)):
        return {"type": "text", "text": block["text"]}
    needed = _NEEDED.get(kind) if isinstance(kind, str) else None
    if needed and all(isinstance(block.get(key), str) for key in needed):
        return {"type": kind, **{key: block[key] for key in needed}}
    inner = block.get("resource")
    if kind == "resource" and isinstance(inner, Mapping) and isinstance(inner.get("uri"), str):
        body = next((key for key in ("text", "blob") if isinstance(inner.get(key), str)), "")
        if body:
            mime = {"mimeType": inner["mimeType"]} if isinstance(inner.get("mimeType"), str) else {}
            return {"type": "resource", "resource": {"uri": inner["uri"], body: inner[body], **mime}}
    return {"type": "text", "text": _json(block)}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
