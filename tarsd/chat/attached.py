"""What goes along with a message, as the model may see it: notes and files, pictures, the text that was selected."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from tarsd.chat.evidence import mentions
from tarsd.chat.turn import Turn
from tarsd.errors import NotFound, Refused, TarsdError
from tarsd.notes import Reader
from tarsd.notes.pictures import embedded, is_picture
from tarsd.passage import Origin, Passage
from tarsd.protocol import TurnRequest
from tarsd.providers.base import Picture

PRIVATE_SELECTION = "The selection may be from a private note and was left out, as it would leave this machine."
BLIND = "The model does not look at pictures, and no text was read in “{name}”."

Thread = Callable[..., Awaitable[Any]]


@dataclass
class Attached:
    """What was attached or named, as far as the model may see it.

    `withheld` are names that it may not see, `unread` those of nothing that can be read. `origins` are what the
    selection and the pictures are from; `private`: one of these, or of the notes, must stay on this machine.
    """

    passages: list[Passage] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    withheld: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    selection: str = ""
    origins: list[Origin] = field(default_factory=list)
    private: bool = False


async def attach(reader: Reader, request: TurnRequest, turn: Turn, thread: Thread, *, pictures: int) -> Attached:
    """What goes along with a message; of pictures at most `pictures`, 0 for a model that does not look at any."""
    found = Attached()
    shown: list[tuple[str, str]] = []
    for name in dict.fromkeys([*request.notes, *mentions(request.message)]):
        if pictures and is_picture(name):
            shown.append((name, ""))
            continue
        try:
            found.passages += await thread(reader.attach, name)
        except TarsdError as error:
            missing = isinstance(error, NotFound) and is_picture(name)
            turn.notice(BLIND.format(name=name) if missing else error.message)
            (found.withheld if isinstance(error, Refused) else found.unread).append(name)
    shown += await thread(embedded, found.passages)
    if pictures:
        await _look(found, reader, shown, turn, thread, pictures)
    else:
        await _read_in(found, reader, [name for name, _ in shown], thread)
    found.private = found.private or any(passage.local_only for passage in found.passages)
    await _select(found, reader, request, turn, thread)
    return found


async def _look(
    found: Attached, reader: Reader, shown: Sequence[tuple[str, str]], turn: Turn, thread: Thread, most: int
) -> None:
    """The pictures themselves."""
    for name, folder in shown[:most]:
        try:
            seen = await thread(reader.picture, name, folder)
        except TarsdError as error:
            turn.notice(error.message)
            (found.withheld if isinstance(error, Refused) else found.unread).append(name)
            continue
        found.pictures.append(seen.picture)
        found.origins.append(seen.origin)
        found.private |= seen.local_only
    if left := len(shown) - most:
        turn.notice(f"{left} more pictures were not sent: at most {most} go along." if left > 0 else "")


async def _read_in(found: Attached, reader: Reader, names: Collection[str], thread: Thread) -> None:
    """The text in the pictures that notes show, where some was read."""
    for name in names:
        try:
            found.passages += await thread(reader.attach, name)
        except TarsdError:
            continue


async def _select(found: Attached, reader: Reader, request: TurnRequest, turn: Turn, thread: Thread) -> None:
    """The selection, "" where it must not be sent; judged by its note, or else by the attached ones that are unseen."""
    if not request.selection:
        return
    kept, private = not {*found.withheld, *found.unread} & set(request.notes), False
    origins: set[Origin] = set()
    if request.selection_note:
        try:
            attached = await thread(reader.attach, request.selection_note)
            private = any(passage.local_only for passage in attached)
            origins = {passage.note.origin for passage in attached}
        except TarsdError:  # private, or it cannot be looked at
            kept = False
            origins = {Origin("", request.selection_note)}
    if kept or reader.sees_private:
        found.selection = request.selection
        found.origins += origins
        found.private |= private or not kept
        return
    turn.notice(PRIVATE_SELECTION)
    found.withheld += [request.selection_note] if request.selection_note else []
