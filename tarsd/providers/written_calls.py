"""Calls of tools that a model writes into its answer, in place of making them: a reply that is wholly calls is made."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any, Final

from tarsd.providers.base import ProviderEvent, Retract, StreamEnd, Text, ToolCall, ToolSpec, tool_call

MOST_HELD: Final = 40_000
"""Characters of a reply that are held back because it may be a call; longer ones are text."""

_Made = tuple[str, Any]
"""The name of a tool, and what was given as its arguments."""

_NAMES: Final = ("name", "tool", "tool_name", "function_name", "function", "action")
_GIVEN: Final = ("arguments", "parameters", "args", "input", "action_input", "tool_input")
_AROUND: Final = ("tool_calls", "tool_call", "function_call", "function", "calls")
_BESIDE: Final = ("id", "type", "call_id", "index")
_KEYS: Final = (*_NAMES, *_GIVEN, *_AROUND, *_BESIDE)
# What stands around calls, or between them, and says nothing of its own.
_MARKS: Final = (
    "<tool_call>", "</tool_call>", "<tool_calls>", "</tool_calls>", "<function_call>", "</function_call>",
    "<function_calls>", "</function_calls>", "<functioncall>", "<tools>", "</tools>", "<|tool_call|>",
    "<|/tool_call|>", "<|tool_calls|>", "<|tool_call_start|>", "<|tool_call_end|>", "[tool_calls]", "[/tool_calls]",
    "<|python_tag|>", "<|python_start|>", "<|python_end|>", "<|tool_calls_section_begin|>",
    "<|tool_calls_section_end|>", "<|tool_call_begin|>", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<|start|>assistant", "<|call|>", "<|return|>", "<|end|>",
    "<|eom_id|>", "<|eot_id|>", "<|im_end|>", "</s>", "```", ";", ",",
)  # fmt: skip
_CLOSING: Final = ("<|call|>", "<|return|>", "<|end|>", "<|eom_id|>", "<|eot_id|>", "<|im_end|>", "</s>", ";", ",")
_OPENING: Final = tuple(mark for mark in _MARKS if mark not in _CLOSING and not mark.startswith(("</", "[/")))
_OPENERS: Final = (*_OPENING, "<function=", "<|channel|>commentary to=", "<|channel|>analysis to=", "to=functions.")
_MARK = re.compile(rf"({'|'.join(map(re.escape, _MARKS))}) *", re.IGNORECASE | re.ASCII)
_LANGUAGE = re.compile(r"(?:json|tool_calls?|tool_code|function_call|python|py|xml)?[ \t]*(?:\n|\Z)")
_NAME = r"(?:functions\.|default_api\.)?(?P<name>[\w.-]+?)"
# A name in front of its arguments, which are JSON.
_NAMED = re.compile(
    rf"<function={_NAME}>\s*(?=\{{)"
    rf"|(?:<\|channel\|>\w+ )?to={_NAME.replace('name', 'to')}\s*(?:<\|channel\|>\w+)?\s*"
    r"(?:<\|constrain\|>)?\s*(?:json)?\s*<\|message\|>"
    rf"|(?:function<｜tool▁sep｜>)?{_NAME.replace('name', 'plain')}(?::\d+)?\s*"
    r"(?:\[CALL_ID\]\w+)?(?:\[ARGS\]|<\|tool_call_argument_begin\|>|<｜tool▁sep｜>|\n```json\n|\n)?\s*(?=\{)"
)
_XML = re.compile(rf"<function={_NAME}>(?P<inner>.*?)</function>", re.DOTALL)
_XML_PARTS = re.compile(r"\s*<parameter=(?P<key>[^>]+)>\n?(?P<value>.*?)\n?</parameter>\s*", re.DOTALL)
_GLM = re.compile(rf"{_NAME}\s*(?P<inner>(?:<arg_key>.*?</arg_value>\s*)+)(?=</tool_call>|\Z)", re.DOTALL)
_GLM_PARTS = re.compile(
    r"\s*<arg_key>(?P<key>.*?)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>\s*", re.DOTALL
)  # fmt: skip
_JSON = json.JSONDecoder(strict=False)
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,), "integer": (int, float), "number": (int, float), "boolean": (bool,), "array": (list,),
    "object": (dict,), "null": (type(None),),
}  # fmt: skip


async def made(
    events: AsyncGenerator[ProviderEvent, None], tools: Sequence[ToolSpec]
) -> AsyncGenerator[ProviderEvent, None]:
    """The events of a stream, in which a reply that is nothing but calls of `tools` has become these calls.

    Text is held back only as long as it may be calls from its first character on.
    """
    held, holding, called = "", bool(tools), False
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Text) and holding:
                held += event.text
                if may_be_calls(held, tools):
                    continue
                event, held, holding = Text(held), "", False
            elif isinstance(event, Retract):
                held, holding = "", bool(tools)
            elif isinstance(event, ToolCall):
                called = True
            elif isinstance(event, StreamEnd):
                calls = calls_in(held, tools) if event.stop_reason == "stop" and not called else []
                for call in calls:
                    yield call
                if calls:
                    held, event = "", StreamEnd("tools")  # without `raw`: the server knows nothing of these calls
            if held and isinstance(event, ToolCall | StreamEnd):
                yield Text(held)
                held, holding = "", False
            yield event
    if held:
        yield Text(held)


def may_be_calls(text: str, tools: Sequence[ToolSpec]) -> bool:
    """Whether `text`, the beginning of a reply, may become nothing but calls of `tools`."""
    text = text.lstrip()
    if len(text) > MOST_HELD:
        return False
    low = text.lower()
    if not text or any(opener.startswith(low) for opener in _OPENERS):
        return True
    if low.startswith("```"):
        first, line_end, _ = low[3:].partition("\n")
        if not line_end:
            return any(word.startswith(first.strip()) for word in ("json", "tool_calls", "tool_code", "python", "xml"))
        return bool(_LANGUAGE.fullmatch(first + "\n")) and may_be_calls(text[4 + len(first) :], tools)
    if any(low.startswith(opener) for opener in _OPENERS):
        return True
    if low.startswith("{"):
        key = re.match(r'\{\s*(?:"(?P<key>\w*)(?P<closed>")?|\Z)', low)
        given = key["key"] if key else None
        if key is None:
            return False
        return given is None or (given in _KEYS if key["closed"] else any(word.startswith(given) for word in _KEYS))
    if low.startswith("["):
        inner = text[1:].lstrip()
        return not inner or (inner[0] == "{" and may_be_calls(inner, tools)) or _names_a_tool(inner, tools)
    return _names_a_tool(text, tools)


def _names_a_tool(text: str, tools: Sequence[ToolSpec]) -> bool:
    """Whether `text` is the beginning of a tool's name, or that name and what follows it in a call."""
    for start in ("", "functions.", "default_api.", "print(", "print(default_api."):
        for tool in tools:
            name = start + tool.name
            if name.startswith(text) or re.match(re.escape(name) + r"(?:\Z|[({\[:]|\.call\(|\n?\{|<arg_key>)", text):
                return True
    return False


