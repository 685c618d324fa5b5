"""What the tests of tools share: a library over a real vault, a context that writes, and yes to everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tarsd.errors import NotFound
from tarsd.parse import Note, parse
from tarsd.providers.base import Evidence
from tarsd.tools import Context, NoteEntry, NoteView, Result, Toolbox, ToolProposal
from tarsd.vault import Vault
from tarsd.writing.edits import Change
from tarsd.writing.notes import Notebook


class Notes:
    """A `tools.Library` over a folder; private is what lies in Private/ or says `local_only: true`."""

    def __init__(self, root: Path) -> None:
        self.vault = Vault(root)
        self.notebook = Notebook(self.vault, own="tars")
        self.collections: set[str] = set()

    def find(self, query: str, limit: int, *, local: bool, private: bool = False) -> Sequence[Evidence]:
        words = set(query.casefold().split())
        found = []
        for path, note in self._notes():
            private = is_private(path, note)
            if words & set(" ".join(note.lines).casefold().split()) and (local or not private):
                text = "\n".join(note.lines).strip()
                link = f"[[{path.removesuffix('.md')}]]"
                lines = (1, len(note.lines))
                found.append(Evidence(0, path, note.title, "", link, *lines, text, 0.8, local_only=private))
        return found[:limit]

    def open(self, name: str) -> NoteView:
        wanted = name.casefold().removesuffix(".md")
        for path, note in self._notes():
            stem = path.casefold().removesuffix(".md")
            if wanted in (stem, stem.rpartition("/")[2], note.title.casefold()):
                loaded = self.notebook.load(path)
                collection = "work" if path in self.collections else ""
                return NoteView(path, note.title, is_private(path, note), note.ours, loaded, collection)
        self.vault.resolve(name)
        raise NotFound(f"There is no note “{name}”.")

    def list(self, folder: str, tag: str, recent: bool, limit: int, *, local: bool) -> Sequence[NoteEntry]:
        found = [
            NoteEntry(path, note.title, float(number), note.tags, is_private(path, note))
            for number, (path, note) in enumerate(self._notes())
            if (not folder or path.startswith(f"{folder}/")) and (not tag or tag in note.tags)
        ]
        shown = [one for one in found if local or not one.local_only]
        return (shown[::-1] if recent else shown)[:limit]

    def _notes(self) -> Sequence[tuple[str, Note]]:
        files = sorted(self.vault.scan().files.items())
        return [(path, parse(self.notebook.load(path).text, path)) for (_, path), _ in files]


def is_private(path: str, note: Note) -> bool:
    return path.startswith("Private/") or note.properties.get("local_only") is True


class Hand:
    """Writes what it is given, as the turn's writer does; `before` is called once before the next write."""

    def __init__(self, vault: Vault) -> None:
        self.vault = vault
        self.changes: list[Change] = []
        self.before: Any = None

    async def write(self, change: Change) -> str:
        if self.before is not None:
            before, self.before = self.before, None
            before()
        self.changes.append(change)
        if change.if_hash is None:
            return self.vault.create(change.path, change.after)
        return self.vault.replace(change.path, change.after, change.if_hash)


class Desk:
    """A toolbox with a context: `ask` calls a tool, `do` also says yes."""

    def __init__(self, notes: Notes, toolbox: Toolbox) -> None:
        self.notes = notes
        self.toolbox = toolbox
        self.hand = Hand(notes.vault)
        self.local = True
        self.private = False

    @property
    def context(self) -> Context:
        return Context("c-3f2a91", self.local, self.hand.write, self.private)

    async def ask(self, tool: str, /, **arguments: Any) -> Result | ToolProposal:
        return await self.toolbox.call(tool, arguments, self.context)

    async def result(self, tool: str, /, **arguments: Any) -> Result:
        answer = await self.ask(tool, **arguments)
        assert isinstance(answer, Result)
        return answer

    async def proposal(self, tool: str, /, **arguments: Any) -> ToolProposal:
        answer = await self.ask(tool, **arguments)
        assert isinstance(answer, ToolProposal)
        return answer

    async def do(self, tool: str, /, **arguments: Any) -> Result:
        return await (await self.proposal(tool, **arguments)).apply()

    def text(self, path: str) -> str:
        return (self.notes.vault.root / path).read_bytes().decode()


def fill(root: Path, notes: Mapping[str, str]) -> None:
    """Put notes into a vault."""
    for path, text in notes.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
