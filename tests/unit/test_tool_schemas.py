"""Schemas of foreign tools: whatever comes, no server of models has a reason to refuse it, and nothing is lost."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import jsonschema
import pytest

from tarsd.errors import ToolError
from tarsd.tools.mcp_wire import answered, is_answer, usable
from tarsd.tools.schemas import MOST_NODES, arguments

report = pytest.mark.report
NODE = {
    "type": "object",
    "properties": {
        "value": {"type": "string"},
        "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
        "parent": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
    },
    "required": ["value"],
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "a bare list": {"items": {"type": "array"}},
    "lists of lists": {"matrix": {"type": "array", "items": {"type": "array"}}},
    "a bare list in a choice": {"x": {"anyOf": [{"type": "array"}, {"type": "string"}]}},
    "a bare list deep down": {"a": {"type": "object", "properties": {"b": {"type": "object", "properties": {"c": {
        "type": "array"}}}}}},
    "a tuple": {"box": {"type": "array", "items": [{"type": "number"}, {"type": "string"}], "additionalItems": False}},
    "a tuple of today": {"box": {"type": "array", "prefixItems": [{"type": "number"}], "items": False}},
    "items of anything": {"x": {"type": "array", "items": True}},
    "an object of which nothing is said": {"x": {"type": "object"}},
    "several types": {"x": {"type": ["string", "number", "array", "object"]}},
    "perhaps nothing": {"x": {"type": ["string", "null"], "default": None}},
    "a choice": {"x": {"oneOf": [{"type": "string"}, {"type": "object", "required": ["y"]}]}},
    "true": {"x": True, "y": False},
    "a word for a schema": {"x": "string", "y": None},
    "types of other languages": {"a": {"type": "str"}, "b": {"type": "List"}, "c": {"type": "dict"}, "d": {
        "type": "any"}, "e": {"type": "INTEGER"}, "f": {"type": "float"}, "g": {"type": {"$ref": "#/x"}}},
    "bounds of the fourth draft": {"x": {"type": "integer", "minimum": 0, "exclusiveMinimum": True}},
    "required where it stands": {"x": {"type": "string", "required": True}, "y": {"type": "string", "required": False}},
    "no choice at all": {"x": {"type": "string", "enum": []}, "y": {"const": "z"}, "z": {"enum": ["a", "a", None]}},
    "odd formats": {"x": {"type": "string", "format": "uri"}, "y": {"type": "string", "format": "date-time"}},
    "odd names": {"$top": {"type": "integer"}, "top": {"type": "integer"}, "名前": {"type": "string"}, "a b": {}},
    "a pattern of another language": {"x": {"type": "string", "pattern": r"^\p{L}+(?<n>x)$"}},
    "words that are none": {"x": {"type": "string", "description": ["a"], "title": 5, "minLength": "3"}},
}  # fmt: skip
WHOLE: dict[str, Any] = {
    "nothing": None,
    "an empty list": [],
    "no type": {},
    "properties as a list": {"type": "object", "properties": []},
    "null for all": {"type": "object", "properties": None, "required": None, "additionalProperties": None},
    "a choice at the top": {"oneOf": [{"properties": {"id": {"type": "array"}}, "required": ["id"]}, {
        "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}]},
    "only what is required in a choice": {"type": "object", "properties": {"paths": {"type": "array"}, "project": {}},
        "required": ["project"], "anyOf": [{"required": ["paths"]}, {"required": ["scopes"]}]},
    "conditions at the top": {"type": "object", "properties": {"mode": {"type": "string"}}, "allOf": [{"if": {
        "properties": {"mode": {"const": "x"}}}, "then": {"required": ["y"]}}], "not": {"required": ["q"]}},
    "a reference at the top": {"$ref": "#/$defs/Node", "$defs": {"Node": NODE}},
    "references of before": {"type": "object", "definitions": {"A/b": {"type": "array"}}, "properties": {
        "x": {"$ref": "#/definitions/A~1b"}}},
    "a reference to nowhere": {"type": "object", "properties": {"x": {"$ref": "#/$defs/Gone", "description": "kept"},
        "y": {"$ref": "https://example.com/schema.json"}}},
    "a loop": {"type": "object", "properties": {"x": {"$ref": "#/properties/x"}, "y": {"$ref": "#"}}},
    "parts of one": {"allOf": [{"$ref": "#/$defs/A"}, {"properties": {"b": {"type": "array"}}, "required": ["b"]}],
        "$defs": {"A": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}}},
    "required but unknown": {"type": "object", "properties": {}, "required": ["x", "x", 5]},
    "an object or nothing": {"type": ["object", "null"], "properties": {"x": {"type": "string"}}},
    "another draft": {"$schema": "http://json-schema.org/draft-04/schema#", "id": "x", "type": "object"},
}  # fmt: skip


def refusals(schema: Any, at: str = "") -> list[str]:
    """Why one of the servers would refuse a schema."""
    if not isinstance(schema, Mapping):
        return [f"{at}: no object"]
    found = []
    if not at:
        found += [f"top: {key}" for key in ("anyOf", "oneOf", "allOf", "not", "enum", "if", "$ref") if key in schema]
        found += [] if schema.get("type") == "object" else ["top: no object"]
        found += [f"name {name}" for name in schema["properties"] if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name)]
    kind = schema.get("type")
    if kind is not None and not isinstance(kind, str):
        found.append(f"{at}: several types")
    if kind == "array" and not isinstance(schema.get("items"), Mapping):
        found.append(f"{at}: no items")
    if kind == "object" and not isinstance(schema.get("properties"), Mapping):
        found.append(f"{at}: no properties")
    found += [f"{at}: {key}" for key in ("$ref", "$defs", "definitions", "oneOf", "allOf", "const") if key in schema]
    found += [f"{at}: not there: {name}" for name in schema.get("required", ()) if name not in schema["properties"]]
    found += [] if schema.get("format") in (None, "date-time") else [f"{at}: format"]
    for name, part in schema.get("properties", {}).items():
        found += refusals(part, f"{at}.{name}")
    for choice in schema.get("anyOf", ()):
        found += refusals(choice, f"{at}?")
    return found + (refusals(schema["items"], f"{at}[]") if "items" in schema else [])


@report("https://github.com/makenotion/notion-mcp-server/issues/340")
@report("https://github.com/ruvnet/ruflo/issues/1294")
@pytest.mark.parametrize("name", [*SCHEMAS, *WHOLE])
def test_no_server_has_a_reason_to_refuse_a_schema(name: str) -> None:
    given = WHOLE[name] if name in WHOLE else {"type": "object", "properties": SCHEMAS[name]}
    before = json.dumps(given)
    found = arguments(given).schema
    assert refusals(found) == []
    jsonschema.Draft202012Validator.check_schema(found)
    assert json.dumps(given) == before, "what the server said stays as it was"
    assert arguments(found).schema == found, "what is right is left alone"


def test_what_a_schema_says_is_kept() -> None:
    given = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where", "enum": ["Bergen", "Kiel"], "default": "Kiel"},
            "days": {"type": "integer", "minimum": 1, "maximum": 9},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
            "more": {"type": "object", "properties": {"x": {"type": "number"}}, "additionalProperties": False},
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    assert arguments(given).schema == given


def test_what_a_schema_means_survives_its_completion() -> None:
    top = arguments(WHOLE["a choice at the top"]).schema
    assert set(top["properties"]) == {"id", "name"} and "required" not in top
    parts = arguments(WHOLE["parts of one"]).schema
    assert set(parts["properties"]) == {"a", "b"} and set(parts["required"]) == {"a", "b"}
    assert arguments(WHOLE["only what is required in a choice"]).schema["required"] == ["project"]
    node = arguments(WHOLE["a reference at the top"]).schema["properties"]
    assert node["children"]["items"]["properties"]["value"] == {"type": "string"}
    some = arguments({"type": "object", "properties": SCHEMAS["several types"]}).schema["properties"]["x"]
    assert [one["type"] for one in some["anyOf"]] == ["string", "number", "array", "object"]
    perhaps = {"x": {"type": ["string", "null"]}}
    assert arguments({"type": "object", "properties": perhaps}).schema["properties"]["x"] == {"type": "string"}
    needed = arguments({"type": "object", "properties": perhaps, "required": ["x"]}).schema["properties"]["x"]
    assert {"type": "null"} in needed["anyOf"], "it has to be there, and may be nothing"


def test_odd_names_are_told_by_others_and_lead_back() -> None:
    given = arguments({"type": "object", "properties": SCHEMAS["odd names"], "required": ["$top"]})
    assert set(given.schema["properties"]) == {"top", "top_2", "x", "a_b"}
    assert dict(given.names) == {"top_2": "$top", "x": "名前", "a_b": "a b"}
    assert given.schema["required"] == ["top_2"]


@pytest.mark.parametrize(
    "given", [{"type": "string"}, {"type": "array"}, "object", 5, False, {"type": "object", "properties": "x"}]
)
def test_what_is_no_object_is_left_out_and_said(given: object) -> None:
    with pytest.raises(ToolError, match="no object"):
        arguments(given)
    with pytest.raises(ToolError, match="no object"):
        usable({"name": "x", "inputSchema": given})


def test_references_that_unfold_without_end_stay_small() -> None:
    steps = {f"S{n}": {"type": "object", "properties": {x: {"$ref": f"#/$defs/S{n + 1}"} for x in "abcd"}}
             for n in range(40)}  # fmt: skip
    found = arguments({"$ref": "#/$defs/S0", "$defs": steps}).schema
    assert refusals(found) == [] and json.dumps(found).count("properties") <= MOST_NODES
    deep: Any = {"type": "array"}
    for _ in range(200):
        deep = {"type": "array", "items": deep}
    assert refusals(arguments({"properties": {"x": deep}}).schema) == []
    wide: Any = {"properties": {"x": {"type": "string"}}}
    for _ in range(60):
        wide = {"allOf": [wide, wide]}
    assert refusals(arguments(wide).schema) == []


# What comes over the wire


def test_a_tool_is_taken_whatever_else_of_it_is_wrong() -> None:
    odd = {"name": "x", "description": 5, "title": "X", "annotations": "none", "outputSchema": {"type": "array"},
           "icons": 3, "inputSchema": {"properties": []}}  # fmt: skip
    assert usable(odd) == {"name": "x", "title": "X", "inputSchema": {"type": "object", "properties": {}}}
    whole = {"type": "object", "properties": {"x": {"type": "string", "x-mcp-header": "X"}}}
    assert usable({"name": "x", "inputSchema": whole})["inputSchema"] is whole, "the SDK looks at it, too"


@report("https://github.com/HexSleeves/tailscale-mcp/pull/101")
@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("just a text", ["just a text"]),
        (None, []),
        ({"type": "text", "text": "one"}, ["one"]),
        (["a", {"text": "b"}, None], ["a", "b"]),
        ([{"type": "html", "html": "<b>"}, {"type": "text", "text": "c"}], ['{"type": "html", "html": "<b>"}', "c"]),
        ([{"type": "text", "text": 5}], ['{"type": "text", "text": 5}']),
        ([{"type": "image", "data": "AAAA"}], ['{"type": "image", "data": "AAAA"}']),
        ({"rows": 3}, ['{"rows": 3}']),
    ],
)
def test_content_is_used_in_whatever_form_it_comes(content: object, texts: list[str]) -> None:
    assert [block["text"] for block in answered({"content": content})["content"]] == texts


def test_data_that_is_no_object_becomes_one_and_whole_blocks_stay() -> None:
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    file = {"type": "resource", "resource": {"uri": "file:///x", "text": "x"}}
    fit = answered({"content": [image, file], "structuredContent": [1], "isError": "false", "_meta": {"a": 1}})
    assert fit["content"] == [image, file] and fit["structuredContent"] == {"result": [1]}
    assert fit["isError"] is False and fit["_meta"] == {"a": 1}
    assert answered({"toolResult": {"a": 1}})["content"] == [{"type": "text", "text": '{"a": 1}'}]
    assert not is_answer({"tools": []}) and not is_answer({"role": "user", "content": {}})
