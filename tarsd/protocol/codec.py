"""JSON both ways, and objects of it as the declared type of a request."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin

import msgspec

from tarsd.errors import BadRequest, TarsdError

FILLED = r"(?s)\A(?=.*\S)[^\x00\ud800-\udfff]*\Z"
PLAIN = r"(?s)\A[^\x00\ud800-\udfff]*\Z"
"""Patterns of text that may be written anywhere: without NUL and lone surrogates, the first one not blank either."""

_WANTED = {str: "a string", int: "a whole number", float: "a number", bool: "true or false", tuple: "a list"}

S = TypeVar("S", bound=msgspec.Struct)


class MalformedJson(BadRequest, code="malformed_json", status=400):
    """The body is no JSON at all."""


def encode(value: object) -> bytes:
    """`value` as UTF-8 JSON on one line; NaN and infinities become null, lone surrogates U+FFFD."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except ValueError:  # NaN, or (UnicodeEncodeError) a lone surrogate
        return json.dumps(_clean(value), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _clean(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, Mapping):
        return {_clean(str(key)): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value


def decode(raw: bytes) -> dict[str, Any]:
    """The JSON object in `raw`; an empty body is an empty object. Raises `MalformedJson`, or `BadRequest`."""
    if not raw.strip():
        return {}
    try:
        value = json.loads(raw.decode("utf-8-sig"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise MalformedJson("The body is not valid UTF-8.", "Send JSON encoded as UTF-8.") from error
    except RecursionError as error:
        raise MalformedJson("The JSON is nested too deeply.") from error
    except ValueError as error:  # JSONDecodeError, and integers of thousands of digits
        place = f" at line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise MalformedJson(f"The body is not valid JSON{place}.") from error
    if not isinstance(value, dict):
        raise BadRequest("The body must be a JSON object.", 'Send an object such as {"query": "tea"}.')
    return cast("dict[str, Any]", value)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def error_json(error: TarsdError) -> dict[str, object]:
    """The body of an error reply."""
    return {"error": error.as_json()}


def convert(values: Mapping[str, Any], kind: type[S]) -> S:
    """`values` as this struct: null means absent, unknown fields are ignored. Raises `BadRequest`, naming the field."""
    given = {}
    for name in kind.__struct_encode_fields__:
        value = values.get(name)
        if isinstance(value, Mapping):
            given[name] = {key: item for key, item in value.items() if item is not None}
        elif value is not None:
            given[name] = value
    try:
        return msgspec.convert(given, kind)
    except ValueError as error:
        _check_fields(kind, given)
        raise BadRequest("A name in the request is not valid Unicode (a lone surrogate).") from error


def _check_fields(kind: type[msgspec.Struct], values: Mapping[str, Any]) -> None:
    """Raise `BadRequest` for the first field that msgspec refuses; its own messages speak of Python's types."""
    for field in msgspec.structs.fields(kind):
        name = field.encode_name
        if name in values:
            _check(name, field.type, values[name])
        elif field.required:
            raise BadRequest(f"The field “{name}” is missing.", field=name)


def _check(name: str, kind: Any, value: Any, subject: str = "The field") -> None:
    try:
        msgspec.convert(value, kind)
        return
    except ValueError:
        declared, limits, *_ = get_args(kind) if get_origin(kind) is Annotated else (kind, msgspec.Meta())
    base, inner = get_origin(declared) or declared, get_args(declared)
    most = limits.max_length
    if isinstance(value, list | dict) and most is not None and len(value) > most:
        raise BadRequest(f"{subject} “{name}” has more than {most} entries.", field=name)
    if base is dict and isinstance(value, dict):
        for key, item in value.items():
            _check(name, inner[0], key, "A key of")
            _check(key, inner[1], item)
    elif base is tuple and isinstance(value, list):
        for item in value:
            _check(name, inner[0], item, "One of")
    elif isinstance(base, type) and issubclass(base, msgspec.Struct) and isinstance(value, dict):
        _check_fields(base, value)
    raise BadRequest(f"{subject} “{name}” {_fault(base, inner, limits, value)}.", field=name)


def _fault(base: Any, choices: Sequence[str], limits: msgspec.Meta, value: object) -> str:
    """What is wrong with a value, as the end of a sentence."""
    if base is Literal:
        return f"must be one of: {', '.join(choices)}"
    if base is str and isinstance(value, str):
        if limits.pattern == FILLED and not value.strip():
            return "is empty"
        if limits.max_length is not None and len(value) > limits.max_length:
            return f"is longer than {limits.max_length} characters"
        return "contains a NUL character or a lone surrogate"
    if base in (int, float) and isinstance(value, (int, base)) and not isinstance(value, bool):
        return f"must be between {limits.ge} and {limits.le}"
    return f"must be {_WANTED.get(base, 'an object')}"


def query_number(value: str | None, name: str, default: int, high: int) -> int:
    """A whole number in a URL's query between 0 and `high`; raises `BadRequest`."""
    if value is None or value == "":
        return default
    number = int(value) if len(value) <= 18 and value.isascii() and value.isdigit() else -1
    if not 0 <= number <= high:
        raise BadRequest(f"The parameter “{name}” must be a whole number from 0 to {high}.", field=name)
    return number
