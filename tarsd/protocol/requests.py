"""What clients send, one struct for each body: declared here, checked by `RequestBody.read`."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

import msgspec
from msgspec import Meta, field

from tarsd.errors import BadRequest
from tarsd.protocol.codec import FILLED, PLAIN, convert
from tarsd.protocol.limits import (
    MAX_ID,
    MAX_MESSAGE,
    MAX_NUMBERS,
    MAX_PATH,
    MAX_PATHS,
    MAX_QUERY,
    MAX_ROWS,
    Audience,
    MemoryKind,
    Mode,
    Writer,
)

Id = Annotated[str, Meta(max_length=MAX_ID, pattern=FILLED)]
Path = Annotated[str, Meta(max_length=MAX_PATH, pattern=FILLED)]
Query = Annotated[str, Meta(max_length=MAX_QUERY, pattern=FILLED)]
Message = Annotated[str, Meta(max_length=MAX_MESSAGE, pattern=FILLED)]
OptionalId = Annotated[str, Meta(max_length=MAX_ID, pattern=PLAIN)]
OptionalPath = Annotated[str, Meta(max_length=MAX_PATH, pattern=PLAIN)]
OptionalQuery = Annotated[str, Meta(max_length=MAX_QUERY, pattern=PLAIN)]
OptionalMessage = Annotated[str, Meta(max_length=MAX_MESSAGE, pattern=PLAIN)]
"""Texts by their bounds; the optional ones may be blank."""

Limit = Annotated[int, Meta(ge=1, le=200)]
Expression = Annotated[str, Meta(max_length=20_000, pattern=PLAIN)]


class RequestBody(msgspec.Struct, frozen=True):
    """A body, read strictly."""

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> Self:
        """From a request body; raises `BadRequest`, naming the field."""
        return convert(body, cls)


class _Asked(RequestBody, frozen=True):
    audience: Audience = "person"


def read_audience(values: Mapping[str, Any]) -> Audience:
    """Who reads the answer, from the parameters of a URL; raises `BadRequest`."""
    return _Asked.read(values).audience


class SearchRequest(RequestBody, frozen=True):
    """`filters` are the query syntax's own fields by name: tag, path, file, before, after, on, changed.

    `where` is a condition in the language of Obsidian's Bases: only notes of the vault of which it is true are found.
    """

    query: OptionalQuery
    mode: Mode = "hybrid"
    limit: Limit = 10
    min_score: Annotated[float, Meta(ge=0, le=10**9)] = 0.0
    filters: Annotated[dict[OptionalId, Id], Meta(max_length=50)] = {}
    where: Expression = ""
    audience: Audience = "person"


RowLimit = Annotated[int, Meta(ge=0, le=100_000)]
Expressions = Annotated[tuple[Expression, ...], Meta(max_length=100)]


class QueryRequest(RequestBody, frozen=True):
    """Notes, tasks or list items by a condition in the language of Obsidian's Bases; or a view of a base.

    `base` is the path of a .base file, or of a note with blocks of one or an embedded one, `text` a base itself; `this`
    the path of the note that it is shown in. `limit` 0 is none.
    """

    rows: Literal["notes", "tasks", "items"] = "notes"
    where: Expression = ""
    columns: Expressions = ()
    sort: Expressions = ()
    group: Expression = ""
    summaries: Annotated[dict[Expression, Id], Meta(max_length=100)] = {}
    limit: RowLimit = 0
    base: OptionalPath = ""
    text: OptionalMessage = ""
    view: OptionalId = ""
    this: OptionalPath = ""
    audience: Audience = "person"


class TasksRequest(RequestBody, frozen=True):
    """Tasks by their state and by when they are due: today, week, a day, before:DAY or after:DAY."""

    state: Literal["open", "done", "overdue", "cancelled", "all"] = "open"
    due: OptionalId = ""
    folder: OptionalPath = ""
    tag: OptionalId = ""
    words: OptionalQuery = ""
    limit: RowLimit = 0
    audience: Audience = "person"


class DigestRequest(RequestBody, frozen=True):
    """What changed, what is due, what was done, and notes of this day; `limit` is for each part, 0 is none."""

    limit: RowLimit = 0
    audience: Audience = "person"


class RelatedRequest(RequestBody, frozen=True):
    """Notes related to the note at `path`."""

    path: Path
    limit: Limit = 10
    audience: Audience = "person"


class WhyRequest(RequestBody, frozen=True):
    """Why the note at `path` is, or is not, found for `query`."""

    path: Path
    query: Query


class ReindexRequest(RequestBody, frozen=True):
    """Look at `paths` (files or folders) again, or at everything when there are none; `full` reads unchanged files."""

    paths: Annotated[tuple[OptionalPath, ...], Meta(max_length=MAX_PATHS)] = ()
    full: bool = False


class CheckRequest(RequestBody, frozen=True):
    """Look whether all is well; `model` false: no server of a model is asked anything."""

    model: bool = True


class VectorsRequest(RequestBody, frozen=True):
    """Vectors of passages, for the cache: the model's fingerprint, how many numbers each has, and (hash, float16)."""

    model: Id
    dim: Annotated[int, Meta(ge=1, le=MAX_NUMBERS)]
    rows: tuple[tuple[bytes, bytes], ...]

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> Self:
        """From a request body, where a row is [32 hex digits, base64]; raises `BadRequest`."""
        head, rows = convert({**body, "rows": ()}, cls), body.get("rows")
        if not re.fullmatch(r"[0-9a-f]{16}", head.model):
            raise BadRequest("The field “model” must be a fingerprint of 16 hex digits.", field="model")
        if not isinstance(rows, list) or not 1 <= len(rows) <= MAX_ROWS:
            raise BadRequest(f"The field “rows” must be a list of 1 to {MAX_ROWS} rows.", field="rows")
        return cls(head.model, head.dim, tuple(_row(row, head.dim) for row in rows))


