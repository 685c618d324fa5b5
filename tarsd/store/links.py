"""Where links point, as Obsidian finds it, and what a note is called by those who link to it. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tarsd.vault import fold_name, nfc

_ANCHOR_CHARS = 400


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """A file that bears the wanted name; `path` is folded and without ".md", `raw` as it is."""

    id: int
    path: str
    raw: str
    alias: bool


def path_fold(path: str) -> str:
    """A path as links spell it: folded, without the ".md" of a note."""
    return fold_name(path).removesuffix(".md")


def key_of(target: str) -> str:
    """The name by which a link target is looked up: its last part, folded, without ".md"."""
    return path_fold(target.rstrip("/")).rpartition("/")[2]


def keys_of(path: str, aliases: Iterable[str]) -> list[tuple[str, bool]]:
    """Every name of a file as (key, is an alias)."""
    own = key_of(path)
    others = {fold_name(alias) for alias in aliases if alias and "/" not in alias} - {own}
    return [(own, False), *((alias, True) for alias in sorted(others))]


def resolve(target: str, source: str, candidates: Sequence[LinkTarget]) -> int | None:
    """The file a link means; `candidates` are the files of the source's collection that bear the target's key.

    A whole path wins, then a path from the source's folder, then a path ending (below the source's folder first, the
    shorter the better), then an alias. Of paths that differ by case, the one that is spelled so goes first.
    """
    if not candidates:
        return None
    exact = nfc(target)
    wanted = path_fold(exact)
    named = [candidate for candidate in candidates if not candidate.alias]
    above = source.rpartition("/")[0]
    folder = path_fold(above)
    if wanted.startswith(("./", "../")):
        return _whole(_below(above, exact), named)
    if wanted.startswith("/"):
        return _whole(exact.lstrip("/"), named)
    found = _whole(exact, named)
    if found is None and folder and named:
        found = _whole(_below(above, exact), named)
    if found is None and named:
        ending = [candidate for candidate in named if candidate.path.endswith("/" + wanted)]
        if ending:
            near = f"{folder}/" if folder else ""
            found = min(
                ending,
                key=lambda candidate: (
                    not _stem(candidate.raw).endswith(f"/{_stem(exact)}"),
                    not candidate.path.startswith(near),
                    len(candidate.path),
                    candidate.path,
                    candidate.raw,
                ),
            ).id
    if found is None and "/" not in wanted and len(named) < len(candidates):
        aliased = [candidate for candidate in candidates if candidate.alias]
        found = min(aliased, key=lambda candidate: (len(candidate.path), candidate.path, candidate.raw)).id
    return found


def _below(folder: str, path: str) -> str:
    joined = f"{folder}/{path}" if folder else path
    return posixpath.normpath(joined) if "./" in path else joined


def _whole(path: str, named: Sequence[LinkTarget]) -> int | None:
    folded = path_fold(path)
    same = [candidate for candidate in named if candidate.path == folded]
    # Two files that differ by case only: the same one each time, whatever the order of their ids.
    return min(same, key=lambda one: (_stem(one.raw) != _stem(path), one.raw)).id if same else None


def _stem(path: str) -> str:
    return path[:-3] if path.lower().endswith(".md") else path


def anchors(texts: Iterable[tuple[str, int]], path: str) -> str:
    """What others call a note: link texts with their numbers, most used first, up to 400 characters, each once."""
    seen = {key_of(path)}
    kept: list[str] = []
    room = _ANCHOR_CHARS
    for text, _ in sorted(texts, key=lambda item: (-item[1], item[0])):
        shown = " ".join(text.split())[:120]
        folded = fold_name(shown)
        if not shown or folded in seen or len(shown) > room:
            continue
        seen.add(folded)
        kept.append(shown)
        room -= len(shown) + 1
    return "\n".join(kept)
