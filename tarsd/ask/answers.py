"""Answers in words: a sentence in the question's language, and the rows that it rests on, quoted as they stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date

from tarsd.ask.found import AnswerRow, Found
from tarsd.ask.reading import Question
from tarsd.ask.tables import load, sentence
from tarsd.ask.vocabulary import Vocabulary
from tarsd.passage import NoteRow, Origin, Passage
from tarsd.query.shown import line_passage, task_entry

MOST_ROWS = 100
LONGEST_QUOTE = 240

Lines = Callable[[int], Sequence[str]]
"""The lines of a note's file as they are now, by the note's id."""


@dataclass(frozen=True)
class Answer:
    """What a question without a model is answered with; `passages` are the lines that it cites, numbered from 1.

    `notes` are all that it rests on.
    """

    text: str
    passages: tuple[Passage, ...] = ()
    notes: tuple[NoteRow, ...] = ()

    @property
    def private(self) -> bool:
        """Whether it must stay on this machine."""
        return any(note.local_only for note in self.notes)

    @property
    def origins(self) -> list[Origin]:
        """The notes as they are kept with what is made from them."""
        return [note.origin for note in self.notes]


def answer(found: Found, question: Question, vault: Vocabulary, lines: Lines) -> Answer:
    """The answer that was found, in words."""
    language = question.language
    if found.kind == "nothing":
        said = sentence(language, found.reason, **found.about)
        near = " / ".join(day_in_words(day, language) for day in found.near)
        return Answer(f"{said} {sentence(language, 'near', near=near)}" if near else said)
    rows = found.rows[:MOST_ROWS]
    passages = tuple(_passage(number, row, vault, lines) for number, row in enumerate(rows, 1))
    text = f"{_said(found, question, vault)}\n\n"
    if found.kind in ("value", "when", "best"):
        text += "\n\n".join(map(_quoted, passages))
    else:
        entry = task_entry if found.kind == "tasks" else _entry
        text += "\n".join(entry(passage) for passage in passages)
    if len(found.rows) > MOST_ROWS:
        text += "\n\n" + sentence(language, "more", n=len(found.rows) - MOST_ROWS)
    notes = dict.fromkeys(vault.sheets[row.id].note for row in (*found.rows, *found.skipped))
    return Answer(text, passages, tuple(notes))


def _said(found: Found, question: Question, vault: Vocabulary) -> str:
    language, first = question.language, found.rows[0]
    note = vault.sheets[first.id].note
    match found.kind:
        case "notes" | "tasks":
            single = {"notes": "row1", "tasks": "task1"}[found.kind]
            several = {"notes": "rows", "tasks": "tasks"}[found.kind]
            return sentence(language, single if len(found.rows) == 1 else several, n=len(found.rows))
        case "count" if found.about["what"] == "tasks":
            name = "task1" if len(found.rows) == 1 else "tasks"
            return sentence(language, name, n=len(found.rows)).rstrip(": ：") + "."
        case "count":
            return sentence(language, "count", n=len(found.rows), what=found.about["what"])
        case "value":
            values = ", ".join(day_in_words(row.day, language) if row.day else row.value for row in found.rows)
            if question.wants("howold") and first.day and first.day <= question.today.isoformat():
                years = question.today.year - int(first.day[:4]) - (question.today.isoformat()[5:] < first.day[5:])
                return sentence(language, "age", n=years, value=values, **found.about)
            return sentence(language, "value", value=values, **found.about)
        case "when":
            return sentence(language, "when", date=day_in_words(first.day, language), name=note.title)
        case "best":
            told = f"{note.title} ({day_in_words(first.day, language)})" if first.day else note.title
            return sentence(language, "best", name=told, value=first.value)
    if found.kind == "most":
        name = found.about.get("name") or period_in_words(found.about["period"], language)
        return sentence(language, "best", name=name, value=number_in_words(found.number, found.unit, language) or "0")
    values = sentence(language, "values1") if found.of == 1 else sentence(language, "values", n=found.of)
    number = number_in_words(found.number, found.unit, language)
    if per := found.about.get("per"):
        number = sentence(language, per, n=number)
    said = sentence(language, found.kind, n=number, values=values)
    if found.skipped:
        which = ", ".join(f"“{row.value}”" for row in found.skipped[:5])
        said += " " + sentence(language, "skipped", n=len(found.skipped), which=which)
    return said


def day_in_words(day: str, language: str) -> str:
    """An ISO day as the language writes it."""
    at = date.fromisoformat(day)
    month: str = load("names")[language]["months"][at.month - 1][0]
    month = month.capitalize() if language in ("en", "de") else month
    return sentence(language, "date", d=at.day, m=at.month, month=month, y=at.year)


def period_in_words(period: str, language: str) -> str:
    """A month as the language writes it; a week (`2026-W11`) and a year stay as they are."""
    year, _, month = period.partition("-")
    if not month.isdigit():
        return period
    name: str = load("names")[language]["months"][int(month) - 1][-1]
    return sentence(
        language, "month", month=name.capitalize() if language in ("en", "de") else name, m=int(month), y=year
    )


def number_in_words(number: float, unit: str, language: str) -> str:
    """A number with at most two decimals, as the language writes them, and its unit."""
    money = unit in ("€", "$", "£", "¥", "EUR", "USD")
    said = f"{number:.2f}" if money or number != round(number) else f"{number:.0f}"
    if not money and "." in said:
        said = said.rstrip("0").rstrip(".")
    said = said if language in ("en", "ja", "zh") else said.replace(".", ",")
    hours = f" ({number_in_words(number / 60, 'h', language)})" if unit == "min" and number >= 60 else ""
    return f"{said}{'' if unit.startswith('/') else ' '}{unit}{hours}".strip()


def _passage(number: int, row: AnswerRow, vault: Vocabulary, lines: Lines) -> Passage:
    found = line_passage(vault.sheets[row.id].note, lines(row.id), row.line, row.value)
    return replace(found, number=number)


def _source(passage: Passage) -> str:
    return f"{passage.full_link} [{passage.number}] (`{passage.path}:{passage.start_line}`)"


def _quote(passage: Passage) -> str:
    text = passage.text.strip()
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE].rstrip()} …"


def _quoted(passage: Passage) -> str:
    return f"> {_quote(passage)}\n\n— {_source(passage)}"


def _entry(passage: Passage) -> str:
    quote = f"\n  > {_quote(passage)}" if passage.text.strip() else ""
    return f"- {_source(passage)}{quote}"


__all__ = ["Answer", "answer", "day_in_words", "number_in_words"]
