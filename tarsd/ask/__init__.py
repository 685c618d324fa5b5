"""Questions about a vault that are answered exactly and without a model.

A question is read word by word (`reading`) for times (`times`) and for what the vault knows (`vocabulary`); what it
asks for is found in the vault's data (`finding`) and said (`answers`). Every rule is a row of the tables in `data/ask`.
What is not understood whole is None, and goes to ordinary search.
"""

from __future__ import annotations

from datetime import date, timedelta

from tarsd.ask import times
from tarsd.ask.answers import Answer, Lines
from tarsd.ask.answers import answer as _answer
from tarsd.ask.finding import Finder
from tarsd.ask.matching import Holding
from tarsd.ask.reading import read
from tarsd.ask.tables import languages_of
from tarsd.ask.vocabulary import Sheet, Vocabulary

__all__ = ["Answer", "Holding", "Lines", "Sheet", "Vocabulary", "ask", "narrowed"]


def ask(text: str, today: date, vault: Vocabulary, holding: Holding, lines: Lines) -> Answer | None:
    """The exact answer to a question, None for one that is not about the vault's data."""
    question = read(text, today, vault)
    found = Finder(question, vault, holding).find()
    return None if found is None else _answer(found, question, vault, lines)


def narrowed(text: str, today: date) -> str:
    """The question as a query for notes of the one time that it names, "" for one that names none, or several."""
    spans = times.find(text, today, languages_of(text))
    if len(spans) != 1:
        return ""
    (span,) = spans
    rest = " ".join(f"{text[: span.start]} {text[span.stop :]}".split())
    after = [] if span.first == date.min else [f"after:{span.first - timedelta(days=1)}"]
    before = [] if span.last == date.max else [f"before:{span.last + timedelta(days=1)}"]
    return " ".join((*after, *before, rest)) if rest else ""