def _row(row: object, dim: int) -> tuple[bytes, bytes]:
    """A passage's hash and its vector."""
    match row:
        case [str(hash), str(vector)] if re.fullmatch(r"[0-9a-f]{32}", hash):
            try:
                data = base64.b64decode(vector, validate=True)
            except ValueError:
                raise BadRequest("A vector in “rows” is not base64.", field="rows") from None
            if len(data) != 2 * dim:
                raise BadRequest(f"A vector in “rows” does not have {dim} numbers of 2 bytes.", field="rows")
            return bytes.fromhex(hash), data
    raise BadRequest("Each row must be [32 hex digits, base64].", field="rows")


class TurnRequest(RequestBody, frozen=True):
    """A message to be answered; `notes` are attached by path or name, `selection` is text marked in the editor.

    `selection_note` is the note that the selection is from; it is not attached, but what holds of it holds of the text.
    Without `approvals` nobody is there to be asked, and whatever needs a yes is refused. For an audience `elsewhere`
    private text is left out even if the model that answers is on this machine. With `stop_when_left` the turn is
    stopped once nobody has read its events for some seconds; without, it runs on, and its reader may come back. `save`
    makes a note of the conversation even if it is this one question, answered without a model.
    """

    conversation: Id
    message: Message
    request_id: Id
    notes: Annotated[tuple[OptionalPath, ...], Meta(max_length=50)] = ()
    selection: OptionalMessage = ""
    writer: Writer = "daemon"
    approvals: bool = True
    selection_note: OptionalPath = ""
    audience: Audience = "person"
    stop_when_left: bool = False
    save: bool = False

    def asking(self, message: str, notes: Sequence[str]) -> TurnRequest:
        """The same with another message and other notes: those of a prompt that it called."""
        return msgspec.structs.replace(self, message=message, notes=tuple(notes))


class ChatRequest(RequestBody, frozen=True):
    """The plain form of a turn."""

    message: Message
    # an empty id would make a conversation that no URL leads to
    conversation: Id = field(default="default", name="conversation_id")


class RenameRequest(RequestBody, frozen=True):
    """The new title of a conversation."""

    title: Id


class Approval(RequestBody, frozen=True):
    """The answer to a call that waits for a yes; `always` means the rest of this conversation, for this tool."""

    allow: bool
    always: bool = False


class WriteReport(RequestBody, frozen=True):
    """What became of a write that a client claimed: the SHA-256 of the file's bytes now, or why it failed."""

    ok: bool
    hash: OptionalId = ""
    error: OptionalQuery = ""


class RememberRequest(RequestBody, frozen=True):
    """Something to remember, a fact or a rule; `replace` is the exact line that it takes the place of.

    What nobody but a model says is `noticed`: it waits until the person takes it over in a review.
    `conversation` is where it was said, if in one.
    """

    text: Query
    kind: MemoryKind = "semantic"
    section: OptionalId = ""
    replace: OptionalQuery = ""
    conversation: OptionalId = ""


class ForgetRequest(RequestBody, frozen=True):
    """The line of the memory that is to be forgotten."""

    line: Query


class PromptAddRequest(RequestBody, frozen=True):
    """One of the prompts that are offered, by its name: it becomes a note."""

    name: Id


class TaskChangeRequest(RequestBody, frozen=True):
    """A task to be done, at a `line` of a `note`, or to be added, with its `text` and the day on which it is `due`.

    Without a `note`, it is added to today's; `heading` is the section that it goes to. Nothing is changed but with the
    `yes` that the reply to the same request had, which is for the change that was shown.
    """

    action: Literal["done", "add"]
    note: OptionalPath = ""
    line: Annotated[int, Meta(ge=0, le=10**9)] = 0
    text: OptionalQuery = ""
    heading: OptionalQuery = ""
    due: OptionalId = ""
    yes: OptionalId = ""
    audience: Audience = "person"


class FeedbackRequest(RequestBody, frozen=True):
    """A verdict on a turn, with the person's own words on it."""

    turn: Id
    verdict: Literal["good", "wrong"]
    note: OptionalQuery = ""


class Decision(RequestBody, frozen=True):
    """What is to become of a proposal of a review; `text` replaces its own when it is edited."""

    proposal: Id = field(name="id")
    action: Literal["apply", "edit", "drop"]
    text: OptionalQuery = ""

    def __post_init__(self) -> None:
        if self.action == "edit" and not self.text.strip():
            raise BadRequest("The field “text” is empty.", field="text")


class ReviewDecisions(RequestBody, frozen=True):
    """The decisions on the proposals of one review; those that are not named stay where they are."""

    review: Id
    decisions: Annotated[tuple[Decision, ...], Meta(max_length=1000)]
