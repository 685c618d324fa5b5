"""The arguments of a tool: a schema made of annotations, and a lenient check with sentences a small model can use."""

from __future__ import annotations

import difflib
import json
import math
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from tarsd.errors import ToolError

_TYPES: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_WORDS = {
    "string": "text", "integer": "a whole number", "number": "a number", "boolean": "true or false",
    "array": "a list", "object": "an object",
}  # fmt: skip
_WRAPPERS = ("arguments", "parameters", "input", "args")


def schema_of(hint: Any) -> dict[str, Any]:
    """The JSON schema of an annotation: text, numbers, truth, choices, lists of them; `| None` is left out."""
    if get_origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        said = next((note for note in notes if isinstance(note, str)), "")
        return schema_of(inner) | ({"description": said} if said else {})
    if get_origin(hint) in (Union, types.UnionType):
        return schema_of(next(part for part in get_args(hint) if part is not type(None)))
    if get_origin(hint) is Literal:
        return {"type": "string", "enum": list(get_args(hint))}
    if get_origin(hint) is list:
        return {"type": "array", "items": schema_of(get_args(hint)[0])}
    return {"type": _TYPES[hint]}


def validate(schema: Mapping[str, Any], arguments: object, name: str = "This tool") -> dict[str, Any]:
    """The arguments in the types of the schema; clear cases ("5" for 5, one text for a list) are accepted.

    Raises `ToolError`: what is wrong, and what the tool takes.
    """
    properties: Mapping[str, Any] = schema.get("properties") or {}
    given = _object(arguments, properties)
    if given is None:
        raise ToolError(f"{name}: the arguments must be one JSON object. {_usage(properties, schema)}")
    kept: dict[str, Any] = {}
    for key, value in given.items():
        if key not in properties:
            close = difflib.get_close_matches(key, list(properties), 1)
            guess = f" Did you mean “{close[0]}”?" if close else ""
            raise ToolError(f"{name} has no argument “{key[:40]}”.{guess} {_usage(properties, schema)}")
        if value is None and key not in schema.get("required", ()):
            continue
        kept[key] = _value(properties[key], value, key, name)
    missing = [key for key in schema.get("required", ()) if key not in kept]
    if missing:
        names = " and ".join(f"“{key}”" for key in missing)
        raise ToolError(f"{name}: {names} {'is' if len(missing) == 1 else 'are'} missing. {_usage(properties, schema)}")
    return kept


def _object(arguments: object, properties: Mapping[str, Any]) -> dict[str, Any] | None:
    """The arguments as a dictionary, also when they came as JSON in a text or in one wrapper too many."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            return None
    if not isinstance(arguments, Mapping):
        return None
    if len(arguments) == 1:
        [(key, value)] = arguments.items()
        if key in _WRAPPERS and key not in properties and isinstance(value, Mapping | str):
            return _object(value, properties)
    return {str(key): value for key, value in arguments.items()}


def _value(schema: Mapping[str, Any], value: object, key: str, name: str) -> Any:
    wanted = schema.get("type")
    if "enum" in schema:
        choices = schema["enum"]
        if value in choices:
            return value
        same = [choice for choice in choices if str(choice).casefold() == str(value).strip().casefold()]
        if same:
            return same[0]
        raise ToolError(f"{name}: “{key}” must be one of {', '.join(map(str, choices))}; not {_shown(value)}.")
    if wanted == "array":
        items = _items(value)
        if items is not None:
            return [_value(schema.get("items") or {}, item, key, name) for item in items]
    elif wanted in _CASTS:
        cast = _CASTS[wanted](value)
        if cast is not None:
            return cast
    elif wanted != "object" or isinstance(value, Mapping):
        return value
    raise ToolError(f"{name}: “{key}” must be {_WORDS.get(str(wanted), wanted)}; not {_shown(value)}.")


def _items(value: object) -> list[Any] | None:
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            return list(json.loads(value))
        except (ValueError, RecursionError):
            return [value]
    return [value] if isinstance(value, str | int | float) else None


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else None


def _whole(value: object) -> int | None:
    number = _number(value)
    return int(number) if number is not None and number.is_integer() else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _truth(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(
        str(value).strip().casefold()
    )


_CASTS: dict[Any, Callable[[object], Any]] = {"string": _text, "integer": _whole, "number": _number, "boolean": _truth}


def _usage(properties: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """What the tool takes, in one sentence."""
    if not properties:
        return "It takes no arguments: {}."
    needed = schema.get("required", ())
    parts = []
    for key, about in properties.items():
        choices = "/".join(map(str, about.get("enum", ())))
        kind = f"one of {choices}" if choices else _WORDS.get(str(about.get("type")), "anything")
        parts.append(f"{key} ({kind}{', needed' if key in needed else ''})")
    return f"It takes: {', '.join(parts)}."


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:60] + "…"
