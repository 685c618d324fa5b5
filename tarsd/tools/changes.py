"""Makes a proposal of a planned change: what is shown, and what happens if the note changes before the approval."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tarsd.errors import ToolError
from tarsd.parse import parse
from tarsd.tools.base import Context, NotAsShown, Result, ToolProposal
from tarsd.vault import decode
from tarsd.writing import Change, until_written

VERSION_CHARS = 12
DIFF_CHARS = 250_000
TEXT_CHARS = 100_000
VERSION = " Its version is now"


def version(hash: str) -> str:
    """The name of a note's state for a model: enough of the hash, and short enough to be copied without a slip."""
    return hash[:VERSION_CHARS]


def told(text: str) -> str:
    """What a person is told of a change that was made: what the model is, without the note's version."""
    return text.partition(VERSION)[0]


def propose(
    change: Change,
    title: str,
    said: str,
    context: Context,
    *,
    again: Callable[[], ToolProposal] | None = None,
    private: bool = True,
) -> ToolProposal:
    """Ask for `change`; `said` is what the model is told afterwards. `private`: the written text stays private.

    `again` makes the same proposal anew when the note changed before the yes came; without it that is a conflict.
    What comes of it is done at once only where it is what was shown.
    """
    if change.before == change.after:
        raise ToolError("That changes nothing: the note already says this.")

    async def apply() -> Result:
        planned = change

        async def replan() -> bool:
            nonlocal planned
            if again is None:
                return False
            failed, fresh = planned, await asyncio.to_thread(again)
            if fresh.change is None or not fresh.change.is_as_shown(change):
                raise NotAsShown(fresh)
            planned = fresh.change
            return planned.if_hash != failed.if_hash

        hash = await until_written(lambda: context.write(planned), again=replan)
        return Result(f"{said}{VERSION} {version(hash)}.")

    if unseen := change.unseen:
        title = f"{title} (with {unseen:,} invisible sign{'' if unseen == 1 else 's'}, shown as ⟨U+…⟩)"
    exposes = context.private and not private
    if exposes:
        title = f"{title} (this turn has read private notes, and this one is not private)"
    return ToolProposal(title, apply, change, _capped(change.diff()), exposes)


def check_own(change: Change) -> None:
    """Refuse a change that would make a note look like one that the daemon writes. Raises `ToolError`."""
    if not _ours(change.before, change.path) and _ours(change.after, change.path):
        raise ToolError("The property “tars” marks notes of the assistant itself; leave it out of the text.")


def checked(text: str, name: str, *, may_be_empty: bool = False) -> str:
    """A text that a model wants written. Raises `ToolError` when there is none, or far too much."""
    if not text.strip() and not may_be_empty:
        raise ToolError(f"{name}: “text” is empty. Say what to write.")
    if len(text) > TEXT_CHARS:
        raise ToolError(f"{name}: “text” is too long: {len(text):,} characters. At most {TEXT_CHARS:,} fit.")
    return text


def _ours(raw: bytes | None, path: str) -> bool:
    return raw is not None and parse(decode(raw).text, path).ours


def _capped(diff: str) -> str:
    if len(diff) <= DIFF_CHARS:
        return diff
    cut = diff[:DIFF_CHARS]
    left = diff.count("\n") - cut.count("\n")
    return f"{cut}\n… and {left:,} more lines\n"
