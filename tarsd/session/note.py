"""A conversation as a note: begun with its first turn, and one block more at the end with every other.

Whatever questions and replies hold, each turn stays a section of its own; what a person writes between turns stays as
it is. Pure: all of this plans changes, and writes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, tzinfo
from itertools import chain
from typing import Any

from tarsd.errors import Refused
from tarsd.parse import parse
from tarsd.passage import link_to, read_link
from tarsd.session import properties
from tarsd.session.markdown import HEADING_CHARS, clean, closed, closing_line, code, contained, fenced, one_line
from tarsd.session.record import Conversation, TurnRecord, title_of
from tarsd.vault import encode
from tarsd.writing.changes import Change, Loaded
from tarsd.writing.edits import create

UNTITLED = "Conversation"
SUMMARY = "> [!summary] What was said so far"

_LINK = re.compile(r"\[\[([^\[\]|\n#^]+)(?:[#^][^\[\]|\n]*)?(?:\|[^\[\]|\n]+)?\]\]")
_CLOSERS = ("%%", "-->", "$$", "</pre>", "</script>", "</style>", "</textarea>", "?>", "]]>")
_OF_PRIVATE = re.compile(r"\bprivate\b", re.IGNORECASE)
_LINE_END = re.compile(r"\r\n|\r|\n")


# ------------------------------------------------------------------------------------------------ changes


def begun(path: str, conversation: Conversation, *, private: bool = False, zone: tzinfo | None = None) -> Change:
    """The new note of a conversation, at `path`; `private` as in `grown`. Raises `PathRefused`."""
    return create(path, render_new(conversation, private=private, zone=zone))


def grown(loaded: Loaded, *records: TurnRecord, private: bool = False, zone: tzinfo | None = None) -> Change:
    """The note with more turns at its end: an "append" where no property changes. Times are of `zone`, or local.

    `private` marks the note as private whatever the turns saw. Raises Refused for a note that cannot be written.
    """
    _check(loaded)
    text = update_properties(loaded.text, records, private=private, zone=zone)
    hidden = properties.is_private(text)
    added = _joined(text, "\n".join(render_turn(record, private=hidden, zone=zone) for record in records))
    whole = text + added
    if text == loaded.text:
        return Change(loaded.path, "append", loaded.raw, encode(whole, loaded.encoding), added)
    return Change(loaded.path, "modify", loaded.raw, encode(whole, loaded.encoding), whole)


def summarised(loaded: Loaded, text: str, *, before: str = "", private: bool = False) -> Change:
    """The note with a summary of its beginning below the properties.

    It takes the place of the summary `before`; one that somebody has changed since is theirs and stays. Raises Refused
    for a note that cannot be written.
    """
    _check(loaded)
    note = properties.mark_private(loaded.text) if private else loaded.text
    end = properties.line_end(note)
    new = render_summary(text).replace("\n", end)
    old = render_summary(before).replace("\n", end) if before.strip() else ""
    at = _block_at(note, old) if old else -1
    if at >= 0:
        whole = note[:at] + new + note[at + len(old) :]
    else:
        head, rest = properties.split(note)
        start = "" if not head or head.endswith(("\n", "\r")) else end
        gap = end if rest.startswith(("\n", "\r")) or not rest else end * 2
        whole = f"{head}{start}{end if head else ''}{new}{gap}{rest}"
    return Change(loaded.path, "modify", loaded.raw, encode(whole, loaded.encoding), whole)


def holds(text: str, record: TurnRecord) -> bool:
    """Whether the note has this turn already: each carries its id, as an Obsidian block id."""
    return re.search(rf"\^{_block_id(record)}[ \t]*(?:[\r\n]|$)", text) is not None


# ------------------------------------------------------------------------------------------------ text


def file_title(conversation: Conversation) -> str:
    """What the note's file is called, before anything that a file name must not hold is taken out."""
    first = conversation.turns[0].message if conversation.turns else conversation.summary.title
    return one_line(title_of(first)) or UNTITLED


