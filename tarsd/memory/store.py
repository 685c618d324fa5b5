"""What is remembered, as notes that the person reads and edits: facts, rules, and what was only noticed.

Nothing is written here: every method that changes something returns the change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Literal

from tarsd.errors import BadRequest, Conflict, NotFound, Refused, TarsdError
from tarsd.memory import compare, lines
from tarsd.memory.drafts import KINDS, MAX_LINES, MEMORY, NOTICED, RULES, SECTION, NoteDraft, blank
from tarsd.memory.lines import IsPrivate, MemoryLine, MemoryNote
from tarsd.memory.merging import MergedText, copies_of, forgotten, merged
from tarsd.writing.changes import Change, Loaded
from tarsd.writing.journal import Journal
from tarsd.writing.notes import Notebook

Kind = Literal["semantic", "procedural"]

MAX_PROMPT = 8000
"""Most characters of one of these notes in a prompt."""
_SECRET = "a private line"


class Contradiction(Conflict):
    """What is to be remembered differs from `line`, which is remembered already: the person says which holds."""

    code = "contradiction"

    def __init__(self, message: str, hint: str = "", *, line: str = "") -> None:
        super().__init__(message, hint)
        self.line = line

    def as_json(self) -> dict[str, str]:
        """As the base, with the line that would have to give way."""
        return super().as_json() | {"line": self.line}


class Memory:
    """The memory in `folder` of the vault. `local=False` anywhere means: for a model on another machine.

    `private` as in `lines.read`: which lines such a model does not see is decided whenever they are read. `journal`
    tells what was forgotten here, and `machine` gives this machine's id, for names.
    """

    def __init__(
        self,
        notebook: Notebook,
        folder: str,
        *,
        enabled: bool = True,
        today: Callable[[], datetime] = datetime.now,
        private: IsPrivate = lambda session: False,
        journal: Journal | None = None,
        machine: Callable[[], str] = str,
    ) -> None:
        self._journal = journal
        self.machine = machine
        self.notebook = notebook
        self.enabled = enabled
        self._folder = folder.strip("/")
        self.today = today
        self._private = private
        self._pages: dict[str, tuple[str, frozenset[str], MemoryNote]] = {}

    # ---------------------------------------------------------------------------------------------- its notes

    def path(self, name: str) -> str:
        """Where a note of this name lies."""
        return f"{self._folder}/{name}" if self._folder else name

    def load(self, name: str) -> Loaded | None:
        """The note of this name; None if there is none. Raises what `Notebook.load` raises, but for that."""
        path = self.path(name)
        try:
            return self.notebook.load(path)
        except NotFound as fault:
            if self.notebook.exists(path):
                hint = fault.hint or "Check the folder."
                raise Refused(f"{path} cannot be used: there is a file with almost the same name.", hint) from None
            return None

    def open(self, name: str) -> NoteDraft:
        """A note of lines, to be changed. Raises as `load`."""
        loaded = self.load(name)
        return NoteDraft(name, self.path(name), loaded, self.is_private, self._merged(name, loaded))

    def copies(self, name: str) -> list[Loaded]:
        """What sync tools put beside the note of this name, for another machine changed it too."""
        return copies_of(self.notebook, self.path(name), KINDS.get(name, "feedback"))

    def _merged(self, name: str, loaded: Loaded | None) -> MergedText:
        text = blank(name, loaded)
        if not (copies := self.copies(name)):
            return MergedText(text)
        known = [note.raw for note in (loaded, *copies) if note is not None]
        gone = forgotten(self._journal, self.path(name), known) if self._journal is not None else frozenset()
        return merged(text, copies, gone, SECTION[name])

    def is_private(self, session: str) -> bool:
        """Whether what was learnt in a conversation must stay on this machine now; also if that is unknown."""
        try:
            return self._private(session)
        except TarsdError:
            return True

    # ---------------------------------------------------------------------------------------------- reading

    def facts(self, *, local: bool) -> str:
        """What is remembered, for a prompt (not escaped); "" when there is nothing, or memory is off. Never raises."""
        return self._shown(MEMORY, local)[0] if self.enabled else ""

    def rules(self, *, local: bool) -> str:
        """The rules, as `facts`."""
        return self._shown(RULES, local)[0] if self.enabled else ""

    def problem(self) -> str:
        """A sentence on what of the memory cannot be used, or ""."""
        return next((fault for name in (MEMORY, RULES, NOTICED) if (fault := self._shown(name, True)[1])), "")

    def withheld(self) -> int:
        """How many lines of facts and rules no model on another machine gets to see. Never raises."""
        if not self.enabled:
            return 0
        pages = [page for name in (MEMORY, RULES) if (page := self._page(name)[0])]
        return sum(line.mark.private for page in pages for line in page.lines)

    def listing(self) -> dict[str, object]:
        """Everything that is remembered, rules, and what was noticed; on or off. Never raises."""
        listed: dict[str, object] = {"enabled": self.enabled}
        for key, name in (("facts", MEMORY), ("rules", RULES), ("noticed", NOTICED)):
            page = self._page(name)[0]
            listed[key] = [line.as_json() for line in page.lines] if page else []
        return listed | {"problem": self.problem()}

    def lines(self, name: str) -> tuple[MemoryLine, ...]:
        """The lines of one of the notes; none if it cannot be read."""
        page = self._page(name)[0]
        return page.lines if page else ()

    def _page(self, name: str) -> tuple[MemoryNote | None, str]:
        """The note, parsed again when it or its sources changed, and a sentence on why it cannot be read."""
        try:
            note = self.load(name)
        except TarsdError as fault:
            return None, f"{name} cannot be read: {fault.message}"
        copies = self.copies(name)
        if note is None and not copies:
            return None, ""
        texts = [one.text for one in (note, *copies) if one is not None]
        private = frozenset(filter(self.is_private, frozenset().union(*map(lines.sessions_of, texts))))
        hash = " ".join(one.hash for one in (note, *copies) if one is not None)
        known = self._pages.get(name)
        if known is None or known[:2] != (hash, private):
            text = self._merged(name, note).text if copies or note is None else note.text
            known = self._pages[name] = (hash, private, lines.read(text, name, private.__contains__))
        return known[2], ""

    def _shown(self, name: str, local: bool) -> tuple[str, str]:
        page, problem = self._page(name)
        if page is None:
            return "", problem
        text = lines.shown(page, local=local)
        kept = "\n".join(text.split("\n")[:MAX_LINES])[:MAX_PROMPT]
        if kept == text:
            return text, page.problem
        kept = kept[: kept.rfind("\n")] if "\n" in kept else kept
        said = f"{name} is too long: only its first {MAX_LINES} lines or {MAX_PROMPT:,} characters are used."
        return kept, page.problem or said

    # ---------------------------------------------------------------------------------------------- changing

    def remember(
        self,
        text: str,
        *,
        kind: Kind = "semantic",
        section: str = "",
        session: str = "",
        private: bool = False,
        replace: str = "",
        local: bool = True,
    ) -> Change:
        """A new line, in place of the line `replace` if that is named; what was private there is so here.

        Raises Contradiction, Conflict for what is known already, NotFound for an unknown `replace`, BadRequest for a
        text that is none, Refused when memory is off, full, or the note cannot be changed.
        """
        self._need()
        text = lines.clean(text)
        section = lines.clean(section, 80) if section.strip() else ""
        draft = self.open(RULES if kind == "procedural" else MEMORY)
        known = draft.page.lines
        old = self._exact(known, replace) if replace.strip() else None
        self.check_new([line for line in known if line is not old], text, local=local)
        mark = lines.comment(self._date(), session, private or (old is not None and old.mark.private))
        if old is not None:
            draft.swap(old, text, mark)
        else:
            draft.insert(text, mark, section)
        return _changed(draft)

    def check_new(self, known: Iterable[MemoryLine], text: str, *, local: bool = True) -> None:
        """Raises Conflict if a known line says the same, Contradiction if one differs about the same thing."""
        clash: MemoryLine | None = None
        for line in known:
            if compare.same(line.text, text):
                raise Conflict(f"Already remembered: {self._told(line, local)}.", "Nothing changed.")
            if clash is None and compare.differs(line.text, text):
                clash = line
        if clash is not None:
            said = self._told(clash, local)
            raise Contradiction(
                f"That contradicts what is remembered: {said}.",
                "Replace that line, or word it differently to keep both.",
                line=clash.text if local or not clash.mark.private else "",
            )

    def forget(self, line: str, *, local: bool = True) -> Change:
        """Take out the line that is exactly this, or else the only one with these words.

        Looks at facts, rules and what was noticed; with local=False not at private lines. Raises NotFound, Conflict
        (several lines, or one with others under it), BadRequest, Refused.
        """
        asked = _asked(line)
        opened = [self.open(name) for name in (MEMORY, RULES, NOTICED)]
        found = [(draft, line) for draft in opened for line in draft.page.lines if local or not line.mark.private]
        hits = _matching(found, asked)
        if not hits:
            raise NotFound(
                "Nothing like that is remembered.", "List what is remembered: `tarsd memory`, or /memory in a chat."
            )
        texts = list(dict.fromkeys(line.text for _, line in hits))
        if len({tuple(compare.words(text)) or text for text in texts}) > 1:
            listed = "\n".join(f"- {text}" for text in texts[:10]) + ("\n- …" if len(texts) > 10 else "")
            raise Conflict(f"Several lines contain these words:\n{listed}", "Give the whole line.")
        draft = hits[0][0]
        gone = [line for where, line in hits if where is draft]
        if any(line.parent for line in gone):
            said = f"Other lines are nested under this one: {gone[0].text}."
            raise Conflict(said, f"Forget those first, or edit {draft.path} by hand.")
        draft.remove(gone)
        return _changed(draft)

    def suggest(self, text: str, *, session: str = "", private: bool = False) -> Change | None:
        """Add a line that another client wants remembered to Noticed.md; None if it is known already.

        Raises BadRequest for a text that is none, Refused when memory is off, the list is full or cannot be changed.
        """
        self._need()
        text = lines.clean(text)
        draft, known = self._quarantine()
        if not any(compare.same(text, other) for other in known):
            draft.insert(text, lines.comment(self._date(), session, private))
        return draft.change()

    def notice(self, texts: Iterable[str], session: str = "", private: bool = False) -> Change | None:
        """Add facts that a model noticed to Noticed.md; None if none of them is new, or memory is off.

        Raises Refused if that note cannot be changed.
        """
        if not self.enabled:
            return None
        draft, known = self._quarantine()
        mark = lines.comment(self._date(), session, private)
        for given in texts:
            try:
                text = lines.clean(given)
            except BadRequest:
                continue
            if any(compare.same(text, other) for other in known):
                continue
            try:
                draft.insert(text, mark)
            except Refused:
                break  # full: a review makes room
            known.append(text)
        return draft.change()

    def _quarantine(self) -> tuple[NoteDraft, list[str]]:
        """The list of what was noticed, and all that is known or noticed already."""
        draft = self.open(NOTICED)
        known = [line.text for name in (MEMORY, RULES) for line in self.lines(name)]
        return draft, known + [line.text for line in draft.page.lines]

    def _exact(self, known: Sequence[MemoryLine], wanted: str) -> MemoryLine:
        asked = _asked(wanted)
        found = [line for line in known if line.text == asked] or [
            line for line in known if compare.same(line.text, asked)
        ]
        if not found:
            raise NotFound("The line to replace was not found.", "Give it exactly as listed.")
        return found[0]

    def _need(self) -> None:
        if not self.enabled:
            raise Refused("Memory is off.", "Turn it on: enabled = true under [memory] in config.toml.")

    def _date(self) -> str:
        return self.today().strftime("%Y-%m-%d")

    def _told(self, line: MemoryLine, local: bool) -> str:
        return line.text.rstrip(".") if local or not line.mark.private else _SECRET


def _asked(text: str) -> str:
    """The text of a line that was given with or without its bullet and its comment. Raises BadRequest for none."""
    line = " ".join(text.split())
    if not line:
        raise BadRequest("No line was given.", "Give the line, or some words of it.", field="line")
    read = lines.read(line).lines
    return read[0].text if read else line


def _matching(found: Sequence[tuple[NoteDraft, MemoryLine]], asked: str) -> list[tuple[NoteDraft, MemoryLine]]:
    """The lines that are meant: the strictest reading that any line fits."""
    wanted = set(compare.words(asked))
    for fits in (
        lambda text: text == asked,
        lambda text: compare.same(text, asked),
        lambda text: compare.contains(text, asked),
        lambda text: bool(wanted) and wanted <= set(compare.words(text)),
    ):
        if hits := [(draft, line) for draft, line in found if fits(line.text)]:
            return hits
    return []


def _changed(draft: NoteDraft) -> Change:
    change = draft.change()
    if change is None:
        raise Conflict("That is already remembered, word for word.", "Nothing changed.")
    return change
