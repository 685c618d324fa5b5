"""The words on the socket: routes, requests, events and their JSON, version 1.

A request is read once, strictly, into a frozen dataclass: a wrong type or size is a `BadRequest` naming the field,
an unknown field is ignored. Replies are plain JSON made by `encode`, which no value can break.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, cast

from tarsd.errors import BadRequest, TarsdError

PROTOCOL: Final = 1
HEARTBEAT_S: Final = 15.0
MAX_BODY: Final = 8 * 1024 * 1024
MAX_QUERY: Final = 10_000
MAX_MESSAGE: Final = 200_000
MAX_ID: Final = 200
MAX_PATH: Final = 4_096
MAX_PATHS: Final = 10_000
MAX_WAIT_S: Final = 60

Mode = Literal["hybrid", "fts", "vec"]
Writer = Literal["client", "daemon"]
EventType = Literal[
    "queued", "retrieved", "token", "thinking", "tool", "approval", "write", "written", "usage", "done", "failed"
]
LAST_EVENTS: Final = frozenset({"done", "failed"})


class Route(NamedTuple):
    """One line of the socket's table of contents; `name` is the handler's name in `server`."""

    method: str
    path: str
    name: str


ROUTES: Final[tuple[Route, ...]] = (
    Route("GET", "/v1/hello", "hello"),
    Route("GET", "/v1/status", "status"),
    Route("POST", "/v1/reindex", "reindex"),
    Route("POST", "/v1/search", "search"),
    Route("POST", "/v1/related", "related"),
    Route("POST", "/v1/why", "why"),
    Route("POST", "/v1/turns", "start_turn"),
    Route("GET", "/v1/turns/{turn}/events", "turn_events"),
    Route("POST", "/v1/turns/{turn}/stop", "stop_turn"),
    Route("POST", "/v1/turns/{turn}/approvals/{call}", "approve"),
    Route("GET", "/v1/conversations", "conversations"),
    Route("GET", "/v1/conversations/{conversation}", "conversation"),
    Route("PATCH", "/v1/conversations/{conversation}", "rename_conversation"),
    Route("DELETE", "/v1/conversations/{conversation}", "delete_conversation"),
    Route("GET", "/v1/notes", "notes"),
    Route("GET", "/v1/notes/{path:.*}", "note"),
    Route("GET", "/v1/models", "models"),
    Route("POST", "/v1/shutdown", "shutdown"),
    Route("POST", "/chat", "plain_chat"),
    Route("GET", "/conversations", "conversations"),
    Route("DELETE", "/conversations/{conversation}", "delete_conversation"),
    Route("POST", "/index", "plain_index"),
)

FEATURES: Final = ("search", "related", "why", "turns", "long-poll", "conversations", "notes")


class MalformedJson(BadRequest):
    """The body is no JSON at all."""

    code = "malformed_json"
    status = 400


# ------------------------------------------------------------------------------------------------ JSON, both ways


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


# ------------------------------------------------------------------------------------------------ reading fields


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
        return _checked(value, name, limit)

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
        return tuple(_checked(item, name, limit) for item in value)

    def mapping(self, name: str) -> Mapping[str, Any]:
        """An object; absent means empty."""
        value = self._values.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise BadRequest(f"The field “{name}” must be an object.", field=name)
        return cast("Mapping[str, Any]", value)


def _checked(value: str, name: str, limit: int) -> str:
    if len(value) > limit:
        raise BadRequest(f"The field “{name}” is longer than {limit} characters.", field=name)
    if "\0" in value:
        raise BadRequest(f"The field “{name}” holds a NUL character.", field=name)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise BadRequest(f"The field “{name}” is not valid Unicode (a lone surrogate).", field=name) from error
    return value


# ------------------------------------------------------------------------------------------------ requests


@dataclass(frozen=True)
class SearchRequest:
    """`filters` are the query syntax's own fields by name: tag, path, file, before, after, or any property."""

    query: str
    mode: Mode = "hybrid"
    limit: int = 10
    min_score: float = 0.0
    filters: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> SearchRequest:
        """From a request body; raises `BadRequest`."""
        fields = Fields(body)
        filters = Fields(fields.mapping("filters"))
        names = list(fields.mapping("filters"))
        if len(names) > 50:
            raise BadRequest("The field “filters” holds more than 50 entries.", field="filters")
        for name in names:
            _checked(name, "filters", MAX_ID)
        return cls(
            query=fields.text("query", empty=True),
            mode=cast("Mode", fields.choice("mode", "hybrid", ("hybrid", "fts", "vec"))),
            limit=fields.integer("limit", 10, 1, 200),
            min_score=fields.number("min_score", 0.0, 0.0, 1e9),
            filters={name: filters.text(name, limit=MAX_ID) for name in names if filters.has(name)},
        )


