"""A note in `tars/prompts/` as a prompt: what its properties say, and the text that a message becomes. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tarsd.errors import BadRequest
from tarsd.notes import NoteView
from tarsd.notes.resolve import link_target
from tarsd.parse import Note, parse
from tarsd.passage import NoteRow

PLACEHOLDER = re.compile(r"\{\{([^{}:\n]*)(?::((?:(?!\}\}|\{\{).)*))?\}\}")
PLACEHOLDERS = ("selection", "note", "date", "arguments", "query")
LONGEST_DESCRIPTION = 160
MOST_CHARS = 100_000
"""Of a prompt's text, those that it embeds included."""
TOO_LONG = f"The text of this prompt has more than {MOST_CHARS:,} characters."

_FIRST = re.compile(r"^[\s>#*+-]+")


@dataclass(frozen=True)
class PromptNote:
    """A prompt; `tools` None: all that are allowed. `lines` are those of its text, the first one at `first_line`.

    `at` are the lines of its properties. `note` is the note in the vault.
    """

    name: str
    note: NoteRow
    description: str = ""
    arguments: str = ""
    tools: tuple[str, ...] | None = None
    model: str = ""
    notes: tuple[str, ...] = ()
    where: str = ""
    lines: tuple[str, ...] = ()
    first_line: int = 1
    at: Mapping[str, int] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Where it lies in the vault."""
        return self.note.path

    def wrong(self, line: int, what: str, hint: str = "") -> BadRequest:
        """The error that says what is wrong at a line."""
        return BadRequest(f"{self.path}:{line}: {what}", hint)


def read_prompt(name: str, view: NoteView) -> PromptNote:
    """The prompt that a note is. Raises `BadRequest` with path and line for what cannot be meant."""
    note = parse(view.loaded.text, view.path)
    first = note.body_line
    at = _lines_of(note)
    prompt = PromptNote(name, view.note, lines=tuple(view.lines(note)[first - 1 :]), first_line=first, at=at)
    broken = next((problem for problem in note.problems if problem.line < first), None)
    if broken is not None:
        raise prompt.wrong(broken.line, broken.reason, broken.hint)
    if sum(map(len, prompt.lines)) > MOST_CHARS:
        raise prompt.wrong(first, TOO_LONG, "Put what is only to be read into notes, and name them under `notes`.")
    values = {key.casefold(): value for key, value in note.properties.items() if value is not None}
    reader = _Properties(prompt, values)
    said = next((_FIRST.sub("", line).strip() for line in prompt.lines if _FIRST.sub("", line).strip()), "")
    if not said:
        raise prompt.wrong(first, "This prompt has no text.", "Write below the properties what the model is to do.")
    _check(prompt)
    return PromptNote(
        name,
        view.note,
        description=_short(reader.text("description") or PLACEHOLDER.sub("…", said)),
        arguments=_short(" ".join(reader.texts("arguments"))),
        tools=reader.texts("tools") if "tools" in values else None,
        model=reader.text("model"),
        notes=tuple(link_target(one)[0] for one in reader.texts("notes")),
        where=reader.text("where"),
        lines=prompt.lines,
        first_line=first,
        at=at,
    )


class _Properties:
    """The properties of a prompt, read strictly."""

    def __init__(self, prompt: PromptNote, values: Mapping[str, Any]) -> None:
        self._prompt = prompt
        self._values = values

    def text(self, name: str) -> str:
        value = self._values.get(name, "")
        if not isinstance(value, str):
            raise self._wrong(name, "a text", f'Write it as in: {name}: "…"')
        return value.strip()

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._values.get(name, [])
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            raise self._wrong(name, "a text or a list of texts", f'Write it as in: {name}: ["…", "…"]')
        return tuple(one.strip() for one in listed if one.strip())

    def _wrong(self, name: str, wanted: str, hint: str) -> BadRequest:
        return self._prompt.wrong(self._prompt.at.get(name, 1), f"The property “{name}” must be {wanted}.", hint)


def _lines_of(note: Note) -> dict[str, int]:
    """The first line of each property."""
    found: dict[str, int] = {}
    for fact in note.facts:
        if fact.source == "property":
            found.setdefault(fact.name.partition(".")[0].casefold(), fact.line)
    return found


def _check(prompt: PromptNote) -> None:
    for number, line in enumerate(prompt.lines, prompt.first_line):
        for found in PLACEHOLDER.finditer(line):
            name, value = placeholder(found)
            if name not in PLACEHOLDERS:
                known = ", ".join("{{query: …}}" if one == "query" else f"{{{{{one}}}}}" for one in PLACEHOLDERS)
                raise prompt.wrong(number, f"There is no placeholder {found[0][:60]}.", f"There are {known}.")
            if name != "query" and found[2] is not None:
                raise prompt.wrong(number, f"{{{{{name}}}}} takes nothing behind a colon.", f"Write {{{{{name}}}}}.")
            if name == "query" and not value:
                hint = 'Write a condition, as in: {{query: status == "active"}}'
                raise prompt.wrong(number, "{{query}} has no condition.", hint)


def placeholder(found: re.Match[str]) -> tuple[str, str]:
    """The name of a placeholder, and what stands behind its colon."""
    return found[1].strip().casefold(), (found[2] or "").strip()


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_DESCRIPTION else f"{text[: LONGEST_DESCRIPTION - 1].rstrip()}…"
