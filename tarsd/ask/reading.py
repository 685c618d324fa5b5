"""A question, word by word: its times, its wishes, and which of its words the vault knows. Pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cache

from tarsd.ask import times
from tarsd.ask.tables import SPACED, groups, languages_of, load, marks, noise, phrases, related, simplified
from tarsd.ask.times import TimeSpan
from tarsd.ask.vocabulary import WORD, Ids, Key, Vocabulary, inflected, meanings, tokens
from tarsd.kinds import kind_of
from tarsd.words import is_spaceless

MOST_CHARS = 300
_TAG = re.compile(r"#[\w/-]*\w|(?<![\w/])[^\W\d_][\w-]*(?:/[\w-]+)+")
_WORDS = re.compile(rf"{_TAG.pattern}|{WORD.pattern}(?:-{WORD.pattern})*")
_JOINTS = re.compile(r"['’-]")
_POSSESSIVE = re.compile(r"(?:'s|'|s)$")
_WISHES = frozenset(
    ("when", "who", "many", "much", "mean", "most", "least", "more", "less", "atleast", "missing", "which", "now",
     "howlong", "howold", "howfar", "howexpensive", "often", "howto", "not", "notbehind",
     "purpose")
)  # fmt: skip
_LONGEST_NAME = 10
_NUMBER = r"(?P<number>\d+(?:[.,]\d+)*)"
_UNIT = r"(?:\s*(?P<unit>[^\W\d_]+|€|\$|£|¥|%))?"
_COUNTED = frozenset(("rating", "servings", "pages"))
"""What a number in words counts, beside words of comparing: five stars."""
_DENIED = frozenset(("@date", "@due"))
"""What a note or task can be without, though the word says nothing by itself."""
_FUTURE = frozenset(("due", "next", "scheduled", "agenda"))

_WITHIN = frozenset(("by", "mention", "self", "happened", "recall", "agenda"))
"""Marks that stand within words, or around several, where these have no blanks between them."""


@dataclass(frozen=True, slots=True)
class AskedWord:
    """A word of a question. `said` are its forms and synonyms, `also` groups that stand in for these.

    `quiet` words say nothing by themselves; `time` ones belong to a time; `name` are the notes of the name that the
    word is part of, and `called` that name as it was typed. `negated`: what the word says is denied; `bare` are the
    forms of what is left of a word without a prefix that denies it, “paid” of “unpaid”.
    """

    text: str
    start: int
    stop: int
    said: frozenset[str]
    also: frozenset[str]
    quiet: bool
    time: bool = False
    marks: frozenset[str] = frozenset()
    name: Ids = frozenset()
    called: str = ""
    exact: bool = False
    negated: bool = False
    bare: frozenset[str] = frozenset()

    @property
    def literal(self) -> frozenset[str]:
        """Its forms without its synonyms."""
        return frozenset(form for form in self.said if not form.startswith("@"))

    @property
    def says_tag(self) -> bool:
        """Whether it is a word for tags; in German “Tag” alone is a day."""
        return "@tag" in self.said or "tagged" in self.marks or self.text.lower() == "tags"

    @property
    def content(self) -> bool:
        """Whether it says what is asked for, and is neither name nor time."""
        return not (self.quiet or self.time or self.name or self.marks & _WISHES)


@dataclass(frozen=True)
class Comparison:
    """A number in a question with how values compare to it: `=`, `<`, `<=`, `>`, `>=`; at [start, stop) of the text."""

    op: str
    number: float
    unit: str
    start: int
    stop: int


@dataclass(frozen=True)
class Question:
    """What of a question is understood."""

    text: str
    languages: tuple[str, ...]
    words: tuple[AskedWord, ...]
    spans: tuple[TimeSpan, ...]
    wishes: frozenset[str]
    today: date
    numbers: tuple[Comparison, ...] = ()
    ranked: str = ""
    vocabulary: Vocabulary = field(default_factory=lambda: Vocabulary({}), repr=False)

    @property
    def language(self) -> str:
        return self.languages[0]

    def wants(self, *names: str) -> bool:
        """Whether one of these wishes is in it."""
        return bool(self.wishes & set(names))

    @property
    def content(self) -> list[AskedWord]:
        return [word for word in self.words if word.content]

    @property
    def named(self) -> list[AskedWord]:
        """The words of names."""
        return [word for word in self.words if word.name]

    @property
    def subjects(self) -> list[tuple[str, Ids]]:
        """The names in it, each with the notes that have it, without those that the words beside it rule out."""
        found = []
        for called in dict.fromkeys(word.called for word in self.named):
            ids = next(word.name for word in self.named if word.called == called)
            for kind in self.beside(called):
                of_kind = self.vocabulary.kind_of_note(kind.said)
                ids = ids & of_kind or ids
            found.append((called, ids))
        return found

    def beside(self, called: str) -> list[AskedWord]:
        """The words right before and behind a name that say what kind of note it is: “the Harbour project”."""
        at = [place for place, word in enumerate(self.words) if word.called == called]
        spots = [place for place in (at[0] - 1, at[-1] + 1) if 0 <= place < len(self.words)]
        ids = next(word.name for word in self.named if word.called == called)
        beside = [self.words[place] for place in spots if self.words[place].content]
        return [word for word in beside if self.vocabulary.kind_of_note(word.said) & ids]

    def properties(self, words: Sequence[AskedWord] = ()) -> list[tuple[Key, list[AskedWord], int]]:
        """The properties that words (all but names and times) name, best first, with these words and how well."""
        words = words or [word for word in self.words if not word.name and not word.time]
        quiet = [word.quiet for word in words]
        direct = self.vocabulary.find_keys([word.said for word in words], quiet)
        known = {key.key for key, _, _ in direct}
        loose = self.vocabulary.find_keys([word.also for word in words], quiet)
        found = [*direct, *((key, at, 1) for key, at, _ in loose if key.key not in known)]
        return [(key, [words[place] for place in sorted(at)], score) for key, at, score in found]


def read(text: str, today: date, vocabulary: Vocabulary) -> Question:
    """The question as far as the tables and the vault know its words."""
    text = text[:MOST_CHARS]
    likely = languages_of(text)
    # where several are as likely, the one in which a time is said
    likely.sort(key=lambda one: len(likely) > 1 and not times.find(text, today, [one]))
    languages = tuple(likely)
    plain = simplified(text)
    found = {
        name: [match.span() for match in expression.finditer(plain)]
        for language in languages[:1]
        for name, expression in marks(language).items()
    }
    found = _longest(found)
    future = any(found[name] for name in _FUTURE)
    spans = tuple(times.find(text, today, languages, future=future))
    if found["agenda"]:  # in Dutch one word is “for” and “before”
        day = timedelta(days=1)
        spans = tuple(replace(one, first=one.last + day, last=one.last + day) if one.first == date.min else one
                      for one in spans)  # fmt: skip
    for name in ("last", "first", "next"):  # last week is no wish for the last one
        found[name] = [(a, b) for a, b in found[name] if not any(s.start <= a and b <= s.stop for s in spans)]
    wishes = frozenset(name for name, places in found.items() if places)
    wishes |= {"much"} if "howexpensive" in wishes else frozenset()
    wished = [
        place for name, places in found.items() if name not in _WITHIN for place in places if place[1] - place[0] > 1
    ]
    words = _words(text, plain, languages, vocabulary, wished)
    words = _with_names(words, text, vocabulary)
    words = [_marked(word, found, spans) for word in words]
    words = _negated(words, found)
    numbers = tuple(_numbers(plain, languages[0], spans, words))
    in_numbers = [(one.start, one.stop) for one in numbers]
    words = [
        replace(word, quiet=True) if any(a < word.stop and word.start < b for a, b in in_numbers) else word
        for word in words
    ]
    ranked = next((name[2:] for name in wishes if name.startswith("= ")), "")
    spans = tuple(span for span in spans if any(word.time and span.start <= word.start < span.stop for word in words))
    return Question(text, languages, tuple(words), spans, wishes, today, numbers, ranked, vocabulary)


def _longest(found: dict[str, list[tuple[int, int]]]) -> dict[str, list[tuple[int, int]]]:
    """The marks without the wishes within longer ones: no “least” in “at least”."""
    wishes = [place for name, places in found.items() if name in _WISHES for place in places]
    return {
        name: [
            (a, b) for a, b in places
            if name not in _WISHES or not any(at <= a and b <= end and end - at > b - a for at, end in wishes)
        ]
        for name, places in found.items()
    }  # fmt: skip


def _words(
    text: str, plain: str, languages: tuple[str, ...], vocabulary: Vocabulary, wished: Sequence[tuple[int, int]]
) -> list[AskedWord]:
    silent = frozenset().union(*(noise(language) for language in languages))
    prefix = re.compile(rf"^(?:{load(languages[0])['words']['unprefix']})")
    found = []
    # “por leer” is what books are, or else the word that is denied: not read
    wanted = "@wanted" in vocabulary.by_form or "@wanted" in vocabulary.with_tags
    places = [
        match.span() for match in phrases(languages[0]).finditer(plain)
        if wanted or "wanted" not in groups(match[0], languages[:1])
    ]  # fmt: skip
    for match in _WORDS.finditer(plain):
        phrase = next(((a, b) for a, b in places if a < match.end() and match.start() < b), None)
        if phrase:  # one word, whatever its words say alone
            if match.start() <= phrase[0]:
                start, stop = phrase
                own = groups(plain[start:stop].replace("-", " "), languages[:1])
                also = frozenset(f"@{one}" for group in own for one in related(group))
                found.append(
                    AskedWord(text[start:stop], start, stop, frozenset(f"@{group}" for group in own), also, quiet=False)
                )
            continue
        pieces: Iterable[tuple[int, int]] = [match.span()]
        if is_spaceless(match[0]):
            inside = (at for place in wished for at in place if match.start() < at < match.end())
            cuts = sorted({*match.span(), *inside})
            pieces = [
                piece
                for run in itertools.pairwise(cuts)
                for piece in (
                    [run] if run in wished else _segments(plain[run[0] : run[1]], run[0], languages, vocabulary)
                )
            ]
        for start, stop in pieces:
            said = plain[start:stop]
            parts = [part for part in (*_JOINTS.split(said), _POSSESSIVE.sub("", said)) if len(part) > 2]
            meant = frozenset().union(*(meanings(one, languages) for one in (said, *parts)))
            own = frozenset().union(*(groups(one, languages) for one in (said, *parts)))
            also = frozenset(f"@{one}" for group in own for one in related(group))
            quiet = said in silent or all(part in silent for part in _JOINTS.split(said))
            rest = prefix.sub("", said)
            bare = meanings(rest, languages) if rest != said and (len(rest) > 2 or is_spaceless(rest)) else frozenset()
            found.append(AskedWord(text[start:stop], start, stop, meant, also, quiet, bare=bare))
    return found


def _segments(run: str, offset: int, languages: tuple[str, ...], vocabulary: Vocabulary) -> Iterable[tuple[int, int]]:
    """The places of the words in text without spaces: the longest that are known, and what lies between them."""
    known = _lexicon(languages[0])
    at = start = 0
    while at < len(run):
        stop = next(
            (
                end
                for end in range(min(len(run), at + 12), at, -1)
                if run[at:end] in known or ((run[at:end],) in vocabulary.names and end - at > 1)
                or ((run[at:end],) in vocabulary.values and end - at > 1) or run[at:end] in vocabulary.keys
            ),
            0,
        )  # fmt: skip
        if stop:
            if start < at:
                yield offset + start, offset + at
            yield offset + at, offset + stop
            at = start = stop
        else:
            at += 1
    if start < at:
        yield offset + start, offset + at


@cache
def _lexicon(language: str) -> frozenset[str]:
    words = {word for row in load("synonyms").values() for word in row[language].split()}
    return frozenset(map(simplified, words)) | noise(language)


def _with_names(words: list[AskedWord], text: str, vocabulary: Vocabulary) -> list[AskedWord]:
    """The words with the names that they make: whole ones, the longest first, else a part that is written large."""
    plain = [simplified(word.text) for word in words]
    made = list(words)
    taken = [False] * len(words)
    for size in range(min(_LONGEST_NAME, len(words)), 0, -1):
        for at in range(len(words) - size + 1):
            if any(taken[at : at + size]) or (size == 1 and words[at].quiet):
                continue
            said = tuple(word for one in plain[at : at + size] for word in tokens(one))
            ids = next((vocabulary.names[own] for own in _possessed(said) if own in vocabulary.names), None)
            if ids is None and size == 1:
                ids = _part(words[at], at, plain[at], vocabulary)
            if ids and size == 1 and _is_kind(words[at], vocabulary):
                continue
            if ids is None:
                if size > 1 and said in vocabulary.values:  # no name is to take a part of a value
                    taken[at : at + size] = [True] * size
                continue
            called = text[words[at].start : words[at + size - 1].stop]
            exact = size > 1 or words[at].text[:1].isupper() or is_spaceless(called)
            for place in range(at, at + size):
                taken[place] = True
                made[place] = replace(words[place], name=frozenset(ids), called=called, exact=exact)
    return made


def _is_kind(word: AskedWord, vocabulary: Vocabulary) -> bool:
    """Whether a word that is a name, too, says of which type notes are: films of the type [[Films]]."""
    return not word.text[:1].isupper() and any(form in vocabulary.typed for form in word.said)


def _possessed(said: tuple[str, ...]) -> Iterable[tuple[str, ...]]:
    yield said
    bare = _POSSESSIVE.sub("", said[-1])
    if bare != said[-1] and len(bare) > 1:
        yield (*said[:-1], bare)
    if case := inflected(said):
        yield case


def _part(word: AskedWord, at: int, plain: str, vocabulary: Vocabulary) -> set[int] | None:
    """The notes of which a word is a part of the name, if it is written like a name and they are few."""
    large = word.text[:1].isupper() and (at > 0 or len(plain) > 2)
    if not (large or is_spaceless(plain)) or word.quiet:
        return None
    for own in _possessed((plain,)):
        ids = vocabulary.parts.get(own[0])
        if ids and len(ids) <= 3 and not vocabulary.kind_of_note(word.said):
            return ids
    return None


def _marked(word: AskedWord, found: dict[str, list[tuple[int, int]]], spans: Sequence[TimeSpan]) -> AskedWord:
    own = frozenset(
        name for name, places in found.items() if any(a <= word.start and word.stop <= b for a, b in places)
    )
    in_time = any(span.start <= word.start and word.stop <= span.stop for span in spans)
    # beside a time, words of noting and showing ask for the notes of it
    quiet = word.quiet or ("retell" in own and bool(spans) and not found["who"])
    quiet |= bool(own & {"each", "left"}) and not word.said & {"@budget"}
    quiet |= "owed" in own and "@paid" not in word.said
    return replace(word, marks=own, quiet=quiet, time=in_time and not (word.exact and word.called != word.text))


def _negated(words: list[AskedWord], found: dict[str, list[tuple[int, int]]]) -> list[AskedWord]:
    """The words with those marked that are denied: the one that comes after a “not”, in Japanese the one before it."""
    denied = set()
    content = [word for word in words if word.content or word.said & _DENIED or word.says_tag]
    for word in content:
        if "owed" in word.marks and "@paid" in word.said:
            denied.add(word.start)
    behind = found.get("notbehind", [])
    for name in ("not", "missing", "notbehind"):
        for start, stop in found.get(name, ()):
            if name != "notbehind" and any(a < stop and start < b for a, b in behind):
                continue
            if any(word.start < stop and start < word.stop for word in content):
                continue  # a part of what one word says: “gave up on”, “never finished”
            before = [word.start for word in content if word.stop <= start]
            after = [word.start for word in content if word.start >= stop]
            if name == "missing" and any("@wanted" in word.said for word in content if word.start in after[:1]):
                continue  # “me faltan por leer”
            denied.update(before[-1:] if name == "notbehind" or (name == "missing" and not after) else after[:1])
    return [replace(word, negated=word.start in denied) for word in words]


def _numbers(plain: str, language: str, spans: Sequence[TimeSpan], words: Sequence[AskedWord]) -> Iterable[Comparison]:
    """The numbers that are said of values, with their units and what stands before them."""
    said = load(language)["words"]
    named = {name: value for value, names in load(language)["times"]["n"].items() for name in names.split("|")}
    digits = "|".join(map(re.escape, sorted(map(simplified, named), key=len, reverse=True)))
    ops = (("atleast", ">="), ("atmost", "<="), ("more", ">"), ("less", "<"))
    before = "|".join(f"(?P<{name}>{simplified(said[name])})" for name, _ in ops)
    gap = r"\s*" if language not in SPACED else r"\s+"
    edge = r"(?<!\w)" if language in SPACED else ""
    expression = re.compile(
        rf"{edge}(?:(?:{before}){gap})?(?:{_NUMBER}|(?P<word>{digits or '(?!)'})(?!\w)){_UNIT}", re.IGNORECASE
    )
    later = ops if language not in SPACED else ops[:2]  # “4 or more”, but no “more” of “4 more”
    behind = re.compile(r"\s*(?:" + "|".join(f"(?P<{name}>{simplified(said[name])})" for name, _ in later) + ")")
    known = {simplified(name): float(value) for name, value in named.items()}
    for match in expression.finditer(plain):
        inside = any(span.start < match.end() and match.start() < span.stop for span in spans)
        inside |= any(word.name and word.start <= match.start("number") < word.stop for word in words)
        end = max(match.end("number"), match.end("word"))
        after = behind.match(plain, match.end()) or behind.match(plain, end)
        told = {name for found in (match, after) if found for name, text in found.groupdict().items() if text}
        op = next((sign for name, sign in ops if name in told), "=")
        counted = groups(match["unit"] or "", (language,)) & _COUNTED and known.get(match["word"], 0) > 1
        if inside or (match["word"] and op == "=" and not counted):
            continue
        number = known[match["word"]] if match["word"] else float(match["number"].replace(",", "."))
        unit = match["unit"] or ""
        is_unit = bool(unit) and (kind_of(f"1 {unit}").minutes is not None or unit in "€$£¥%")
        stop = max(match.end() if is_unit else end, after.end() if after else 0)
        yield Comparison(op, number, unit if is_unit else "", match.start(), stop)
