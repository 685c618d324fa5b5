"""One setting is written into the config file; every other line, comments included, stays as it is."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import tomllib
from pathlib import Path

from tarsd import files
from tarsd.errors import Refused

_HEADER = re.compile(r"\s*\[")
_VALUE = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^#\n"']*?)(?P<rest>[ \t]*(?:#.*)?)$""")


def set_value(file: Path, table: str, key: str, value: str) -> bool:
    """Write `key = "value"` under `[table]` of `file`, which is made if it is missing; False if it says so already.

    The file is replaced in one step, or what a link points to, and keeps its mode. Raises Refused where it cannot be
    read or written, or where the line cannot be changed with everything else as it is.
    """
    target = Path(os.path.realpath(file))
    by_hand = f"Write it yourself: {key} = {json.dumps(value)} under [{table}]."
    try:
        raw = target.read_bytes() if target.exists() else b""
        text = raw.decode()
        before = tomllib.loads(text)
        new = edited(text, table, key, value)
        wanted = {**before, table: {**before.get(table, {}), key: value}}
        if wanted == before:
            return False
        if tomllib.loads(new) != wanted:
            raise Refused(f"{file} was not changed: its [{table}] is written in an unusual way.", by_hand)
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o600
        files.make_folder(target.parent)
        with contextlib.suppress(FileNotFoundError):
            if target.read_bytes() != raw:
                raise Refused(f"{file} was changed just now, and was left alone.", "Try again.")
        files.replace(target, new.encode(), mode)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, TypeError) as error:
        raise Refused(f"{file} was not changed: it is no valid TOML.", "tarsd config check shows why.") from error
    except OSError as error:
        raise Refused(f"{file} cannot be written: {error.strerror}.", by_hand) from error
    return True


def edited(text: str, table: str, key: str, value: str) -> str:
    """The text of a TOML file with this value; whether it came out right is for the caller to see."""
    lines = text.splitlines(keepends=True)
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    said = f"{key} = {json.dumps(value, ensure_ascii=False)}"
    header = re.compile(rf"\s*\[\s*{re.escape(table)}\s*\]\s*(?:#.*)?$")
    own = re.compile(rf"(?P<indent>\s*)(?:{re.escape(key)}|\"{re.escape(key)}\")\s*=\s*(?P<value>.*)$")
    start = next((at for at, line in enumerate(lines) if header.match(line.rstrip("\r\n"))), None)
    if start is None:
        gap = "" if not lines else end if lines[-1].endswith("\n") else 2 * end
        return text + gap + f"[{table}]{end}{said}{end}"
    for at in range(start + 1, len(lines)):
        line = lines[at].rstrip("\r\n")
        if _HEADER.match(line):
            break
        if found := own.match(line):
            written = _VALUE.match(found["value"])
            rest = written["rest"] if written else ""
            lines[at] = found["indent"] + said + rest + lines[at][len(line) :]
            return "".join(lines)
    if not lines[start].endswith("\n"):
        lines[start] += end
    lines.insert(start + 1, said + end)
    return "".join(lines)
