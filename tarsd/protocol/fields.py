"""JSON both ways, and reading an object's fields strictly, each with its type and bounds."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, cast

from tarsd.errors import BadRequest, TarsdError
from tarsd.protocol.limits import MAX_PATH, MAX_PATHS, MAX_QUERY


class MalformedJson(BadRequest):
    """The body is no JSON at all."""

    code = "malformed_json"
    status = 400


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
    raise ValueError(f"{name} is no JSON")


def error_json(error: TarsdError) -> dict[str, object]:
    """The body of an error reply."""
    return {"error": error.as_json()}


class Fields:
    """A JSON object whose fields are taken out one by one, each with its type and bounds checked."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self._values.get(name) is not None

    def text(self, name: str, *, default: str | None = None, limit: int = MAX_QUERY, empty: bool = False) -> str:
        """A string of at most `limit` characters; without a default it is required and, unless `empty`, not blank."""
        value = self._values.get(name)
        if value is None:
            if default is None:
                raise BadRequest(f"The field “{name}” is missing.", field=name)
            return default
        if not isinstance(value, str):
            raise BadRequest(f"The field “{name}” must be a string.", field=name)
        if default is None and not empty and not value.strip():
            raise BadRequest(f"The field “{name}” is empty.", field=name)
        return checked(value, name, limit)

    def number(self, name: str, default: float, low: float, high: float) -> float:
        """A number between `low` and `high`, both included."""
        value = self._values.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadRequest(f"The field “{name}” must be a number.", field=name)
        if not low <= value <= high:
            raise BadRequest(f"The field “{name}” must lie between {low:g} and {high:g}.", field=name)
        return float(value)

    def integer(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number between `low` and `high`, both included."""
        value = self._values.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            raise BadRequest(f"The field “{name}” must be a whole number.", field=name)
        if not low <= value <= high:
            raise BadRequest(f"The field “{name}” must lie between {low} and {high}.", field=name)
        return value

    def boolean(self, name: str, default: bool | None = False) -> bool:
        """True or false; without a default (None) it is required."""
        value = self._values.get(name)
        if value is None:
            if default is None:
                raise BadRequest(f"The field “{name}” is missing.", field=name)
            return default
        if not isinstance(value, bool):
            raise BadRequest(f"The field “{name}” must be true or false.", field=name)
        return value

    def choice(self, name: str, default: str, allowed: tuple[str, ...]) -> str:
        """One of `allowed`."""
        value = self._values.get(name)
        if value is None:
            return default
        if value not in allowed or not isinstance(value, str):
            raise BadRequest(f"The field “{name}” must be one of: {', '.join(allowed)}.", field=name)
        return value

    def texts(self, name: str, *, most: int = MAX_PATHS, limit: int = MAX_PATH) -> tuple[str, ...]:
        """A list of strings; absent means empty."""
        value = self._values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise BadRequest(f"The field “{name}” must be a list of strings.", field=name)
        if len(value) > most:
            raise BadRequest(f"The field “{name}” holds more than {most} entries.", field=name)
        return tuple(checked(item, name, limit) for item in value)

    def mapping(self, name: str) -> Mapping[str, Any]:
        """An object; absent means empty."""
        value = self._values.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise BadRequest(f"The field “{name}” must be an object.", field=name)
        return cast("Mapping[str, Any]", value)


def checked(value: str, name: str, limit: int) -> str:
    """`value`, if it is no longer than `limit` characters and can be written as UTF-8; raises `BadRequest`."""
    if len(value) > limit:
        raise BadRequest(f"The field “{name}” is longer than {limit} characters.", field=name)
    if "\0" in value:
        raise BadRequest(f"The field “{name}” holds a NUL character.", field=name)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise BadRequest(f"The field “{name}” is not valid Unicode (a lone surrogate).", field=name) from error
    return value


def query_number(value: str | None, name: str, default: int, high: int) -> int:
    """A whole number in a URL's query between 0 and `high`; raises `BadRequest`."""
    if value is None or value == "":
        return default
    number = int(value) if len(value) <= 18 and value.isascii() and value.isdigit() else -1
    if not 0 <= number <= high:
        raise BadRequest(f"The parameter “{name}” must be a whole number from 0 to {high}.", field=name)
    return number