def calls_in(text: str, tools: Sequence[ToolSpec]) -> list[ToolCall]:
    """The calls that `text` wholly consists of, or [] if any of it is something else, or fits no tool."""
    specs = {tool.name: tool for tool in tools}
    found: list[_Made] = []
    text = text.strip()
    at = 0
    with suppress(ValueError, RecursionError, SyntaxError, TypeError, MemoryError):
        while at < len(text):
            if mark := _MARK.match(text, at):
                at = mark.end()
                if mark[1] == "```" and (language := _LANGUAGE.match(text, at)):
                    at = language.end()
            else:
                size = _one(text[at:], specs, found)
                if not size:
                    return []
                at += size
            while text[at : at + 1].isspace():
                at += 1
        calls = [_checked(name, given, specs) for name, given in found]
        return [call for call in calls if call is not None] if None not in calls else []
    return []


def _one(text: str, specs: Mapping[str, ToolSpec], found: list[_Made]) -> int:
    """Adds what the beginning of `text` calls to `found`; how many characters that is, 0 for none."""
    for form, parts in ((_XML, _XML_PARTS), (_GLM, _GLM_PARTS)):
        if (match := form.match(text)) and not match["inner"].strip().startswith("{"):
            if parts.sub("", match["inner"]).strip():
                return 0
            schema = specs[match["name"]].schema if match["name"] in specs else {}
            given = {part["key"].strip(): part["value"] for part in parts.finditer(match["inner"])}
            found.append((match["name"], {key: _typed(value, key, schema) for key, value in given.items()}))
            return match.end()
    if match := _NAMED.match(text):
        given, end = _JSON.raw_decode(text, match.end())
        found.append((match["name"] or match["to"] or match["plain"], given))
        closing = "</function>"
        return end + (len(closing) if text.startswith(closing, end) else 0)
    if text[0] == "{" or re.match(r"\[\s*\{", text):
        value, end = _JSON.raw_decode(text)
        found += _from_json(value)
        return end
    return _python(text, found)


