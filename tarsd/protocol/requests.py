"""What clients send, one frozen dataclass for each body."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from tarsd.errors import BadRequest
from tarsd.protocol.fields import Fields, checked
from tarsd.protocol.limits import (
    MAX_ID,
    MAX_MESSAGE,
    MAX_NUMBERS,
    MAX_PATH,
    MAX_QUERY,
    MAX_ROWS,
    Audience,
    MemoryKind,
    Mode,
    Writer,
)

AUDIENCES = ("person", "here", "elsewhere")


def read_audience(values: Mapping[str, Any]) -> Audience:
    """Who reads the answer, from a request's body or the parameters of its URL; raises `BadRequest`."""
    return cast("Audience", Fields(values).choice("audience", "person", AUDIENCES))


@dataclass(frozen=True)
class SearchRequest:
    """`filters` are the query syntax's own fields by name: tag, path, file, before, after, or any property."""

    query: str
    mode: Mode = "hybrid"
    limit: int = 10
    min_score: float = 0.0
    filters: Mapping[str, str] = field(default_factory=dict)
    audience: Audience = "person"

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> SearchRequest:
        """From a request body; raises `BadRequest`."""
        fields = Fields(body)
        filters = Fields(fields.mapping("filters"))
        names = list(fields.mapping("filters"))
        if len(names) > 50:
            raise BadRequest("The field “filters” holds more than 50 entries.", field="filters")
        for name in names:
            checked(name, "filters", MAX_ID)
        return cls(
            query=fields.text("query", empty=True),
            mode=cast("Mode", fields.choice("mode", "hybrid", ("hybrid", "fts", "vec"))),
            limit=fields.integer("limit", 10, 1, 200),
            min_score=fields.number("min_score", 0.0, 0.0, 1e9),
            filters={name: filters.text(name, limit=MAX_ID) for name in names if filters.has(name)},
            audience=read_audience(body),
        )


@dataclass(frozen=True)
class RelatedRequest:
    """Notes related to the note at `path`."""

    path: str
    limit: int = 10
    audience: Audience = "person"

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> RelatedRequest:
        """From a request body; raises `BadRequest`."""
        fields = Fields(body)
        return cls(fields.text("path", limit=MAX_PATH), fields.integer("limit", 10, 1, 200), read_audience(body))


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
class CheckRequest:
    """Look whether all is well; `model` false: no server of a model is asked anything."""

    model: bool = True

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> CheckRequest:
        """From a request body; raises `BadRequest`."""
        return cls(Fields(body).boolean("model", default=True))


@dataclass(frozen=True)
class VectorsRequest:
    """Vectors of passages, for the cache: the model's fingerprint, how many numbers each has, and (hash, float16)."""

    model: str
    dim: int
    rows: tuple[tuple[bytes, bytes], ...]

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> VectorsRequest:
        """From a request body; raises `BadRequest`."""
        fields = Fields(body)
        model = fields.text("model", limit=MAX_ID)
        if not re.fullmatch(r"[0-9a-f]{16}", model):
            raise BadRequest("The field “model” must be a fingerprint of 16 hex digits.", field="model")
        if not fields.has("dim"):
            raise BadRequest("The field “dim” is missing.", field="dim")
        dim, rows = fields.integer("dim", 0, 1, MAX_NUMBERS), body.get("rows")
        if not isinstance(rows, list) or not 1 <= len(rows) <= MAX_ROWS:
            raise BadRequest(f"The field “rows” must be a list of 1 to {MAX_ROWS} rows.", field="rows")
        return cls(model, dim, tuple(_row(row, dim) for row in rows))


def _row(row: object, dim: int) -> tuple[bytes, bytes]:
    """A passage's hash and its vector."""
    match row:
        case [str(hash), str(vector)] if re.fullmatch(r"[0-9a-f]{32}", hash):
            try:
                data = base64.b64decode(vector, validate=True)
            except ValueError:
                raise BadRequest("A vector in “rows” is not base64.", field="rows") from None
            if len(data) != 2 * dim:
                raise BadRequest(f"A vector in “rows” has not {dim} numbers of 2 bytes.", field="rows")
            return bytes.fromhex(hash), data
    raise BadRequest("Each of “rows” must be [32 hex digits, base64].", field="rows")


