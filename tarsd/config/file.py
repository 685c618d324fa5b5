"""The config file as a table, and on which line each of its keys stands (tomllib doesn't say)."""

from __future__ import annotations

import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tarsd.errors import ConfigError

Key = tuple[str, ...]
"""The way to a value: ("collection", "0", "name")."""

NAME = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""


def read_table(file: Path, env: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """The file as a table, and its text; no file is an empty table. Raises ConfigError when it is no TOML."""
    text = ""
    try:
        if not stat.S_ISREG(file.stat().st_mode):  # a pipe would be waited for
            raise ConfigError([f"{file} is not a regular file"])
        text = file.read_bytes().decode("utf-8-sig")
        return tomllib.loads(text), text
    except FileNotFoundError:
        if not env.get("TARSD_CONFIG"):
            return {}, ""
        problem = f"{file} does not exist (set by TARSD_CONFIG)"
    except OSError as error:
        problem = f"{file} cannot be read: {error.strerror}"
    except UnicodeDecodeError as error:
        problem = f"{file}:{error.object[: error.start].count(10) + 1}: not UTF-8 text"
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"at line (\d+)", str(error))
        line = int(at[1]) if at else text.rstrip().count("\n") + 1
        why = re.sub(r" [(]at .*[)]$", "", str(error))
        why = "put text in quotes" if why == "Invalid value" else why[:1].lower() + why[1:]
        problem = f"{file}:{line}: not valid TOML: {why}"
    except (ValueError, RecursionError):
        problem = f"{file} cannot be read: something is nested too deeply, or a number is too long"
    raise ConfigError([problem])


def key_lines(text: str) -> dict[Key, int]:
    """The line of every key and table: ("embedding", "model") -> 12. The tables of an array are numbered from 0."""
    lines: dict[Key, int] = {}
    table: Key = ()
    counts: dict[Key, int] = {}
    quote = ""
    for number, line in enumerate(text.splitlines(), 1):
        inside = bool(quote)
        for mark in re.findall(r'"""|\'\'\'', line):
            quote = "" if mark == quote else quote or mark
        if inside:
            continue
        if head := re.match(rf"\s*(\[\[?)\s*({NAME}(?:\s*\.\s*{NAME})*)\s*\]", line):
            table = _key(head[2])
            if head[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, str(counts[table]))
            lines.setdefault(table, number)
        elif pair := re.match(rf"\s*({NAME}(?:\s*\.\s*{NAME})*)\s*=", line):
            lines.setdefault((*table, *_key(pair[1])), number)
    return lines


def _key(dotted: str) -> Key:
    return tuple(part.strip("\"'") for part in re.findall(NAME, dotted))
