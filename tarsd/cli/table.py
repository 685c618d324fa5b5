"""Tables that fit a terminal: what is too long for its column goes on below; too many columns become lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tarsd.cli.terminal import Terminal, columns
from tarsd.cli.wrapping import wrapped

GAP = 2
NARROWEST = 8


def _as_it_is(text: str) -> str:
    return text


@dataclass(frozen=True)
class Cell:
    """A text on one line, and how it is painted once it is broken."""

    text: str
    paint: Callable[[str], str] = _as_it_is


def table(titles: Sequence[str], rows: Sequence[Sequence[Cell]], out: Terminal) -> list[str]:
    """The lines of a table. Where nobody looks at it, no cell is broken."""
    wanted = [max([columns(title), *(columns(row[at].text) for row in rows)]) for at, title in enumerate(titles)]
    room = out.edge - GAP * (len(titles) - 1)
    widths = _fitted(wanted, room) if out.live else wanted
    if out.live and sum(widths) > room:
        return _stacked(titles, rows, out)
    lines = _row([Cell(title, out.bold) for title in titles], widths, out)
    for row in rows:
        lines += _row(row, widths, out)
    return lines


def _fitted(wanted: Sequence[int], room: int) -> list[int]:
    """Widths that take at most so much room: the widest give way first, none below `NARROWEST`."""
    widths = list(wanted)
    while sum(widths) > room:
        widest = max(widths)
        if widest <= NARROWEST:
            break
        others = [width for width in widths if width < widest]
        many = widths.count(widest)
        least = max([NARROWEST, *others])
        cut = max(1, min(widest - least, -(-(sum(widths) - room) // many)))
        widths = [width - cut if width == widest else width for width in widths]
    return widths


def _row(cells: Sequence[Cell], widths: Sequence[int], out: Terminal) -> list[str]:
    pieces = [
        wrapped(cell.text, out, 0, width=width).split("\n") if columns(cell.text) > width else [cell.text]
        for cell, width in zip(cells, widths, strict=True)
    ]
    lines = []
    for at in range(max(map(len, pieces))):
        parts = []
        for cell, piece, width in zip(cells, pieces, widths, strict=True):
            text = piece[at] if at < len(piece) else ""
            parts.append((cell.paint(text) if text else "") + " " * (width - columns(text) + GAP))
        lines.append("".join(parts).rstrip(" "))
    return lines


def _stacked(titles: Sequence[str], rows: Sequence[Sequence[Cell]], out: Terminal) -> list[str]:
    """Each row as lines of its own, with what each cell is; empty cells are left out."""
    lines: list[str] = []
    for row in rows:
        lines += [""] if lines else []
        for title, cell in zip(titles, row, strict=True):
            if cell.text:
                shown = wrapped(f"{title}: {cell.text}" if title else cell.text, out, GAP, width=out.edge).split("\n")
                lines += map(cell.paint, shown)
    return lines
