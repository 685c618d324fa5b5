"""The arguments of a foreign tool in words that every server of models takes. Pure.

OpenAI refuses a list without `items`, Anthropic choices at the top and odd names, Gemini lists of types, references
and most formats, Ollama `true` for a schema; each refuses all tools for one. So only what all of them know is kept:
references are put in place, choices at the top become one object, and what cannot be said so is left open.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from tarsd.errors import ToolError

MOST_DEPTH, MOST_NODES = 24, 1_000
"""What lies deeper, or comes later, is left open: references may unfold without end."""

_TYPES = {
    name: type
    for type, names in {
        "string": "string str text char date datetime",
        "integer": "integer int int32 int64 long short",
        "number": "number float double decimal numeric",
        "boolean": "boolean bool",
        "array": "array list tuple set",
        "object": "object dict map struct",
        "null": "null none nil",
    }.items()
    for name in names.split()
}
_ALL, _ANY = ("allOf",), ("anyOf", "oneOf")
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_FORMATS = frozenset({"date-time"})
"""Formats that no server refuses; others are told in the description."""
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
_NO_OBJECT = "its arguments are no object"

Schema = dict[str, Any]


@dataclass(frozen=True)
class Arguments:
    """What a tool takes: an object's schema, and the tool's own `names` of arguments that have another one in it."""

    schema: Schema
    names: Mapping[str, str] = field(default_factory=dict)


def arguments(given: object) -> Arguments:
    """The schema of a tool's arguments, completed. Raises `ToolError` that says why it cannot be one."""
    if given in (None, [], True):  # what takes nothing, as some languages write it
        given = {}
    if not isinstance(given, Mapping):
        raise ToolError(_NO_OBJECT)
    whole = _Reader(given).arguments()
    names = {}
    for name in [name for name in whole["properties"] if not _NAME.fullmatch(name)]:
        shown = _free(_NOT_IN_NAMES.sub("_", name).strip("_")[:60] or "x", whole["properties"])
        names[shown] = name
        whole["properties"] = {shown if key == name else key: part for key, part in whole["properties"].items()}
        whole["required"] = [shown if key == name else key for key in whole.get("required", ())]
    if not whole.get("required"):
        whole.pop("required", None)
    return Arguments(whole, names)


def _free(name: str, taken: Collection[str]) -> str:
    return next(one for one in (name, *(f"{name}_{number}" for number in range(2, 1_000))) if one not in taken)