def _from_json(value: object) -> list[_Made]:
    """The calls in a JSON value. Raises ValueError when it is anything else."""
    if isinstance(value, list) and value:
        return [made for item in value for made in _from_json(item)]
    if not isinstance(value, dict) or not set(value) <= set(_KEYS):
        raise ValueError("no call")
    if around := next((key for key in _AROUND if isinstance(value.get(key), dict | list)), None):
        return _from_json(value[around])
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
    given = next((value[key] for key in _GIVEN if key in value), None)
    if name is None or given is None:
        raise ValueError("no call")
    return [(name.removeprefix("functions."), given)]


def _python(text: str, found: list[_Made]) -> int:
    """As `_one`, for calls as Python writes them: one, a list of them, or one on each line."""
    end = next((at for mark in _MARKS[:-2] if (at := text.find(mark)) > 0), len(text))
    for statement in ast.parse(text[:end].strip()).body:
        value = statement.value if isinstance(statement, ast.Expr) else None
        for call in value.elts if isinstance(value, ast.List) else [value]:
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "print" and len(call.args) == 1:
                call = call.args[0]
            if not isinstance(call, ast.Call) or call.args or any(word.arg is None for word in call.keywords):
                return 0
            name = ast.unparse(call.func).removeprefix("default_api.").removeprefix("functions.").removesuffix(".call")
            found.append((name, {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}))
    return end


def _typed(value: str, key: str, schema: Mapping[str, Any]) -> object:
    """A value that was written without quotes, by the type that the schema gives it."""
    if "string" in _types_of(schema, key):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _types_of(schema: Mapping[str, Any], key: str) -> list[str]:
    """The types that a schema allows for a property; none where it does not say it in one word or a list."""
    properties = schema.get("properties")
    about = properties.get(key) if isinstance(properties, Mapping) else None
    types = about.get("type") if isinstance(about, Mapping) else None
    return [str(kind) for kind in types] if isinstance(types, list) else [types] if isinstance(types, str) else []


def _checked(name: object, given: object, specs: Mapping[str, ToolSpec]) -> ToolCall | None:
    """The call, if there is such a tool and its arguments are an object that fits."""
    spec = specs.get(name) if isinstance(name, str) else None
    call = tool_call("", name, given)
    if spec is None or call.problem:
        return None
    properties, required = spec.schema.get("properties"), spec.schema.get("required")
    known = properties if isinstance(properties, Mapping) else {}
    if not set(required if isinstance(required, list) else ()) <= set(call.arguments):
        return None
    if known and not spec.schema.get("additionalProperties") and not set(call.arguments) <= set(known):
        return None
    for key, value in call.arguments.items():
        allowed = [kind for word in _types_of(spec.schema, key) for kind in _TYPES.get(word, ())]
        if allowed and (not isinstance(value, tuple(allowed)) or (isinstance(value, bool) and bool not in allowed)):
            return None
    return call
