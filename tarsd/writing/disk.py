"""Changes that the daemon makes on disk itself, takes back, and settles after a crash."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

from tarsd.errors import Conflict, NotFound, TarsdError
from tarsd.vault import content_hash, decode
from tarsd.writing.changes import Change
from tarsd.writing.journal import Journal, JournalEntry
from tarsd.writing.notes import Notebook


class Disk:
    """Makes changes of a vault's notes; synchronous, and one at a time for each note is the caller's care."""

    def __init__(self, notebook: Notebook, journal: Journal) -> None:
        self._notebook = notebook
        self._journal = journal

    def hash_of(self, path: str) -> str | None:
        """The SHA-256 of a note's bytes; None if there is none."""
        raw = self._notebook.raw(path)
        return None if raw is None else content_hash(raw)

    def write(self, change: Change) -> str:
        """Make the change, if the note is the one that it was made for; returns the new hash. Raises as Vault."""
        vault = self._notebook.vault
        if change.if_hash is not None:
            if change.after == change.before and self.hash_of(change.path) == change.hash:
                return change.hash
            return vault.replace(change.path, change.after, change.if_hash)
        if self._notebook.exists(change.path):  # also in another case: macOS and Windows take the two for one
            raise Conflict(f"There is already a note at {change.path}.", "Choose another name.")
        return vault.create(change.path, change.after)

    def put_away(self, id: str, absorbs: Iterable[tuple[str, str]]) -> None:
        """Move what the change `id` holds as well into Obsidian's trash, as far as it is still what was read."""
        put: list[tuple[str, str, str]] = []
        for path, hash in absorbs:
            with contextlib.suppress(TarsdError):
                put.append((path, self._notebook.vault.discard(path, hash), hash))
        if put:
            self._journal.absorbed(id, put)

    def take_back(self, id: str) -> dict[str, Any]:
        """Undo a change, as a change of its own; returns and raises as `Writer.undo`."""
        entry = self._journal.get(id)
        if entry.state == "undone":
            raise Conflict("This change was already undone.", "Undo that undo to get it back.")
        now = self._notebook.raw(entry.path)
        if (None if now is None else content_hash(now)) != entry.after:
            message = f"{entry.path} has changed since, so it is left as it is."
            raise Conflict(message, "Check the note and change it yourself.")
        back = self._journal.before(entry, b"" if now is None else now)
        if entry.before is not None and back is None:
            raise NotFound("The earlier text of the note is no longer kept.", "Look for it in your backups.")
        reply = self._reverse(entry, now, back)
        self._journal.settle(reply["id"], "written")
        self._journal.settle(entry.id, "undone")
        for path, trashed, hash in entry.absorbed:
            with contextlib.suppress(TarsdError):  # somebody emptied the trash, or made a note in its place
                self._notebook.vault.restore(trashed, path, hash)
        if entry.undoes:
            self._journal.settle(entry.undoes, "written")
            with contextlib.suppress(NotFound):
                again = self._journal.get(entry.undoes).absorbed
                self.put_away(reply["id"], [(path, hash) for path, _, hash in again])
        return reply

    def _reverse(self, entry: JournalEntry, now: bytes | None, back: bytes | None) -> dict[str, Any]:
        journal, vault, path = self._journal, self._notebook.vault, entry.path
        if back is None:
            raw = b"" if now is None else now
            undo = journal.keep_discarded(path, raw, entry.kind, entry.conversation, "daemon", undoes=entry.id)
            trashed = self._or_failed(undo, lambda: vault.discard(path, content_hash(raw)))
            return {"id": undo, "path": path, "hash": None, "trashed": trashed}
        change = Change(path, "create" if now is None else "modify", now, back, decode(back).text)
        undo = journal.keep(change, entry.kind, entry.conversation, "daemon", undoes=entry.id)
        return {"id": undo, "path": path, "hash": self._or_failed(undo, lambda: self.write(change))}

    def _or_failed(self, id: str, act: Callable[[], str]) -> str:
        try:
            return act()
        except TarsdError:
            self._journal.settle(id, "failed")
            raise

    def recover(self) -> None:
        """Finish what a crash left open, remove its temporary files, and delete entries that are too old."""
        self._journal.prune()
        for entry in self._journal.entries():
            if entry.state == "planned":
                with contextlib.suppress(TarsdError):  # the vault is away: it is looked at when it was asked for
                    now = self.hash_of(entry.path)
                    self._journal.settle(entry.id, "written" if now == entry.after else "failed")
                    self._notebook.vault.sweep(entry.path, (entry.before, entry.after))
