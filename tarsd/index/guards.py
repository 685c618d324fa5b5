"""When the disk is not believed yet: a vault that lost its notes all of a sudden, a note that is empty for a moment."""

from __future__ import annotations

import time
from collections.abc import Mapping

from tarsd.index.plan import FEW, Plan, lost_too_much, main_folders
from tarsd.index.report import IndexState
from tarsd.store import FileRow, Key, Store
from tarsd.vault import FileInfo, Scan, Vault, settled


class ChangeGuard:
    """Remembers what was doubted and since when; a command goes past all of it."""

    def __init__(self, store: Store, grace_empty_s: float) -> None:
        self._store = store
        self._grace = grace_empty_s
        self._empty: dict[Key, float] = {}
        # Of each collection, since when its losses are doubted, and how many notes were missing at the last look.
        self._doubts: dict[str, tuple[float, int]] = {}
        self._roots: dict[str, tuple[int, int]] = {}
        # What was believed lately, bit by bit, and when.
        self._removed: dict[str, list[tuple[float, int]]] = {}

    def wants_all(self, collection: str, todo: Plan, within_s: float) -> bool:
        """Whether a partial look shows so many losses that only a look at the whole collection may believe them."""
        if not todo.vanished and len(todo.empty) <= FEW:
            return False
        recent, known = self._recently(collection, within_s), self._store.notes.known(collection)
        lost = len(todo.vanished) + len(todo.empty) + recent
        # most of a folder that holds most of the notes may be little more than a quarter
        return len(todo.vanished) > known // 2 or lost > max(FEW, (known + recent) // 4)

    def doubt(
        self,
        vault: Vault,
        root: tuple[int, int],
        scan: Scan,
        rows: Mapping[Key, FileRow],
        todo: Plan,
        second_look_s: float,
        look_again_s: float,
    ) -> tuple[IndexState, float] | None:
        """Why the losses of a scan of a whole collection are not believed yet, and seconds to the next look.

        Those of a familiar folder are believed by a look at least `second_look_s` seconds after the first, unless some
        came back in between.
        """
        name = vault.collection
        loss = self._loss(vault, scan, rows, todo, second_look_s)
        if loss is None:
            return None
        folder, known, lost = loss
        # A folder that never held `.obsidian` is recognised by being the same folder as before.
        familiar = scan.marker or (not self._store.database.meta(f"marker:{name}") and self._roots.get(name) == root)
        shown = "/".join(part for part in (f"collection {name}" if name else str(vault.root), folder[:-1]) if part)
        how = "missing or empty in" if todo.empty else "missing from"
        missing = f"{lost} of {known} notes are {how} {shown}; they stay in the index"
        if not familiar or (lost < known and not scan.marker):
            # An absent disk that comes back without its notes yet is a first look, however long it was away.
            self._doubts.pop(name, None)
            hint = "If this is intended, run `tarsd reindex --full`; otherwise connect the disk and wait."
            return IndexState("suspicious", f"{missing}.", hint), look_again_s
        now = time.monotonic()
        since, before = self._doubts.get(name, (now, lost))
        self._doubts[name] = (now if lost < before else since, lost)
        left = self._doubts[name][0] + second_look_s - now
        if left <= 0:
            return None
        hint = (
            f"If they are still missing at a second look after {second_look_s:.0f} seconds, they are taken as deleted. "
            "If they are not, bring them back before; the command `tarsd reindex --full` takes them as deleted at once."
        )
        return IndexState("suspicious", f"{missing} for now.", hint), left

    def _loss(
        self, vault: Vault, scan: Scan, rows: Mapping[Key, FileRow], todo: Plan, within_s: float
    ) -> tuple[str, int, int] | None:
        """The folder, with "/" at its end, that lost too much, how many notes it had, and how many are lost.

        A folder counts that held most of the notes. What is left out from now on, or is elsewhere now, is not lost; a
        note that is empty all of a sudden is, where many are.
        """
        left_out = {key for key in todo.vanished if vault.excluded_by(key[1], folder=False) is not None}
        known = [path for key in rows if key not in left_out for path in key[1:]]
        gone = [path for key in todo.vanished if key not in left_out for path in key[1:]]
        new = sum(1 for key in scan.files if key not in rows)
        if gone and len(gone) - new >= len(known):
            return "", len(known), len(known)
        gone += [info.path for info in todo.empty]
        recent = self._recently(vault.collection, within_s)
        if len(gone) + recent - new <= FEW:
            return None
        for folder, held in main_folders(known).items():
            lost = sum(path.startswith(folder) for path in gone) - new
            if gone and lost_too_much(held + recent, lost + recent):
                return folder, held, lost
        return None

    def _recently(self, collection: str, within_s: float) -> int:
        """How many notes were removed within so many seconds, by one look or several."""
        since = time.monotonic() - within_s
        kept = self._removed[collection] = [row for row in self._removed.get(collection, ()) if row[0] > since]
        return sum(count for _, count in kept)

    def removed(self, collection: str, count: int) -> None:
        """So many notes were believed to be deleted."""
        if count:
            self._removed.setdefault(collection, []).append((time.monotonic(), count))

    def believed(self, vault: Vault, root: tuple[int, int], scan: Scan) -> None:
        """A scan of a whole collection was as it should be."""
        name = vault.collection
        self._doubts.pop(name, None)
        self._roots[name] = root
        if scan.marker and not self._store.database.meta(f"marker:{name}"):
            self._store.database.set_meta(f"marker:{name}", 1)

    def emptied(self, todo: Plan, scan: Scan, *, force: bool) -> tuple[list[FileInfo], float | None]:
        """Notes that became empty and stayed so for the grace time; seconds until the others are to be seen again."""
        now, stayed, again = time.time(), list[FileInfo](), None
        waiting = {info.key for info in todo.empty}
        for key in [key for key in self._empty if key in scan.files and key not in waiting]:
            del self._empty[key]
        for info in todo.empty:
            since = self._empty.setdefault(info.key, now)
            if force or not self._grace or (now - since >= self._grace and settled(info, now, self._grace)):
                del self._empty[info.key]
                stayed.append(info)
            else:
                again = self._grace
        return stayed, again