@dataclass(frozen=True)
class RelatedRequest:
    """Notes related to the note at `path`."""

    path: str
    limit: int = 10

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> RelatedRequest:
        """From a request body; raises `BadRequest`."""
        fields = Fields(body)
        return cls(fields.text("path", limit=MAX_PATH), fields.integer("limit", 10, 1, 200))


@dataclass(frozen=True)
class WhyRequest:
    """Why the note at `path` is, or is not, found for `query`."""

    path: str
    query: str

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> WhyRequest:
        """From a request body; raises `BadRequest`."""
        fields = Fields(body)
        return cls(fields.text("path", limit=MAX_PATH), fields.text("query"))


@dataclass(frozen=True)
class ReindexRequest:
    """Look at `paths` (files or folders) again, or at everything when there are none; `full` reads unchanged files."""

    paths: tuple[str, ...] = ()
    full: bool = False

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> ReindexRequest:
        """From a request body; raises `BadRequest`."""
        fields = Fields(body)
        return cls(fields.texts("paths"), fields.boolean("full"))


@dataclass(frozen=True)
class TurnRequest:
    """A message to be answered; `notes` are attached by path or name, `selection` is text marked in the editor."""

    conversation: str
    message: str
    request_id: str
    notes: tuple[str, ...] = ()
    selection: str = ""
    writer: Writer = "daemon"

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> TurnRequest:
        """From a request body; raises `BadRequest`."""
        fields = Fields(body)
        return cls(
            conversation=fields.text("conversation", limit=MAX_ID),
            message=fields.text("message", limit=MAX_MESSAGE),
            request_id=fields.text("request_id", limit=MAX_ID),
            notes=fields.texts("notes", most=50),
            selection=fields.text("selection", default="", limit=MAX_MESSAGE),
            writer=cast("Writer", fields.choice("writer", "daemon", ("client", "daemon"))),
        )


@dataclass(frozen=True)
class ChatRequest:
    """The plain form of a turn."""

    conversation: str
    message: str

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> ChatRequest:
        """From a request body; raises `BadRequest`."""
        fields = Fields(body)
        # an empty id would make a conversation that no URL leads to
        named = fields.has("conversation_id")
        conversation = fields.text("conversation_id", limit=MAX_ID) if named else "default"
        return cls(conversation, fields.text("message", limit=MAX_MESSAGE))


def read_title(body: Mapping[str, Any]) -> str:
    """The new title of a conversation; raises `BadRequest`."""
    return Fields(body).text("title", limit=MAX_ID).strip()


def read_allow(body: Mapping[str, Any]) -> bool:
    """The answer to an approval; raises `BadRequest`."""
    return Fields(body).boolean("allow", None)


# ------------------------------------------------------------------------------------------------ events


@dataclass(frozen=True)
class Event:
    """One numbered thing that happened in a turn; `seq` starts at 1 and has no gaps."""

    seq: int
    type: EventType
    data: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """`{seq, type, …data}`, the form on the wire and in the log."""
        return {"seq": self.seq, "type": self.type, **self.data}

    @property
    def last(self) -> bool:
        """Whether a turn ends with this."""
        return self.type in LAST_EVENTS


def read_event(value: Mapping[str, Any]) -> Event:
    """The inverse of `Event.as_json`, for the log's own lines; raises KeyError or TypeError on anything else."""
    data = {key: item for key, item in value.items() if key not in ("seq", "type")}
    return Event(int(value["seq"]), value["type"], data)


def query_number(value: str | None, name: str, default: int, high: int) -> int:
    """A whole number in a URL's query between 0 and `high`; raises `BadRequest`."""
    if value is None or value == "":
        return default
    number = int(value) if len(value) <= 18 and value.isascii() and value.isdigit() else -1
    if not 0 <= number <= high:
        raise BadRequest(f"The parameter “{name}” must be a whole number from 0 to {high}.", field=name)
    return number
