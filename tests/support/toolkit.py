"""What the tests of tools share: a library over a real vault, a context that writes, and yes to everything."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tarsd.config import PrivacySettings, load
from tarsd.errors import StoreError
from tarsd.notes import ANYWHERE, NoteLibrary, Reader, Retrieval, Within
from tarsd.notes.resolve import NameIndex
from tarsd.parse import parse
from tarsd.passage import NoteRow, Passage
from tarsd.search import Searcher
from tarsd.tools import Context, Result, Toolbox, ToolProposal
from tarsd.vault import Vault
from tarsd.writing.changes import Change
from tarsd.writing.notes import Notebook


class Notes(NoteLibrary):
    """The library of a folder without an index; private is what lies in Private/ or says so of itself.

    Notes whose paths are in `collections` lie in the collection "work".
    """

    def __init__(self, root: Path) -> None:
        self.vault = Vault(root)
        self.notebook = Notebook(self.vault, own="tars")
        self.collections: set[str] = set()
        config = replace(load(vault=root), privacy=PrivacySettings(local_only=("Private/",)))
        super().__init__(self._nothing, {"": self.vault, "work": Vault(root, "work")}, config)

    @staticmethod
    def _nothing() -> Searcher:
        raise StoreError("There is no index.")

    def rows(self) -> Sequence[NoteRow]:
        paths = sorted(path for _, path in self.vault.scan().files)
        views = [self.view(("work" if path in self.collections else "", path)) for path in paths]
        return [replace(view.note, id=number) for number, view in enumerate(views)]

    def named(self, name: str, hidden: Collection[int] = ()) -> list[NoteRow]:
        return NameIndex(self.rows()).find(name, hidden)


class WordReader(Reader):
    """Finds whole notes that share a word with the query."""

    def retrieve(
        self, query: str, limit: int, *, memory: bool = False, private: bool = False, within: Within = ANYWHERE
    ) -> Retrieval:
        words = set(query.casefold().split())
        found = []
        for row in self._library.rows():
            lines = parse(self._library.view(row.key).loaded.text, row.path).lines
            if words & set(" ".join(lines).casefold().split()) and (self.sees_private or not row.local_only):
                found.append(Passage("\n".join(lines).strip(), 1, len(lines), note=row, relevance=0.8))
        return Retrieval(tuple(found[:limit]))


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
        return Context("c-3f2a91", WordReader(self.notes, model_is_local=self.local), self.hand.write, self.private)

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
