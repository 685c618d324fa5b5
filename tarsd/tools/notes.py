"""The notes as tools: search, read, list, and proposals to create, append and patch."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Literal

from tarsd.errors import NotFound, TarsdError, ToolError
from tarsd.notes import ANYWHERE, NoteView, Within
from tarsd.notes.resolve import link_target
from tarsd.parse import parse
from tarsd.passage import NoteRow
from tarsd.tools.base import Context, Result, Tool, ToolProposal, tool
from tarsd.tools.changes import VERSION_CHARS, check_own, checked, propose, version
from tarsd.tools.reading import OUTLINE, evidence, passage, section
from tarsd.vault import nfc
from tarsd.writing import edits
from tarsd.writing.notes import Notebook, legal_name
from tarsd.writing.places import Outline

MOST_PASSAGES = 12
MOST_LISTED = 100
TITLE_CHARS = 120
SESSION_KINDS = frozenset({"session", "summary"})
"""Values of the property `tars` whose notes are private as a whole or not at all; the others are so line by line."""

_ENDING = re.compile(r"\.[a-z][a-z0-9]{0,7}$")
_NOT_IN_FOLDERS = re.compile(r'[:*?"<>|#^\[\]\\]')

Name = Annotated[str, "The note's path or title"]
New = Annotated[str, "Markdown text to write"]


class NoteTools:
    """The tools on notes. `memory_folder` is kept out of what they may change."""

    def __init__(self, notebook: Notebook, memory_folder: str = "tars", *, include_comments: bool = False) -> None:
        self._notebook = notebook
        self._memory_folder = nfc(memory_folder).strip("/").casefold()
        self._include_comments = include_comments

    def tools(self) -> list[Tool]:
        """All of them."""
        functions: tuple[Callable[..., object], ...] = (
            self.memory_search, self.note_read, self.note_list, self.note_create, self.note_append, self.note_patch,
        )  # fmt: skip
        return [tool(function, group="notes") for function in functions]

    def memory_search(
        self,
        context: Context,
        query: Annotated[str, "What to look for, in a few words"],
        limit: Annotated[int, "How many passages, at most 12"] = 6,
        folder: Annotated[str, "Only notes in this folder and below it"] = "",
        tag: Annotated[str, "Only notes with this tag"] = "",
        after: Annotated[str, "Only notes of days after this: 2026-03-09, 2026-03 or 2026"] = "",
        before: Annotated[str, "Only notes of days before it"] = "",
        on: Annotated[str, "Only notes of this day, month or year"] = "",
        where: Annotated[str, "Only notes with this condition, as in query_notes"] = "",
    ) -> Result:
        """Search the person's notes and memory by words and meaning. Gives the passages that fit best."""
        if not query.strip():
            raise ToolError("memory_search: “query” is empty. Say what to look for, in a few words.")
        most = max(1, min(limit, MOST_PASSAGES))
        within = Within(
            folder=_folder(folder), tag=tag.strip().lstrip("#"), after=after, before=before, on=on, where=where
        )
        shown = context.reader.retrieve(query.strip()[:1000], most, private=context.private, within=within).passages
        if not shown and within != ANYWHERE:
            return Result("Nothing there fits. Search without the conditions, or say that the notes do not hold it.")
        if not shown:
            return Result("Nothing in the notes fits. Try other words, or say that the notes do not hold it.")
        count = "One passage fits" if len(shown) == 1 else f"{len(shown)} passages fit"
        return Result(f"{count}, best first.", shown, any(passage.local_only for passage in shown))

    def note_read(
        self,
        context: Context,
        name: Name,
        heading: Annotated[str, "Only the section under this heading (Heading or Heading#Sub), or the block ^id"] = "",
        first_line: Annotated[int, "Only from this line on, counted from 1"] = 0,
        last_line: Annotated[int, "Only up to this line"] = 0,
    ) -> Result:
        """Read a note, or a section or some lines of it. Also gives the version that note_patch needs."""
        view, inside = self._open(name, context)
        outline = Outline(view.path, view.loaded.text)
        note = outline.note
        if self._include_comments:
            note = parse(view.loaded.text, view.path, include_comments=True)
        kind = note.properties.get("tars")
        if view.ours and not (isinstance(kind, str) and kind in SESSION_KINDS):
            raise ToolError("That note is the assistant's own memory: what counts of it is already before you.")
        lines = view.lines(note)
        first, last, text = 1, len(lines), ""
        if heading or inside:
            first, last, text = section(outline, heading.strip() or inside)
        if first_line or last_line:
            first, last = max(first, first_line), min(last, last_line or last)
        about = f"“{_short(view.title)}” ({_line(view.path)}), version {version(view.loaded.hash)}"
        if first > last or not any(lines[first - 1 : last]):
            empty = "nothing stands there" if (first_line or last_line or text) else "the note is empty"
            said = f"{about}: {empty}; it has {len(lines)} lines."
            return Result(said, private=view.local_only, named=(view.note,))
        part = passage(lines, first, last, text)
        said = f"{about}, lines {part.first} to {part.last} of {len(lines)}."
        if part.cut:
            said += f" Read on with first_line={part.last + 1}."
            said += "".join(f"\n{shown.line}: {'#' * shown.level} {shown.text}" for shown in note.headings[:OUTLINE])
        drawn = context.reader.origins(view, part.first, part.last)
        if kind == "session":  # a conversation is no source: an answer must not become its own proof
            said = f"{said} It is an earlier conversation, not a source.\n\n{part.text}"
            return Result(said, private=view.local_only, named=(view.note,), origins=drawn)
        return Result(said, (evidence(view, part),), view.local_only, origins=drawn)

    def note_list(
        self,
        context: Context,
        folder: Annotated[str, "Only notes in this folder and below it"] = "",
        tag: Annotated[str, "Only notes with this tag"] = "",
        recent: Annotated[bool, "The last changed first"] = False,
        limit: Annotated[int, "How many, at most 100"] = 30,
    ) -> Result:
        """List notes: all, those of a folder, those with a tag, or the last changed."""
        most = max(1, min(limit, MOST_LISTED))
        shown = context.reader.listing(_folder(folder), tag.strip().lstrip("#"), recent, most + 1)
        if not shown:
            return Result("There are no such notes. Without folder and tag, note_list shows all.")
        lines = [_entry(row) for row in shown[:most]]
        if len(shown) > most:
            lines.append(f"… and more; give a folder or a tag, or a higher limit (at most {MOST_LISTED}).")
        return Result("\n".join(lines), (), any(row.local_only for row in shown[:most]), tuple(shown[:most]))

    def note_create(
        self,
        context: Context,
        path: Annotated[str, "Where: Title, or Folder/Title"],
        text: New,
    ) -> ToolProposal:
        """Propose a new note. The person sees it and says yes or no."""
        folder, title = self._place(path)
        wanted = f"{folder}/{title}.md" if folder else f"{title}.md"
        text = checked(text, "note_create")
        self._refuse(wanted)
        taken = self._notebook.exists(wanted)
        if taken and self._may_be_told(wanted, context):
            raise ToolError(f"There is already a note at {wanted}. Add to it with note_append, or choose another name.")
        free = self._notebook.free_path(folder, title)
        self._refuse(free)
        # the person sees where it goes; a model elsewhere does not hear that a private note or folder has the name
        named = f"{legal_name(title)}.md"
        hides = "" if context.local or not taken else " (a private note has the name; the model may conclude that)"
        said = f"Created {free if context.local else f'{folder}/{named}' if folder else named}."
        if context.private and parse(text, free).properties.get("local_only") is not True:
            text = _kept_here(text)
            said += " It is marked private (local_only), for this turn has read private notes."
        change = edits.create(free, text)
        check_own(change)
        return propose(change, f"Create {free}{hides}", said, context)

    def note_append(
        self,
        context: Context,
        name: Name,
        text: New,
        heading: Annotated[str, "Add it at the end of this section; empty: at the end of the note"] = "",
    ) -> ToolProposal:
        """Propose to add text to the end of a note or of one of its sections. The person says yes or no."""
        view, inside = self.open_to_write(name, context)
        text = checked(text, "note_append")
        under = heading.strip() or inside

        change = edits.append(view.loaded, text, under)
        check_own(change)
        where = f"{view.path}, under “{_short(under)}”" if under else view.path
        again = partial(self.note_append, context, name, text, heading)
        said = f"Added to {view.path}."
        return propose(change, f"Add to {where}", said, context, again=again, private=view.local_only)

    def note_patch(
        self,
        context: Context,
        name: Name,
        target: Annotated[str, "What to change: Heading, Heading#Sub, or ^block"],
        text: New,
        version: Annotated[str, "The version that note_read gave"],
        mode: Annotated[Literal["replace", "append", "prepend"], "What to do with the section's text"] = "replace",
    ) -> ToolProposal:
        """Propose to change the text under a heading, or a block. Read the note first. The person says yes or no."""
        view, _ = self.open_to_write(name, context)
        given = version.strip().casefold()
        if len(given) < min(8, VERSION_CHARS) or not view.loaded.hash.startswith(given):
            raise ToolError(
                f"{view.path} is not at version “{_short(version)}” now: it changed, or was not read. "
                "Read it again with note_read, then repeat note_patch with the version given there."
            )
        change = edits.patch(
            view.loaded, target.strip(), checked(text, "note_patch", may_be_empty=mode == "replace"), mode
        )
        check_own(change)
        title = f"Change “{_short(target)}” in {view.path}"
        return propose(change, title, f"Changed {view.path}.", context, private=view.local_only)

    # ------------------------------------------------------------------------------------------------------- helpers

    def _open(self, name: str, context: Context) -> tuple[NoteView, str]:
        """The note, and the heading that its name had with it."""
        wanted, heading = link_target(name)
        if not wanted:
            raise ToolError("“name” is empty. Give a note's path or title; note_list shows them.")
        try:
            return context.reader.open(wanted), heading
        except NotFound:
            raise ToolError(f"There is no note “{_short(wanted)}”. {self._alike(wanted, context)}") from None

    def open_to_write(self, name: str, context: Context) -> tuple[NoteView, str]:
        """A note that may be changed, and the heading that its name had with it. Raises `ToolError`."""
        view, heading = self._open(name, context)
        if view.collection:
            raise ToolError(f"{view.path} lies in the collection {view.collection}, which is only read.")
        if not view.path.lower().endswith(".md"):
            raise ToolError(f"{view.path} is no Markdown note; it is not changed by tools.")
        if view.ours:
            raise ToolError(f"{view.path} is a note of the assistant itself. To remember something: memory_remember.")
        self._refuse(view.path)
        return view, heading

    def _alike(self, name: str, context: Context) -> str:
        """What else the name could mean; search is asked, for there is nothing to lose."""
        with contextlib.suppress(TarsdError):
            near = context.reader.retrieve(name[:200], 5, private=context.private).passages
            paths = list(dict.fromkeys(passage.path for passage in near))
            if paths:
                return f"Notes that come close: {', '.join(paths[:3])}."
        return "note_list shows the notes there are."

    def _may_be_told(self, path: str, context: Context) -> bool:
        """Whether this model may know of the note that is at a path, in whatever case and form."""
        if context.local:
            return True
        with contextlib.suppress(TarsdError):
            return bool(context.reader.open(path))
        return False

    def _place(self, path: str) -> tuple[str, str]:
        """Folder and title of a new note. Raises `ToolError` for what can be no note."""
        wanted = nfc(link_target(path)[0]).removeprefix("./")
        folder, _, title = wanted.rpartition("/")
        if title.lower().endswith(".md"):
            title = title[:-3]
        elif _ENDING.search(title):
            raise ToolError(f"Only Markdown notes are made, not “{_short(title)}”. Leave the ending out, or take .md.")
        if not title.strip():
            raise ToolError("“path” has no title. Give Title, or Folder/Title.")
        if _NOT_IN_FOLDERS.search(folder):
            raise ToolError(f"The folder “{_short(folder)}” has characters that names cannot have; choose another.")
        return folder, title.strip()

    def _is_own(self, path: str) -> bool:
        return nfc(path).casefold().startswith(f"{self._memory_folder}/")

    def _refuse(self, path: str) -> None:
        """Refuse paths outside the vault, excluded paths, and the assistant's own folder."""
        if self._is_own(path):
            raise ToolError("The assistant's own folder is not changed so. To remember something: memory_remember.")
        self._notebook.vault.resolve(path)


def _kept_here(text: str) -> str:
    """`text` with the property that keeps it on this machine."""
    if text.startswith("---\n") and "\n---\n" in text[3:]:
        return f"---\nlocal_only: true\n{text[4:]}"
    return f"---\nlocal_only: true\n---\n\n{text}"


def _entry(row: NoteRow) -> str:
    changed = datetime.fromtimestamp(row.mtime_ns / 1e9).strftime("%Y-%m-%d")
    tags = "".join(f" #{tag}" for tag in _some(row.tags))
    place = f" [{row.collection}]" if row.collection else ""
    return f"- {_line(row.path)}{place}, changed {changed}{tags}"


def _some(tags: Sequence[str]) -> Sequence[str]:
    return [_line(tag) for tag in tags[:8]]


def _line(text: str) -> str:
    """A name on one line, whatever is in it."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _short(text: str) -> str:
    return _line(text)[:TITLE_CHARS]


def _folder(name: str) -> str:
    return nfc(name.strip()).strip("/").removeprefix("./")
