"""Notes as resources: the recent ones as a list, any of them by its address, and the completion of its path."""

from __future__ import annotations

from urllib.parse import quote, unquote

from mcp import types

from tarsd.errors import BadRequest
from tarsd.mcp_stdio.link import DaemonLink
from tarsd.mcp_stdio.results import MOST_BYTES, cut, name, place
from tarsd.protocol import MAX_PATH

SCHEME = "tarsd://note/"
TEMPLATE = SCHEME + "{path}"
MARKDOWN = "text/markdown"
PAGE = 50
MOST = 200
"""No more recent notes are listed, on all pages together; the others are found by searching."""

TEMPLATES = types.ListResourceTemplatesResult(
    resource_templates=[
        types.ResourceTemplate(
            uri_template=TEMPLATE,
            name="note",
            title="A note of the vault",
            description="A note by its path, percent-encoded, or by a name that leads to it as in [[Name]]",
            mime_type=MARKDOWN,
        )
    ]
)

COMPLETED = 20
ABOUT = 5_000
"""Bytes for what stands around a note's text; its address alone may take three for each of its path."""


def listing(link: DaemonLink, cursor: str | None) -> types.ListResourcesResult:
    """A page of the notes that were changed last. Raises `BadRequest` for a cursor that is not ours, `ClientError`."""
    start = _offset(cursor)
    end = min(start + PAGE, MOST)
    notes = link.get("/v1/notes", recent=end + 1)["notes"]
    return types.ListResourcesResult(
        resources=[
            types.Resource(
                uri=address(place(note)),
                name=place(note),
                title=name(note["title"]),
                mime_type=MARKDOWN,
            )
            for note in notes[start:end]
        ],
        next_cursor=str(end) if len(notes) > end < MOST else None,
    )


def _offset(cursor: str | None) -> int:
    if cursor is None:
        return 0
    start = int(cursor) if cursor.isascii() and cursor.isdigit() and len(cursor) < 6 else -1
    if not 0 < start < MOST or start % PAGE:
        raise BadRequest("Unknown cursor.", "List the resources from the start.")
    return start


def read(link: DaemonLink, uri: str) -> types.ReadResourceResult:
    """A note as a resource; one that is too long ends with a word on how to read on.

    Raises `BadRequest` for an address of another kind, and `ClientError`.
    """
    text, is_cut = cut(str(link.note(_path(uri))["text"]), MOST_BYTES - ABOUT)
    if is_cut:
        text += f"\n\n(Cut here: the tool read_note reads on with start_line={text.count(chr(10)) + 1}.)"
    contents = types.TextResourceContents(uri=uri, mime_type=MARKDOWN, text=text)
    return types.ReadResourceResult(contents=[contents])


def address(path: str) -> str:
    """The address of a note."""
    return SCHEME + quote(path, safe="")


def _path(uri: str) -> str:
    encoded = uri.removeprefix(SCHEME)
    try:
        path = unquote(encoded, errors="strict")
    except UnicodeDecodeError:
        path = ""
    if encoded == uri or not path.strip() or len(path) > MAX_PATH:
        raise BadRequest("This is not the address of a note.", f"It has the form {TEMPLATE}, the path percent-encoded.")
    return path


def complete(link: DaemonLink, begun: str) -> types.Completion:
    """Paths with what was typed in them, most recently changed first. Raises `ClientError`."""
    if len(begun) > MAX_PATH:
        return types.Completion(values=[])
    matches = link.get("/v1/notes", recent=COMPLETED, name=begun.strip())
    return types.Completion(
        values=[place(note) for note in matches["notes"]],
        total=matches["total"],
        has_more=matches["total"] > len(matches["notes"]),
    )
