"""The prompts of the vault, `tars/prompts/NAME.md` for each `/NAME`: listed, called by a message, and filled in."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from tarsd.chat.prompt import result_text
from tarsd.chat.prompt_note import MOST_CHARS, PLACEHOLDER, TOO_LONG, PromptNote, placeholder, read_prompt
from tarsd.errors import BadRequest, NotFound, Refused, TarsdError
from tarsd.notes import NoteLibrary, Reader
from tarsd.passage import Origin
from tarsd.protocol import SLASH_COMMANDS
from tarsd.query import as_lines, rows_query
from tarsd.vault import nfc

MOST_QUERIES = 20
NO_SELECTION = "This prompt needs a selection."
NO_NOTE = "This prompt needs a note."

_CALL = re.compile(r"/([^\s/]+)(?:\s+(.*))?", re.DOTALL)
_EMBED = re.compile(r"\s*!\[\[([^\[\]|#\n]+)\]\]\s*")


@dataclass(frozen=True)
class CalledPrompt:
    """A prompt, and what was said behind its name."""

    prompt: PromptNote
    said: str


@dataclass(frozen=True)
class FilledPrompt:
    """What a call of a prompt asks: `text` with the rows that it asked for, `said` without them.

    `notes` are to be attached. `selects`: it rests on the selection. `private`, `origins`: of the prompts and rows.
    """

    text: str
    said: str
    notes: tuple[str, ...]
    selects: bool
    private: bool
    origins: tuple[Origin, ...]


class PromptFolder:
    """The notes directly in a folder of the vault; `folder` is ours in it."""

    def __init__(self, library: NoteLibrary, folder: str) -> None:
        self._library = library
        self.folder = f"{folder}/prompts"

    def listing(self) -> list[dict[str, Any]]:
        """Every prompt with its name, path, description and what it takes; `problem` says what keeps one from use."""
        return [self._entry(name, paths) for name, paths in sorted(self._paths().items())]

    def _entry(self, name: str, paths: Sequence[str]) -> dict[str, Any]:
        entry = {"name": name, "path": paths[0], "description": "", "arguments": "", "problem": ""}
        try:
            prompt = self._read(name, paths, Reader(self._library))
        except TarsdError as error:
            return entry | {"problem": f"{error.message} {error.hint}".strip()}
        return entry | {"description": prompt.description, "arguments": prompt.arguments}

    def called(self, message: str, reader: Reader) -> CalledPrompt | None:
        """The prompt that a message calls, None for another message. Raises `BadRequest` for one that is wrong.

        One that `reader` may not see is none.
        """
        found = _CALL.fullmatch(message.rstrip())
        paths = self._paths().get(_name(found[1]), []) if found is not None else []
        if found is None or not paths:
            return None
        seen = []
        for path in paths:
            with contextlib.suppress(NotFound, Refused):
                seen.append(reader.open_path(path).path)
        return CalledPrompt(self._read(_name(found[1]), seen, reader), (found[2] or "").strip()) if seen else None

    def hidden_by(self, command: str) -> str:
        """That a command of tars has the name of a prompt, if one is called so; else ""."""
        paths = self._paths().get(_name(command.removeprefix("/")))
        return _taken(command.removeprefix("/"), paths[0]).message if paths else ""

    def _read(self, name: str, paths: Sequence[str], reader: Reader) -> PromptNote:
        if name in SLASH_COMMANDS:
            raise _taken(name, paths[0])
        if len(paths) > 1:
            raise BadRequest(f"{len(paths)} prompts are called /{name}: {', '.join(paths)}.", "Rename all but one.")
        return read_prompt(name, reader.open_path(paths[0]))

    def _paths(self) -> dict[str, list[str]]:
        """The paths of the prompts by name."""
        found: dict[str, list[str]] = {}
        for _, path in sorted(self._library.vaults[""].scan([self.folder]).files):
            folder, _, file = path.rpartition("/")
            if folder.casefold() == self.folder.casefold() and file.lower().endswith(".md"):
                found.setdefault(_name(file[:-3]), []).append(path)
        return found

    def fill(
        self, called: CalledPrompt, reader: Reader, notes: Sequence[str], *, selected: bool, today: date
    ) -> FilledPrompt:
        """What a prompt asks, for whoever `reader` reads for; `notes` go with the message, as does what is `selected`.

        Nothing that is filled in is looked through for placeholders. Raises `BadRequest` with path and line, and
        `Refused` where a part is private that the model may not see.
        """
        filling = _Filling(self, called, reader, notes, selected, today)
        filling.add(called.prompt, ())
        if called.said and not filling.used_arguments:
            filling.put(f"\n\n{called.said}")
        if called.prompt.where:
            at = called.prompt.at.get("where", 1)
            filling.put(f"\n\n{filling.rows(called.prompt, at, called.prompt.where)}", said="")
        text, said = (re.sub(r"\n{3,}", "\n\n", "".join(parts)).strip() for parts in (filling.text, filling.said))
        attached = dict.fromkeys([*notes, *filling.notes])
        said = said or called.prompt.description  # nothing but rows
        return FilledPrompt(
            text, said, tuple(attached), filling.selects, filling.private, tuple(dict.fromkeys(filling.origins))
        )

    def embedded(self, name: str, reader: Reader) -> PromptNote | None:
        """The prompt that an embed in a prompt means, by name or path; None where it is another note."""
        wanted = _name(name.removesuffix(".md").rpartition("/")[2])
        paths = self._paths().get(wanted, [])
        if "/" in name and not name.casefold().startswith(f"{self.folder.casefold()}/"):
            return None
        return self._read(wanted, paths, reader) if paths else None


@dataclass
class _Filling:
    """The text of a prompt while it is put together."""

    folder: PromptFolder
    called: CalledPrompt
    reader: Reader
    attached: Sequence[str]
    selected: bool
    today: date
    text: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    selects: bool = False
    private: bool = False
    used_arguments: bool = False
    chars: int = 0
    queries: int = 0

    def add(self, prompt: PromptNote, within: tuple[PromptNote, ...]) -> None:
        """The lines of a prompt, which is embedded in those it is `within`."""
        if prompt.note.local_only and not self.reader.sees_private:
            raise Refused(f"The prompt /{prompt.name} is private and would leave this machine, so it is not used.")
        self.private |= prompt.note.local_only
        self.origins.append(prompt.note.origin)
        self.notes += prompt.notes
        for number, line in enumerate(prompt.lines, prompt.first_line):
            embed = _EMBED.fullmatch(line)
            inner = self._embedded(embed[1].strip()) if embed is not None else None
            if inner is None:
                self._line(prompt, number, line)
                continue
            chain = (*within, prompt)
            if any(one.path == inner.path for one in chain):
                loop = " → ".join(f"/{one.name}" for one in (*chain, inner))
                raise prompt.wrong(number, f"The prompts embed each other in a loop: {loop}.", "Take one embed out.")
            self.add(inner, chain)

    def _embedded(self, name: str) -> PromptNote | None:
        try:
            return self.folder.embedded(name, self.reader)
        except Refused:
            if self.reader.is_told:
                raise
            return None  # who asks does not learn that there is one

    def _line(self, prompt: PromptNote, number: int, line: str) -> None:
        self.chars += len(line) + 1
        if self.chars > MOST_CHARS:
            raise prompt.wrong(number, TOO_LONG, "It embeds too much.")
        last = 0
        for found in PLACEHOLDER.finditer(line):
            self.put(line[last : found.start()])
            last = found.end()
            name, value = placeholder(found)
            if name == "query":
                self.put(f"\n{self.rows(prompt, number, value)}\n", said="")
            else:
                self.put(getattr(self, f"_{name}")(prompt, number))
        self.put(f"{line[last:]}\n")

    def put(self, text: str, said: str | None = None) -> None:
        """Add a text; `said` where something else is to be searched for."""
        self.text.append(text)
        self.said.append(text if said is None else said)

    def _arguments(self, prompt: PromptNote, number: int) -> str:
        self.used_arguments = True
        return self.called.said

    def _date(self, prompt: PromptNote, number: int) -> str:
        return self.today.isoformat()

    def _selection(self, prompt: PromptNote, number: int) -> str:
        if not self.selected:
            raise prompt.wrong(number, NO_SELECTION, "Select text in a note in Obsidian, then ask again.")
        self.selects = True
        return "the text in <selection>"

    def _note(self, prompt: PromptNote, number: int) -> str:
        if not self.attached:
            raise prompt.wrong(number, NO_NOTE, "Attach one, then ask again.")
        passages = self.reader.attach(self.attached[0])
        path = passages[0].path if passages else self.attached[0]
        return f"[[{path.removesuffix('.md')}]]"

    def rows(self, prompt: PromptNote, number: int, where: str) -> str:
        """The rows of a condition, as marked data."""
        self.queries += 1
        if self.queries > MOST_QUERIES:
            raise prompt.wrong(number, f"This prompt asks for rows more than {MOST_QUERIES} times.", "Ask less often.")
        try:
            shown = self.reader.rows(rows_query(where))
        except BadRequest as error:
            raise prompt.wrong(number, error.message, error.hint) from None
        self.private |= any(note.local_only for note in shown.notes)
        self.origins += [note.origin for note in shown.notes]
        text, rows = as_lines(shown)
        return result_text("query_notes", "\n".join([text, *rows]))


def _name(text: str) -> str:
    """A prompt's name as it is typed: in one case, with dashes for blanks."""
    return "-".join(nfc(text).casefold().split())


def _taken(name: str, path: str) -> BadRequest:
    return BadRequest(f"{path}:1: It is not used, as /{name} is a command of tars.", "Rename the note.")
