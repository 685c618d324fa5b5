"""When the disk is not believed yet: a vault that lost its notes all of a sudden, a note that is empty for a moment."""

from __future__ import annotations

import time
from collections.abc import Mapping

from tarsd.index.plan import Plan, lost_too_much
from tarsd.index.report import IndexState
from tarsd.store import FileRow, Key, Store
from tarsd.vault import FileInfo, Scan, Vault, settled


class ChangeGuard:
    """Remembers what was doubted and since when; a command goes past all of it."""

    def __init__(self, store: Store, grace_empty_s: float) -> None:
        self._store = store
        self._grace = grace_empty_s
        self._empty: dict[Key, float] = {}
        self._doubts: dict[str, float] = {}
        self._roots: dict[str, tuple[int, int]] = {}

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
        """Why the deletions of a scan of a whole collection are not believed yet, and seconds to the next look.

        A familiar folder that is quite empty is believed by a look at least `second_look_s` seconds after the first.
        """
        excluded = sum(1 for key in todo.vanished if vault.excluded_by(key[1], folder=False) is not None)
        known = len(rows) - excluded
        found = known - (len(todo.vanished) - excluded) + sum(1 for key in scan.files if key not in rows)
        name = vault.collection
        if not todo.vanished or not lost_too_much(known, found, marker=scan.marker):
            return None
        # A folder that never held `.obsidian` is recognised by being the same folder as before.
        familiar = scan.marker or (not self._store.database.meta(f"marker:{name}") and self._roots.get(name) == root)
        shown = f"collection {name}" if name else str(vault.root)
        missing = f"{known - found} of {known} notes are missing from {shown}; what is known of them is kept"
        if not familiar or found:
            # An absent disk that comes back without its notes yet is a first look, however long it was away.
            self._doubts.pop(name, None)
            hint = "If that is how you want it, run `tarsd reindex --full`; else connect the disk, and wait."
            return IndexState("suspicious", f"{missing}.", hint), look_again_s
        now = time.monotonic()
        left = self._doubts.setdefault(name, now) + second_look_s - now
        if left <= 0:
            return None
        hint = (
            f"If they are still missing at a second look after {second_look_s:.0f} seconds, they are taken as deleted. "
            "If they are not, bring them back before; the command `tarsd reindex --full` takes them as deleted at once."
        )
        return IndexState("suspicious", f"{missing} for now.", hint), left

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