def render_new(conversation: Conversation, *, private: bool = False, zone: tzinfo | None = None) -> str:
    """The whole note of a conversation as it stands, without turns that still run; `private` as in `grown`."""
    turns = conversation.finished
    private = private or conversation.private
    models = [turn.model for turn in turns if turn.model]
    head = properties.block(
        conversation.summary.id,
        _moment(conversation.summary.created, zone),
        model=models[-1] if models else "",
        sources=_targets(turns),
        updated=_moment(turns[-1].at if turns else conversation.summary.created, zone),
        private=private,
        machine=conversation.machine,
    )
    summary = [render_summary(conversation.condensed.text) + "\n"] if conversation.condensed else []
    blocks = [render_turn(turn, private=private, zone=zone) for turn in turns]
    return "\n".join([head, *summary, *blocks])


def update_properties(
    text: str, records: Sequence[TurnRecord], *, private: bool = False, zone: tzinfo | None = None
) -> str:
    """The note's text with what the turns add to its properties: sources, model, time, and the mark of private text."""
    models = [record.model for record in records if record.model]
    return properties.update(
        text,
        sources=_targets(records),
        model=models[-1] if models else "",
        updated=_moment(max(record.at for record in records), zone),
        private=private or any(record.private for record in records),
    )


def render_turn(record: TurnRecord, *, private: bool = False, zone: tzinfo | None = None) -> str:
    """A turn as a section: heading, when and by which model, the question, the reply, its sources. Ends in "\\n".

    What the turn says of private notes is left out of a note that is not `private`.
    """
    private = private or record.private
    block = _turn(record, contained(record.message), contained(record.text), private, zone)
    if not closed("\n".join(block.split("\n")[1:])):
        block = _turn(record, fenced(clean(record.message)), fenced(clean(record.text)), private, zone)
    return block


def render_summary(text: str) -> str:
    """The callout that says what was said before; no line end at its end."""
    return f"{SUMMARY}\n{_quote(contained(text))}"


def render_summary_note(
    conversation: Conversation,
    text: str,
    *,
    note: str = "",
    private: bool | None = None,
    zone: tzinfo | None = None,
    updated: float | None = None,
) -> str:
    """The summary of a conversation as a note of its own, which is searched; `note` is the path of the session note.

    `private` says whether it is so now; without it what its turns say counts.
    """
    path = note or conversation.note
    link, linked = link_to(path), bool(path)
    lines = ["---", "tars: summary", f"id: {properties.quoted(conversation.summary.id)}"]
    lines += [f'machine: "{conversation.machine}"'] if conversation.machine else []
    lines += [f"session: {properties.quoted(link if link.startswith('[[') else path)}"] if linked else []
    lines.append(f"started: {properties.stamp(_moment(conversation.summary.created, zone))}")
    lines.append(f"updated: {properties.stamp(_moment(updated or conversation.summary.updated, zone))}")
    lines += ["local_only: true"] if (conversation.private if private is None else private) else []
    title = one_line(title_of(conversation.summary.title)) or UNTITLED
    lines += ["---", "", f"# {title}", "", contained(text), ""]
    if linked:
        lines += [f"From {link}.", ""]
    return "\n".join(lines)


# ------------------------------------------------------------------------------------------------ pieces


def _turn(record: TurnRecord, question: str, reply: str, private: bool, zone: tzinfo | None) -> str:
    title = one_line(title_of(record.message))[: HEADING_CHARS + 1].strip() or "Question"
    when = f"{_moment(record.at, zone):%Y-%m-%d %H:%M}"
    parts = [f"## {title}", " · ".join([when, *([code(record.model)] if record.model else [])])]
    parts[-1] += f" ^{_block_id(record)}"
    if question and title != record.message.strip():
        parts.append(_quote(question))
    parts += [reply] if reply else []
    parts += _remarks(record, private)
    parts += _sources(record)
    return "\n\n".join(parts) + "\n"


def _quote(text: str) -> str:
    lines = [f"> {line}" if line else ">" for line in text.split("\n")]
    if lines[0].startswith("> [!"):
        lines[0] = "> \\[" + lines[0][3:]  # a quote, and no callout
    return "\n".join(lines)


def _remarks(record: TurnRecord, private: bool) -> list[str]:
    """How the turn ended if not well, what it has to say of itself, and which tools it used."""
    last = record.events[-1].data if record.events else {}
    remarks: list[str] = []
    if record.state == "stopped":
        remarks.append("> [!warning] Stopped before the end")
    elif record.state in ("interrupted", "failed"):
        error: dict[str, Any] = last.get("error") or {}
        title = "The daemon stopped before the end" if record.state == "interrupted" else "No complete answer"
        said = " ".join(one_line(str(error.get(key, ""))) for key in ("message", "hint")).strip()
        remarks.append(f"> [!failure] {title}" + (f"\n> {said}" if said and record.state == "failed" else ""))
    heard = [str(notice) for notice in last.get("notices") or ()]
    notices = [one_line(notice) for notice in heard if private or not _OF_PRIVATE.search(notice)]
    if notices:
        remarks.append("\n".join(["> [!info] About this answer", *(f"> - {notice}" for notice in notices)]))
    tools = dict.fromkeys(code(use.name) + ("" if use.state == "done" else f" ({use.state})") for use in record.tools)
    return [*remarks, "Tools: " + ", ".join(tools)] if tools else remarks


