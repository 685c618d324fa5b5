"""A report for others, as Markdown: versions, checks, settings and the end of the log, without what is private.

What cannot be known to be harmless is not in it: of settings only numbers, switches and models, of the log only the
fields that hold no text of others, of findings what they say is public.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import tarsd
from tarsd.config import Config, as_tables
from tarsd.doctor.finding import Finding, Skip
from tarsd.doctor.scrub import Redactor
from tarsd.doctor.subject import DoctorContext
from tarsd.errors import NotFound

LOG_LINES: Final = 50
LONGEST: Final = 300
MARKS: Final = {"ok": "✓", "warning": "!", "fault": "✗", "skipped": "–"}
OURS: Final = ("Program", "Clock", "Disk", "Index", "Models")
"""Groups whose texts hold nothing of a vault, so that a note called Python changes no word of them."""

SHOWN: Final = ("embedding.model", "chat.model", "chat.fallback", "search.fusion", "watch.mode")
"""Settings that are words, and say nothing of their owner."""
FIELDS: Final = ("error", "at", "code", "pid", "port", "repeated", "faults", "route", "check")
"""Fields of the log that hold no text of others."""


def report(subject: DoctorContext, lines: Sequence[Finding]) -> str:
    """The whole report; `lines` are those of `examine`, all of them."""
    scrub = Redactor.of(subject)
    parts = [
        "# tarsd report",
        f"tarsd {tarsd.__version__}, Python {platform.python_version()}, "
        f"{platform.system()} {platform.release()} on {platform.machine()}",
        "## Checks",
        "\n".join(_checks(lines, scrub)),
        "## Settings",
        *_settings(subject, scrub),
        "## Log",
        *_log(subject, scrub),
    ]
    return "\n\n".join(parts) + "\n"


def _checks(lines: Iterable[Finding], scrub: Redactor) -> Iterator[str]:
    for line in lines:
        hide = scrub.places if line.group in OURS else scrub.names
        text = hide(line.text if line.public is None else line.public)
        yield f"- {MARKS[line.state]} {line.group}, {line.name}: {_one(text)} ({line.ms:.0f} ms)"


def _one(text: str) -> str:
    """On one line of at most `LONGEST` characters."""
    return " ".join(text.split())[:LONGEST]


def _settings(subject: DoctorContext, scrub: Redactor) -> Iterator[str]:
    try:
        config = subject.config
    except Skip as reason:
        yield str(reason)
        return
    if subject.problems:
        yield "They have errors; these are the defaults."
    changed = list(_changed(config))
    yield "All have their defaults, except:" if changed else "All have their defaults."
    if changed:
        yield "\n".join(f"- `{name}` = {scrub.places(value)}" for name, value in changed)


def _changed(config: Config) -> Iterator[tuple[str, str]]:
    """The settings that differ from the defaults, with as much of their values as may be told."""
    defaults = as_tables(Config(config.vault, config.vault_id, config.paths))
    for section, values in as_tables(config).items():
        if isinstance(values, list):
            yield section, f"{len(values)} set"
            continue
        for key, value in values.items():
            if value != defaults[section][key]:
                yield f"{section}.{key}", _value(f"{section}.{key}", value)


def _value(name: str, value: object) -> str:
    if isinstance(value, bool | int | float) or value is None or name in SHOWN:
        return json.dumps(value)
    if isinstance(value, Mapping) and all(isinstance(number, int | float) for number in value.values()):
        return json.dumps(value)
    return f"{len(value)} set" if isinstance(value, list | Mapping) else "set"


def _log(subject: DoctorContext, scrub: Redactor) -> Iterator[str]:
    from tarsd.vault import Unreadable, read_file

    try:
        paths, name = subject.config.paths, f"tarsd-{subject.config.vault_id}.log"
        raw = read_file(str(paths.logs / name))
    except (Skip, NotFound, Unreadable):
        yield "There is no readable log."
        return
    lines = raw.decode("utf-8", "replace").splitlines()[-LOG_LINES:]
    yield "```\n" + "\n".join(_logged(line, scrub) for line in lines) + "\n```"


def _logged(line: str, scrub: Redactor) -> str:
    """A line of the log: what happened, up to where somebody else is quoted, and the harmless fields."""
    try:
        fields: dict[str, Any] = dict(json.loads(line))
    except (ValueError, TypeError):
        return "(a line from another program)"
    event = str(fields.get("event") or "").partition(": ")[0]
    words = [str(fields.get(key) or "") for key in ("time", "level", "logger")]
    some = [f"{key}={fields[key]}" for key in FIELDS if fields.get(key) not in (None, "")]
    return _one(" ".join([*map(scrub.places, words), scrub.names(event), *map(scrub.places, some)])).replace("`", "'")
