"""What a name says: which files are notes, which are copies of a conflict, which are left out, which paths are none."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Literal

from ..config.rules import fold_name, folded, path_rule
from ..errors import PathRefused

Kind = Literal["note", "canvas", "base", "pdf", "office", "book", "web", "picture"]
"""The first three are notes; the others are files, which are read and never written."""

KINDS: dict[str, Kind] = {".md": "note", ".canvas": "canvas", ".base": "base"}
__all__ = ["KINDS", "Kind", "Rules", "fold_name", "is_conflict_copy", "kind_of", "nfc", "safe_parts"]

MAX_FOLDERS = 64
MAX_PATH_BYTES = 1000


def nfc(text: str) -> str:
    """The composed form, in which all paths are compared."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def kind_of(name: str, kinds: Mapping[str, Kind] = KINDS) -> Kind | None:
    """What sort of note a file of this name is, if any; or which of the `kinds`, by endings."""
    return kinds.get(name[name.rfind(".") :].lower())


_CONFLICT_WORDS = ("onfli", "競合", "冲突")  # no regular expression for the 6,500 names without one
_CONFLICT = re.compile(
    r"""(?: \.sync-conflict-\d{8}-\d{6}(?:-[a-z0-9]{7})?                     # Syncthing
        | \((?:[^()]*\s)?(?:conflicted\ copy|in\ konflikt\ stehende\ kopie|copie\ en\ conflit|copia\ en\ conflicto
            |copia\ in\ conflitto|cópia\ em\ conflito|conflicterende\ kopie|競合コピー|冲突副本|case\ conflict)
            (?:\s[^()]*(?:\(\d+\))?)?\)                                       # Dropbox, Nextcloud, Obsidian Sync
        | _conflict-\d{8}-\d{6}                                               # ownCloud
        | \s?\(sfconflict\s[^()]*\)                                           # Seafile
        | _[a-z]{3}-\d\d-\d{6}-\d{4}_conflict                                 # Synology
        )(?:\s\(\d+\))?$""",
    re.IGNORECASE | re.VERBOSE,
)


def is_conflict_copy(name: str) -> bool:
    """Has a sync tool made this file because two machines changed one? `Meeting 2.md` is a note like any other."""
    folded = name.lower()
    if not (_CONFLICT_WORDS[0] in folded or _CONFLICT_WORDS[1] in folded or _CONFLICT_WORDS[2] in folded):
        return False
    return bool(_CONFLICT.search(nfc(folded)[: nfc(folded).rfind(".")]))


class Rules:
    """Which paths are left out: the config's `exclude`, and Obsidian's own excluded files. Case never matters.

    `broken` holds the expressions of Obsidian's list that Python does not understand.
    """

    def __init__(self, exclude: Iterable[str] = (), obsidian: Iterable[str] = ()) -> None:
        self.broken: list[str] = []
        self._paths: list[tuple[str, re.Pattern[str]]] = []
        self._files: list[tuple[str, re.Pattern[str]]] = []
        for rule in exclude:
            self._add_path(rule, path_rule(rule))
        for rule in obsidian:
            if len(rule) > 2 and rule[0] == rule[-1] == "/":
                # Tested on files only, as in Obsidian: it may fit a folder's name and no note in it.
                self._add_expression(rule, re.sub(r"\(\?<(?![=!])", "(?P<", rule[1:-1]))  # JavaScript's named group
            else:  # `Work/Plan` stands for the note as well as for the folder
                self._add_path(rule, path_rule(rule, anchored=True, end=r"(?:/|\.|\Z)"))
        self.active = bool(self._paths or self._files)
        self._any_path = re.compile("|".join(e.pattern for _, e in self._paths) or r"\Z(?!\Z)", re.IGNORECASE)

    def _add_path(self, rule: str, expression: re.Pattern[str] | None) -> None:
        if expression is not None:
            self._paths.append((rule, expression))

    def _add_expression(self, rule: str, source: str) -> None:
        try:
            self._files.append((rule, re.compile(source, re.IGNORECASE)))
        except (re.error, OverflowError, RecursionError):
            self.broken.append(rule)

    def hit(self, path: str) -> str | None:
        """The rule that leaves `path` out, if one does. A folder's path ends with `/`."""
        same = folded(path)
        if self._any_path.search(same):
            return next(rule for rule, expression in self._paths if expression.search(same))
        if self._files and not path.endswith("/"):
            return next((rule for rule, expression in self._files if expression.search(path)), None)
        return None


_ENCODED = re.compile(r"%(?:2e|2f|5c|25|00)", re.IGNORECASE)
_DRIVE = re.compile(r"[A-Za-z]:(?:/|$)")


def safe_parts(relative: str) -> list[str]:
    """The segments of a relative path that can only mean something inside the vault; raises PathRefused."""

    def refuse(why: str) -> PathRefused:
        return PathRefused(
            f"This path is not allowed: {why}.", "Give a path relative to the vault, such as Folder/Note.md."
        )

    if not isinstance(relative, str) or not relative.strip():
        raise refuse("it is empty")
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in relative):
        raise refuse("it contains control characters")
    if "\\" in relative or relative.startswith("/") or _DRIVE.match(relative) or _ENCODED.search(relative):
        raise refuse("it is absolute, has backslashes or is encoded")
    parts = relative.split("/")
    if len(parts) > MAX_FOLDERS or len(relative.encode()) > MAX_PATH_BYTES or any(len(p.encode()) > 255 for p in parts):
        raise refuse("it is too long")
    if parts[0] == "~" or (parts[0].startswith("~") and len(parts) > 1):
        raise refuse("it starts with ~")
    for part in parts:
        # Other characters that look like dots and slashes become those where a disk or a client normalises names.
        if any(not piece.strip(" .") for piece in re.split(r"[/\\]", unicodedata.normalize("NFKC", part))):
            raise refuse("it has empty parts or . or ..")
        if part.startswith("."):
            raise refuse("it is hidden")
    return parts