def _sources(record: TurnRecord) -> list[str]:
    numbers: dict[str, list[str]] = {}
    for source in _cited(record):
        shown = _shown(source)
        if source.get("heading") and shown.startswith("[") and "#" not in shown:  # it has a twin that a link would find
            shown += f" (line {source.get('start_line', 1)})"
        numbers.setdefault(shown, []).append(f"[{source.get('n', '?')}]")
    return (
        ["\n".join(["Sources:", "", *(f"- {link} {' '.join(cited)}" for link, cited in numbers.items())])]
        if numbers
        else []
    )


def _cited(record: TurnRecord) -> list[dict[str, Any]]:
    """The sources the reply cites; what it was given besides is none, and would only clutter backlinks and graph."""
    return [source for source in record.outcome.get("citations") or () if isinstance(source, dict)]


def _shown(source: dict[str, Any]) -> str:
    """A link that leads to the source, or its path where none can: in other collections."""
    link = clean(str(source.get("link", "")))
    readable = _LINK.fullmatch(link) if link.startswith("[[") else read_link(link)
    if source.get("collection") or not readable or "%%" in link:
        return code("/".join(part for part in (source.get("collection"), source.get("path")) if part))
    return link


def _targets(records: Iterable[TurnRecord]) -> list[str]:
    """The notes that were cited, as property values, each once."""
    targets: dict[str, None] = {}
    for record in records:
        for source in _cited(record):
            shown = _shown(source)
            link = _LINK.fullmatch(shown)
            # properties know no Markdown links
            plain = str(source.get("path", "")) if shown.startswith("[") else shown.strip("`")
            targets.setdefault(f"[[{link[1]}]]" if link else plain)
    return list(targets)


def _block_id(record: TurnRecord) -> str:
    return "t-" + (re.sub(r"[^A-Za-z0-9]", "", record.id)[:16] or "0")


def _moment(at: float, zone: tzinfo | None) -> datetime:
    return datetime.fromtimestamp(at, zone) if zone is not None else datetime.fromtimestamp(at).astimezone()


def _joined(text: str, block: str) -> str:
    """What is added to `text` so that `block` stands at its end as a section, with its line ends.

    What somebody left open there, a fence or a comment, is closed first. Where no mark closes it, the turn is added all
    the same: better read as code than lost.
    """
    end = properties.line_end(text)
    block = block.replace("\n", end)
    ended = not text or text.endswith(("\n", "\r"))
    start = "" if ended and not (text.endswith("\r") and end == "\n") else end
    blank = not text or (ended and not _LINE_END.split(text)[-2].strip())
    plain = start + ("" if blank else end)
    for gap in chain([plain], (f"{start}{mark}{end}{end}" for mark in _closers(text))):
        *_, last = [None, *parse(f"{text}{gap}## end", "note.md").headings]
        if last is not None and (last.level, last.text) == (2, "end"):
            return gap + block
    return plain + block


def _closers(text: str) -> Iterator[str]:
    """Marks that may close what is left open at the end of a note."""
    units = parse(text, "note.md", include_comments=True).units
    if units and units[-1].kind == "fence":
        yield closing_line(units[-1])
    yield from _CLOSERS


def _check(loaded: Loaded) -> None:
    if encode(loaded.text, loaded.encoding) != loaded.raw:
        raise Refused(f"“{loaded.path}” contains bytes that would be lost, so it is not changed.", "Save it as UTF-8.")


def _block_at(text: str, block: str) -> int:
    """Where `block` stands in `text` as whole lines with a blank line or the end after it; -1 if nowhere."""
    found = re.search(rf"(?:(?<=[\r\n])|\A){re.escape(block)}(?=[ \t]*(?:\Z|(?:\r\n|\r|\n)(?!>)))", text)
    return found.start() if found else -1
