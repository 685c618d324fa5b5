"""The value of an unquoted scalar, by YAML 1.2's core schema. Pure."""

from __future__ import annotations

import re
from datetime import date, datetime
from math import isfinite

_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})|0o[0-7]{1,18}|0x[0-9a-fA-F]{1,14}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,4})?")
_TIME = r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?[ \t]*(?:[Zz]|[-+]\d{1,2}(?::?\d{2})?)?"
_DATE = re.compile(rf"\d{{4}}-\d{{1,2}}-\d{{1,2}}(?:(?:[Tt]|[ \t]+){_TIME})?")
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[-+]\d{2}:\d{2})?)?")
NULLS = frozenset(("", "~", "null", "Null", "NULL"))
BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


def scalar(text: str) -> str | int | float | bool | None:
    """An unquoted scalar by YAML 1.2's core schema; dates as ISO strings, what JSON cannot hold as it was written."""
    if text in NULLS:
        return None
    if text[0] not in "tTfF+-.0123456789":
        return text
    if text in BOOLS:
        return BOOLS[text]
    if _INT.fullmatch(text):
        return int(text, 0) if text[1:2] in ("o", "x") else int(text)
    if _DATE.fullmatch(text):
        return _date(text)
    if _FLOAT.fullmatch(text) and not (text.lstrip("+-").isdigit()):
        number = float(text)
        return number if isfinite(number) else text
    return text


def is_no_date(text: str) -> bool:
    """Whether it is written as a date, but no calendar, or no clock, has it."""
    return _DATE.fullmatch(text) is not None and not _is_date(text)


def _is_date(text: str) -> bool:
    """Whether a calendar and a clock have it."""
    year, month, day = map(int, re.findall(r"\d+", text)[:3])
    clock = [int(part) for part in re.findall(r"\d+", text)[3:6]] if ":" in text else []
    try:
        date(year, month, day)
    except ValueError:
        return False
    if not clock or clock == [24, 0, 0][: len(clock)]:
        return True
    return clock[0] < 24 and clock[1] < 60 and max(clock) < 61


def _date(text: str) -> str:
    if _ISO.fullmatch(text):
        return text
    day, _, time = re.sub(r"[Tt]|[ \t]+", " ", text, count=1).partition(" ")
    padded = "-".join(part.zfill(2) for part in day.split("-"))
    if not time:
        return padded
    compact = re.sub(r"[ \t]", "", time).upper()
    compact = re.sub(r"^(\d):", r"0\1:", compact)
    compact = re.sub(r"([-+])(\d)(?=$|:)", r"\g<1>0\2", compact)
    compact = re.sub(r"([-+]\d{2})$", r"\1:00", compact)
    try:
        return datetime.fromisoformat(f"{padded}T{compact}").isoformat()
    except ValueError:
        return text