class _Reader:
    """Reads one schema; `root` is where its references lead."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._nodes = 0

    def arguments(self) -> Schema:
        """The whole schema as that of an object. Raises `ToolError`."""
        whole = self._merged(*self._resolved(self._root, ()), (*_ALL, *_ANY))
        types = _types(whole.get("type"))
        if types and "object" not in types:
            raise ToolError(_NO_OBJECT)
        if not isinstance(whole.get("properties") or {}, Mapping):
            raise ToolError(_NO_OBJECT)
        self._nodes = 0
        return self._schema({**whole, "type": "object"}, (), 0)

    def _schema(self, given: object, within: tuple[str, ...], depth: int, *, null: bool = False) -> Schema:
        """One schema inside of `within`, the references that led here; `null`: it must be able to say nothing."""
        self._nodes += 1
        if isinstance(given, str):  # {"q": "string"}
            given = {"type": given}
        if not isinstance(given, Mapping) or depth > MOST_DEPTH or self._nodes > MOST_NODES:
            return {}
        resolved, within = self._resolved(given, within)
        if isinstance(resolved.get("allOf"), list):
            resolved = self._merged(resolved, within, _ALL)
        kept = _plain(resolved)
        types = _types(resolved.get("type"))
        choices = [
            self._schema(choice, within, depth + 1)
            for key in _ANY
            for choice in _list(resolved.get(key))
            if isinstance(choice, Mapping)
        ]
        if len([type for type in types if type != "null"]) > 1:
            choices = [self._schema({**resolved, "type": type}, within, depth + 1) for type in types]
            choices = [{key: part for key, part in choice.items() if key in _OF_A_TYPE} for choice in choices]
            kept = {key: part for key, part in kept.items() if key not in _OF_A_TYPE}
        if choices:
            return kept | _chosen(choices, null=null)
        types = [type for type in types if type != "null" or null] or types
        type = next((type for type in types if type != "null"), types[0] if types else _implied(resolved))
        if type:
            kept["type"] = type
        if type == "object":
            kept |= self._members(resolved, within, depth)
        if type == "array":
            kept["items"] = self._items(resolved, within, depth)
        return _chosen([kept, {"type": "null"}], null=True) if "null" in types and type != "null" else kept

    def _members(self, given: Mapping[str, Any], within: tuple[str, ...], depth: int) -> Schema:
        """The properties of an object, all that are required among them."""
        listed = given.get("properties")
        properties = {str(name): part for name, part in listed.items()} if isinstance(listed, Mapping) else {}
        properties = {name: part for name, part in properties.items() if part is not False}
        required = [name for name in _list(given.get("required")) if isinstance(name, str)]
        required += [
            name for name, part in properties.items() if isinstance(part, Mapping) and part.get("required") is True
        ]
        required = list(dict.fromkeys(required))
        members = {
            name: self._schema(part, within, depth + 1, null=name in required)
            for name, part in {**properties, **{name: True for name in required if name not in properties}}.items()
        }
        kept: Schema = {"properties": members}
        if required:
            kept["required"] = required
        more = given.get("additionalProperties")
        if isinstance(more, bool):
            kept["additionalProperties"] = more
        elif isinstance(more, Mapping):
            kept["additionalProperties"] = self._schema(more, within, depth + 1)
        return kept

    def _items(self, given: Mapping[str, Any], within: tuple[str, ...], depth: int) -> Schema:
        """What the items of a list are; one schema for those that have each its own."""
        items = given.get("items")
        each = items if isinstance(items, list) else _list(given.get("prefixItems"))
        if not each:
            return self._schema(items, within, depth + 1)
        return _chosen([self._schema(item, within, depth + 1) for item in each], null=True)

    def _resolved(self, given: Mapping[str, Any], within: tuple[str, ...]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """The schema with that in place of its reference; one that leads nowhere, or back into itself, is left open."""
        while isinstance(reference := given.get("$ref") or given.get("$dynamicRef"), str):
            own = {key: part for key, part in given.items() if key not in ("$ref", "$dynamicRef")}
            found = None if reference in within else self._at(reference)
            within = (*within, reference)
            given = {**found, **own} if isinstance(found, Mapping) else own
        return given, within

    def _at(self, reference: str) -> object:
        found: object = self._root
        head, _, pointer = reference.partition("#")
        if head:
            return None
        for step in pointer.split("/")[1:]:
            step = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and step.isdecimal() and int(step) < len(found):
                found = found[int(step)]
            elif isinstance(found, Mapping):
                found = found.get(step)
            else:
                return None
        return found

    def _merged(
        self, given: Mapping[str, Any], within: tuple[str, ...], keys: tuple[str, ...], depth: int = 0
    ) -> Mapping[str, Any]:
        """One object for the schemas under `keys`: for all of them, and of choices for any, so that few are needed."""
        whole = {key: part for key, part in given.items() if key not in keys}
        properties = dict(whole["properties"]) if isinstance(whole.get("properties"), Mapping) else None
        required = _list(whole.get("required"))
        for key in keys:
            parts = []
            for part in _list(given.get(key)) if depth < MOST_DEPTH else []:
                self._nodes += 1
                if isinstance(part, Mapping) and self._nodes < MOST_NODES:
                    parts.append(self._merged(*self._resolved(part, within), keys, depth + 1))
            for part in parts:
                whole = {**part, **whole}
                if isinstance(part.get("properties"), Mapping):
                    properties = {**part["properties"], **(properties or {})}
            needed = [[name for name in _list(part.get("required")) if isinstance(name, str)] for part in parts]
            if key == "allOf":
                required = [*required, *(name for names in needed for name in names)]
            elif needed:
                required = [*required, *(name for name in needed[0] if all(name in names for names in needed))]
        if properties is not None:
            whole["properties"] = properties
        return whole | {"required": required}


_OF_A_TYPE = frozenset(
    {
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "format",
        "pattern",
        *_NUMBERS,
        *_COUNTS,
    }
)


def _types(given: object) -> list[str]:
    """The types that are named, by the names that JSON Schema has for them; none for what may be anything."""
    named = given if isinstance(given, list) else [given]
    known = [_TYPES.get(name.strip().lower(), "") if isinstance(name, str) else "" for name in named]
    return list(dict.fromkeys(known)) if all(known) else []


def _implied(given: Mapping[str, Any]) -> str:
    """The type that a schema without one has by what it says of it."""
    if isinstance(given.get("properties"), Mapping):
        return "object"
    if "items" in given or "prefixItems" in given:
        return "array"
    values = [given["const"]] if "const" in given else _list(given.get("enum"))
    kinds = {type(value) for value in values if value is not None}
    return "string" if kinds == {str} else ""


def _plain(given: Mapping[str, Any]) -> Schema:
    """What a schema says beyond its type, as far as all servers know it and it makes sense."""
    kept: Schema = {key: given[key] for key in ("title", "description") if isinstance(given.get(key), str)}
    if given.get("default") is not None:
        kept["default"] = given["default"]
    values = [given["const"]] if "const" in given else _list(given.get("enum"))
    if values := [value for at, value in enumerate(values) if value is not None and value not in values[:at]]:
        kept["enum"] = values
    for key in _NUMBERS:
        if _is_number(given.get(key)):
            kept[key] = given[key]
    for key, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if given.get(key) is True and bound in kept:  # as the fourth draft has it
            kept[key] = kept.pop(bound)
    for key in _COUNTS:
        if isinstance(given.get(key), int) and not isinstance(given[key], bool) and given[key] >= 0:
            kept[key] = given[key]
    if isinstance(given.get("pattern"), str) and _compiles(given["pattern"]):
        kept["pattern"] = given["pattern"]
    if isinstance(form := given.get("format"), str):
        if form in _FORMATS:
            kept["format"] = form
        else:
            kept["description"] = f"{kept.get('description', '')} (format: {form})".strip()
    return kept


def _chosen(choices: list[Schema], *, null: bool) -> Schema:
    """One of several schemas; saying nothing is no choice where the argument need not be there at all."""
    kept = [choice for at, choice in enumerate(choices) if choice not in choices[:at]]
    if not null:
        kept = [choice for choice in kept if choice.get("type") != "null"] or kept
    return kept[0] if len(kept) == 1 else {"anyOf": kept}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