@dataclass(frozen=True)
class TurnRequest:
    """A message to be answered; `notes` are attached by path or name, `selection` is text marked in the editor.

    `selection_note` is the note that the selection is from; it is not attached, but what holds of it holds of the text.
    Without `approvals` nobody is there to be asked, and whatever needs a yes is refused. For an audience `elsewhere`
    private text is left out even if the model that answers is on this machine.
    """

    conversation: str
    message: str
    request_id: str
    notes: tuple[str, ...] = ()
    selection: str = ""
    writer: Writer = "daemon"
    approvals: bool = True
    selection_note: str = ""
    audience: Audience = "person"

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
            approvals=fields.boolean("approvals", True),
            selection_note=fields.text("selection_note", default="", limit=MAX_PATH),
            audience=read_audience(body),
        )

    def stays_here(self, local: bool) -> bool:
        """Whether nothing of the turn leaves this machine, if it is answered by a model that is `local` or not."""
        return local and self.audience != "elsewhere"


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


@dataclass(frozen=True)
class Approval:
    """The answer to a call that waits for a yes; `always` means the rest of this conversation, for this tool."""

    allow: bool
    always: bool = False

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> Approval:
        """From a request body; raises `BadRequest`."""
        fields = Fields(body)
        return cls(fields.boolean("allow", None), fields.boolean("always"))


@dataclass(frozen=True)
class WriteReport:
    """What became of a write that a client claimed: the SHA-256 of the file's bytes now, or why it failed."""

    ok: bool
    hash: str = ""
    error: str = ""

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> WriteReport:
        """From a request body; raises `BadRequest`."""
        fields = Fields(body)
        return cls(
            fields.boolean("ok", None),
            fields.text("hash", default="", limit=MAX_ID),
            fields.text("error", default="", limit=MAX_QUERY),
        )


@dataclass(frozen=True)
class RememberRequest:
    """Something to remember, a fact or a rule; `replace` is the exact line that it takes the place of.

    What nobody but a model says is `noticed`: it waits until the person takes it over in a review.
    `conversation` is where it was said, if in one.
    """

    kind: MemoryKind
    text: str
    section: str = ""
    replace: str = ""
    conversation: str = ""

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> RememberRequest:
        """From a request body; raises `BadRequest`."""
        fields = Fields(body)
        return cls(
            cast("MemoryKind", fields.choice("kind", "semantic", ("semantic", "procedural", "noticed"))),
            fields.text("text"),
            fields.text("section", default="", limit=MAX_ID),
            fields.text("replace", default=""),
            fields.text("conversation", default="", limit=MAX_ID),
        )


def read_line(body: Mapping[str, Any]) -> str:
    """The line of the memory that is to be forgotten; raises `BadRequest`."""
    return Fields(body).text("line")


@dataclass(frozen=True)
class FeedbackRequest:
    """A verdict on a turn, with the person's own words on it."""

    turn: str
    verdict: Literal["good", "wrong"]
    note: str = ""

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> FeedbackRequest:
        """From a request body; raises `BadRequest`."""
        fields = Fields(body)
        verdict = fields.choice("verdict", "", ("good", "wrong"))
        if not verdict:
            raise BadRequest("The field “verdict” is missing.", field="verdict")
        turn = fields.text("turn", limit=MAX_ID)
        return cls(turn, cast('Literal["good", "wrong"]', verdict), fields.text("note", default=""))


@dataclass(frozen=True)
class Decision:
    """What is to become of a proposal of a review; `text` replaces its own when it is edited."""

    proposal: str
    action: Literal["apply", "edit", "drop"]
    text: str = ""


@dataclass(frozen=True)
class ReviewDecisions:
    """The decisions on the proposals of one review; those that are not named stay where they are."""

    review: str
    decisions: tuple[Decision, ...]

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> ReviewDecisions:
        """From a request body; raises `BadRequest`."""
        fields = Fields(body)
        listed = body.get("decisions")
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed) or len(listed) > 1000:
            raise BadRequest("The field “decisions” must be a list of objects.", field="decisions")
        decisions = []
        for one in map(Fields, listed):
            action = one.choice("action", "", ("apply", "edit", "drop"))
            if not action:
                raise BadRequest("A decision lacks its “action”.", field="decisions")
            text = one.text("text") if action == "edit" else ""
            proposal = one.text("id", limit=MAX_ID)
            decisions.append(Decision(proposal, cast('Literal["apply", "edit", "drop"]', action), text))
        return cls(fields.text("review", limit=MAX_ID), tuple(decisions))
