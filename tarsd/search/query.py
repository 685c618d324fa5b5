"""Reads what a person typed as a query: words, phrases, exclusions and filters. Any text is a query."""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from tarsd.errors import BadRequest
from tarsd.words import fold, index_words, is_spaceless, is_stop, segment, split_words

MAX_TERMS = 64
MAX_CHARS = 10_000
_SPACELESS_WHOLE = 4

Kind = Literal[
    "tag", "path", "file", "kind", "before", "after", "on", "changed", "collection", "property", "memory_type"
]
_KINDS: dict[str, Kind] = {
    "tag": "tag", "tags": "tag", "path": "path", "folder": "path", "file": "file", "before": "before", "after": "after",
    "on": "on", "changed": "changed", "collection": "collection", "memory_type": "memory_type", "kind": "kind",
}  # fmt: skip
"""Conditions by the names that they have in a request, and in a query."""

_IN_QUERY = frozenset(("tag", "path", "file", "before", "after", "on", "changed", "kind"))
"""Those that can be typed in a query."""

_DATED = frozenset(("before", "after", "on", "changed"))
"""Those that take a date."""

_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}

_TOKEN = re.compile(
    r"""
    (?P<minus>(?<!\S)-(?=\S))?
    (?: (?<![\[\w!])\[(?:(?P<property>[^\W\d][^\x00-\x1f!-,./:-@\[-^`{-\x7f]*)|"(?P<named>[^"\[\]]+)"):
          (?P<value>(?:[^\[\]]|\[\[[^\[\]]*\]\])*+)\](?!\])
      | (?<![\w/])(?P<key>tag|path|file|before|after|on|changed|kind):(?:"(?P<quoted>[^"]*)"|(?P<bare>[^\s"]+))
      | "(?P<phrase>[^"]*)"
      | (?P<word>[^\s"]+)
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_OR = re.compile(r"\s+OR\s+")
_LEADING, _TRAILING = "\"'`([{<*-:;,!?^~|=…“„‘«¿¡", "\"'`)]}>*-:;,.!?^~|=\\…”’»"


@dataclass(frozen=True, slots=True)
class Term:
    """One thing looked for. `words` are index words in sequence; `literal` is how it was typed, lower case.

    `whole` marks a sequence whose words are looked for singly, too: it adds to the score and not to the coverage.
    """

    words: tuple[str, ...]
    literal: str
    whole: bool = False
    spaceless: bool = False

    @property
    def expression(self) -> str:
        """The FTS5 expression that finds it."""
        return '"' + " ".join(self.words) + '"'


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on notes. `name` is the property's for kind "property"; `value` is folded where it is no date.

    A date is an ISO day, for "on" and "changed" also a month or year; for "changed", "<" or ">" may precede a day.
    A property's value is met by any of several between " OR " (folded text has no capitals), and a number or date after
    "<" or ">" by less or more.
    """

    kind: Kind
    value: str
    name: str = ""
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """`terms` are looked for, any of them; `phrases` must be there; `negatives` must not be in the note.

    `text` is the query as a sentence for the embedding model, without the syntax.
    """

    text: str = ""
    terms: tuple[Term, ...] = ()
    phrases: tuple[Term, ...] = ()
    negatives: tuple[Term, ...] = ()
    filters: tuple[Filter, ...] = ()

    @property
    def blank(self) -> bool:
        """Whether there is nothing to look for and nothing to filter by."""
        return not (self.terms or self.phrases or self.negatives or self.filters or self.text)


def parse_query(text: str) -> Query:
    """Read a query. Never raises: everything that is not syntax counts as words."""
    text = text[:MAX_CHARS].replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
    if text.count('"') % 2:
        before, _, after = text.rpartition('"')
        text = f"{before} {after}"
    sentence: list[str] = []
    typed: list[str] = []
    phrases: list[Term] = []
    negatives: list[Term] = []
    filters: list[Filter] = []
    for match in _TOKEN.finditer(text):
        negated = match["minus"] is not None
        found = _filter(match, negated)
        if found is not None:
            filters.append(found)
            continue
        if match["phrase"] is not None:
            phrase = _phrase(match["phrase"])
            if phrase is not None:
                (negatives if negated else phrases).append(phrase)
            if not negated:
                sentence.append(match["phrase"])
        elif negated and match["word"] is not None and split_words(fold(match["word"])):
            phrase = _phrase(match["word"])
            if phrase is not None:
                negatives.append(phrase)
        else:
            typed.append(match[0])
            sentence.append(match[0])
    terms = _terms(typed)
    for phrase in phrases:
        terms += [replace(phrase, whole=len(phrase.words) > 1)]
        if len(phrase.words) > 1 and not phrase.spaceless:
            terms += [Term((word,), word) for word in phrase.words]
    return Query(
        " ".join(" ".join(sentence).split()),
        tuple(dict.fromkeys(terms))[:MAX_TERMS],
        tuple(phrases[:MAX_TERMS]),
        tuple(negatives[:MAX_TERMS]),
        tuple(filters[:MAX_TERMS]),
    )


def check_filters(text: str) -> None:
    """Raises BadRequest for a condition without a value, such as `tag:`, or with one that is no date, as `on:lunch`.

    Searched as a word, it would find something else, or nothing, and not say why.
    """
    for match in _TOKEN.finditer(text[:MAX_CHARS]):
        kind = (match["key"] or (match["word"] or "").removesuffix(":")).lower()
        if kind not in _IN_QUERY or not (match["key"] or match["word"].endswith(":")) or _filter(match, negated=False):
            continue
        value = (match["quoted"] or match["bare"] or "").strip() if match["key"] else ""
        typed = " ".join(match[0].removeprefix("-").split())
        as_words = f'To search for these words, put them in quotes: "{typed.replace(chr(34), "")}"'
        if kind not in _DATED:
            raise BadRequest(
                f"“{kind}:” has no value.", f"Write it right after the colon: {kind}:x. {as_words}", field="query"
            )
        said = f"“{kind}:{value}” is not a date." if value else f"“{kind}:” has no date."
        raise BadRequest(said, f"Write {kind}:2026-03-09, 2026-03, 2026 or yesterday. {as_words}", field="query")


def parse_filters(given: Mapping[str, Any] | None) -> tuple[Filter, ...]:
    """The `filters` of a request: tag, path, file, collection, memory_type, before, after, on, changed, and
    properties.

    Values are strings or lists of them (all must hold); `properties` maps names to values. Unknown names are ignored.
    A value of another type, or a date that is none, raises BadRequest with the field.
    """
    found: list[Filter] = []
    for name, value in (given or {}).items():
        field = f"filters.{name}"
        if value is None:
            continue
        if name == "properties":
            if not isinstance(value, Mapping):
                raise BadRequest("`properties` maps property names to values.", field=field)
            found += [Filter("property", fold(str(wanted)), fold(str(key))) for key, wanted in value.items()]
            continue
        kind = _KINDS.get(name)
        if kind is None:
            continue
        for wanted in value if isinstance(value, list | tuple) else [value]:
            if not isinstance(wanted, str):
                raise BadRequest(f"`{name}` must be text or a list of texts.", field=field)
            made = _condition(kind, wanted, negated=False)
            if made is None and wanted.strip():
                raise BadRequest(f"`{name}` is not a date: write 2026-03-09, 2026-03 or 2026.", field=field)
            if made is not None:
                found.append(made)
    return tuple(found)


def _filter(match: re.Match[str], negated: bool) -> Filter | None:
    if name := match["property"] or match["named"]:
        values = (part.strip().strip('"').removeprefix("[[").removesuffix("]]") for part in _OR.split(match["value"]))
        return Filter("property", " OR ".join(map(fold, values)), fold(name.strip()), negated)
    if match["key"] is None:
        return None
    value = match["quoted"] if match["quoted"] is not None else match["bare"]
    return _condition(_KINDS[match["key"].lower()], value, negated)


def _condition(kind: Kind, value: str, negated: bool) -> Filter | None:
    value = value.strip()
    if kind in _DATED:
        date = _date_value(kind, value)
        return Filter(kind, date, negated=negated) if date else None
    if kind == "tag":
        value = value.lstrip("#").strip("/")
    if kind == "collection":
        return Filter(kind, value, negated=negated)
    return Filter(kind, fold(value), negated=negated) if value else None


def _date_value(kind: Kind, value: str) -> str:
    """A date in the form in which it is compared, "" if it is none; see `Filter`."""
    sign = value[0] if kind == "changed" and value[:1] in ("<", ">") else ""
    first = parse_date(value.removeprefix(sign))
    if not first or sign or value.lower() in _DAYS or kind in ("before", "after"):
        return f"{sign}{first}" if first else ""
    return first[: (4, 7, 10)[value.count("-")]]


def parse_date(value: str, today: datetime.date | None = None) -> str:
    """The first day of an ISO year, month or day, or of “yesterday” and the like, as YYYY-MM-DD; "" if it is none."""
    if (days := _DAYS.get(value.lower())) is not None:
        return ((today or datetime.date.today()) + datetime.timedelta(days)).isoformat()
    match = re.fullmatch(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?", value)
    if not match:
        return ""
    try:
        return datetime.date(int(match[1]), int(match[2] or 1), int(match[3] or 1)).isoformat()
    except ValueError:
        return ""


def _phrase(text: str) -> Term | None:
    found = index_words(text)
    if not found:
        return None
    return Term(tuple(found), " ".join(text.lower().split()), spaceless=is_spaceless(fold(text)))


def _terms(typed: list[str]) -> list[Term]:
    """Words without stop words (all of them if there are no others), compounds whole and in parts."""
    plain: list[str] = []
    literals: dict[str, str] = {}
    wholes: list[Term] = []
    for token in typed:
        bare = token.lstrip(_LEADING).rstrip(_TRAILING).lower()
        folded = fold(token)
        parts = split_words(folded)
        if is_spaceless(folded):
            spread, rest = _spaceless(folded)
            wholes += spread
            parts = rest
        elif len(parts) > 1:
            wholes.append(Term(tuple(parts), bare, whole=True))
        elif parts and bare != parts[0]:
            literals.setdefault(parts[0], bare)
        plain += parts
    stop = is_stop(plain)
    kept = [
        word for word, empty in zip(plain, stop, strict=True) if not empty or fold(literals.get(word, word)) != word
    ]
    if not kept and not wholes:
        kept = plain
    return [Term((word,), literals.get(word, word)) for word in dict.fromkeys(kept)] + wholes


def _spaceless(token: str) -> tuple[list[Term], list[str]]:
    """Runs of a spaceless script as overlapping pairs of characters (short ones also whole), and the other words."""
    found: list[Term] = []
    rest: list[str] = []
    run: list[str] = []

    def close() -> None:
        if run and len(run) <= _SPACELESS_WHOLE:
            found.append(Term(tuple(run), "".join(run), whole=len(run) > 2, spaceless=True))
        if len(run) > 2:
            found.extend(Term(pair, "".join(pair), spaceless=True) for pair in itertools.pairwise(run))
        run.clear()

    for piece in segment(token).split():
        if is_spaceless(piece) and split_words(piece) == [piece]:
            run.append(piece)
            continue
        close()
        rest += split_words(piece)
    close()
    return found, rest
