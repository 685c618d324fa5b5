"""What a vault knows, by the words that people say for it: names, properties, values, tags and kinds of notes. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from tarsd.ask.tables import LANGUAGES, forms, groups, main_language, simplified
from tarsd.kinds import Reading, currency_of, kind_of
from tarsd.parse import Fact, Item, Task
from tarsd.parse.fields import key_of
from tarsd.passage import NoteRow
from tarsd.words import is_spaceless, marks, stems

Ids = frozenset[int]
WORD = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)*")
_CYRILLIC = re.compile("[\u0400-\u04ff]+")
_NAME_ENDS = ("ов", "ев")
_DATED_NAME = re.compile(r"^[\d\W_]{6,12}(?=\D|$)")
_FILLERS = frozenset(
    ("until", "on", "at", "of", "in", "by", "the", "my", "so", "far", "date", "is", "to", "for", "bis", "am", "im",
     "seit", "von", "der", "die", "das", "de", "del", "la", "el", "le", "du", "al", "il", "het", "een", "van",
     "volgende", "prossima", "prossimo", "proxima", "proximo", "nachste", "nachster", "nachstes", "prochain",
     "prochaine")
)  # fmt: skip
"""Words of a property's name that nobody has to say: `warranty_until`, `read on`, `spent so far`."""
_AMOUNT = re.compile(r"[^\w\s]{0,2}\d[\d.,]*\s?(?:[^\W\d_]{1,4}|[€$£¥₽])?(?=\s)")
_DAY = re.compile("(?<=.)(?:日付|日期|日時|时间|時間|日)$")
"""How names of dates end in Japanese and Chinese: 読了日 of 読了."""
MOST_VALUE_WORDS = 6
_FEW = 3


@dataclass(frozen=True, slots=True)
class Sheet:
    """A note as questions see it; `links` are the ids of the notes that it links to."""

    note: NoteRow
    facts: tuple[Fact, ...] = ()
    items: tuple[Item, ...] = ()
    tasks: tuple[Task, ...] = ()
    links: Ids = frozenset()

    @property
    def day(self) -> str:
        return self.note.date

    @property
    def stem(self) -> str:
        return self.note.path.rpartition("/")[2].removesuffix(".md")

    def values(self, keys: Iterable[str]) -> list[Fact]:
        """The facts of these names, in the file's order."""
        wanted = set(keys)
        return [fact for fact in self.facts if key_of(fact.name) in wanted]


@dataclass(frozen=True)
class Key:
    """A name of values: its words as they are compared, the notes that have it, and how often values are of a kind."""

    key: str
    shown: str
    words: tuple[frozenset[str], ...]
    needed: tuple[bool, ...]
    groups: frozenset[str]
    notes: Ids
    kinds: Counter[str]

    def mostly(self, *kinds: str) -> bool:
        """Whether at least half of the values are of one of these kinds."""
        return 2 * sum(self.kinds[kind] for kind in kinds) >= self.kinds.total()


def tokens(text: str) -> tuple[str, ...]:
    """The words of a name in the form in which names are compared; text of a spaceless script is one."""
    plain = simplified(text)
    return (plain.strip(),) if is_spaceless(plain) else tuple(WORD.findall(plain))


def inflected(said: tuple[str, ...]) -> tuple[str, ...]:
    """The form in which the cases of a Russian name meet, “Олега” and “Олег”; nothing for other names."""
    if not all(_CYRILLIC.fullmatch(word) for word in said):
        return ()
    # “Иванов” is a name as it stands, though -ов ends cases of other words
    kept = (marks()["ru"] + word if word.endswith(_NAME_ENDS) else "" for word in said)
    return tuple(own or stem for own, stem in zip(kept, stems(said, "ru"), strict=True))


@lru_cache(maxsize=50_000)
def meanings(word: str, languages: tuple[str, ...]) -> frozenset[str]:
    """The forms of a word, and the groups of its synonyms, marked by “@”."""
    return forms(word, languages) | {f"@{group}" for group in groups(word, languages)}


@dataclass
class Vocabulary:
    """All that questions can be about, made once for each state of the index.

    `nowhere` are the names of links that lead to no note, by ids below 0 that stand in `Sheet.links` for these.
    """

    sheets: Mapping[int, Sheet]
    nowhere: Mapping[int, str] = field(default_factory=dict)
    names: dict[tuple[str, ...], set[int]] = field(default_factory=dict)
    parts: dict[str, set[int]] = field(default_factory=dict)
    values: dict[tuple[str, ...], set[tuple[str, str]]] = field(default_factory=dict)
    by_form: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    by_part: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    tags: dict[str, set[int]] = field(default_factory=dict)
    in_folders: dict[str, set[int]] = field(default_factory=dict)
    with_tags: dict[str, set[int]] = field(default_factory=dict)
    typed: dict[str, set[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for id, sheet in self.sheets.items():
            self._add_names(id, sheet)
            for tag in sheet.note.tags:
                parts = simplified(tag).split("/")
                for depth in range(1, len(parts) + 1):
                    self.tags.setdefault("/".join(parts[:depth]), set()).add(id)
                for form in self.meanings(parts[-1]):
                    self.with_tags.setdefault(form, set()).add(id)
            for folder in sheet.note.path.split("/")[:-1]:
                for form in self.meanings(folder):
                    self.in_folders.setdefault(form, set()).add(id)
            for fact in sheet.facts:
                read = reading(fact)
                if read.kind in ("text", "link") and "kind" in self._groups(key_of(fact.name)):
                    for form in self.meanings(shown(read)):
                        self.typed.setdefault(form, set()).add(id)
                if read.kind in ("text", "link", "checkbox"):
                    said = tokens(shown(read))
                    if 0 < len(said) <= MOST_VALUE_WORDS:
                        self.values.setdefault(said, set()).add((key_of(fact.name), simplified(shown(read))))
        for said, held in self.values.items():
            for word in said if len(said) <= _FEW else ():
                index = self.by_form if len(said) == 1 else self.by_part
                for form in self.meanings(word) if len(said) == 1 else forms(word, LANGUAGES):
                    index.setdefault(form, set()).update(held)
            for group in self._groups(" ".join(said)) if len(said) > 1 else ():
                self.by_form.setdefault(f"@{group}", set()).update(held)
        for id, name in self.nowhere.items():
            said = tokens(name.rpartition("/")[2])
            if said and said not in self.names and not all(word.isdigit() for word in said):
                self.names[said] = {id}

    def _add_names(self, id: int, sheet: Sheet) -> None:
        stem = sheet.stem
        bare = _DATED_NAME.sub("", stem).strip(" -–_")
        for name in {sheet.note.title, stem, bare, *sheet.note.aliases}:
            said = tokens(name)
            if said and not all(word.isdigit() for word in said):
                for own in {said, inflected(said)} - {()}:
                    self.names.setdefault(own, set()).add(id)
                if bare == stem and len(said) <= 4:
                    for word in said:
                        if len(word) > 2 or is_spaceless(word):
                            for form in {word, *inflected((word,))}:
                                self.parts.setdefault(form, set()).add(id)

    @cached_property
    def keys(self) -> dict[str, Key]:
        """What values are called."""
        notes: dict[str, set[int]] = {}
        kinds: dict[str, Counter[str]] = {}
        shown_as: dict[str, Counter[str]] = {}
        for id, sheet in self.sheets.items():
            for fact in sheet.facts:
                key = key_of(fact.name)
                notes.setdefault(key, set()).add(id)
                kinds.setdefault(key, Counter())[reading(fact).kind] += 1
                shown_as.setdefault(key, Counter())[fact.name] += 1
        made = {}
        for key, ids in notes.items():
            if key in ("tags", "tag", "aliases", "alias", "cssclasses", "cssclass", "publish"):
                continue
            words = re.findall(r"[^\W_]+(?:['’-][^\W\d_]+)*", key) or [key]
            needed = [simplified(word) not in _FILLERS for word in words]
            made[key] = Key(
                key, shown_as[key].most_common(1)[0][0],
                tuple(self.meanings(word) for word in words),
                tuple(needed) if any(needed) else (True,) * len(words),
                self._groups(key) | self._groups(_measured(key)[0]) or self._head_groups(key),
                frozenset(ids), kinds[key],
            )  # fmt: skip
        return made

    # -------------------------------------------------------------------------------------------- what words mean

    @cached_property
    def _language(self) -> tuple[str, ...]:
        """The language of the vault's folders, tags and properties: “course” is no race where all else is English."""
        said = {folder for sheet in self.sheets.values() for folder in sheet.note.path.split("/")[:-1]}
        said |= {tag.rpartition("/")[2] for sheet in self.sheets.values() for tag in sheet.note.tags}
        said |= {key_of(fact.name) for sheet in self.sheets.values() for fact in sheet.facts}
        return (main_language(said),)

    def _groups(self, word: str) -> frozenset[str]:
        """The groups of a word of the vault: in its own language, else in any."""
        return groups(word, self._language) or groups(word, LANGUAGES) or groups(_DAY.sub("", word), LANGUAGES)

    def _head_groups(self, key: str) -> frozenset[str]:
        """The groups of the noun that a German or Dutch compound ends in: `bereidingstijd`, `Monatsbetrag`."""
        word = simplified(key)
        if self._language[0] not in ("de", "nl") or not word.isalpha():
            return frozenset()
        heads = (groups(word[at:], self._language) for at in range(3, len(word) - 3))
        return next((found for found in heads if found), frozenset())

    def meanings(self, word: str) -> frozenset[str]:
        """As `meanings`, for a word of the vault."""
        return forms(word, LANGUAGES) | {f"@{group}" for group in self._groups(word)}

    def kind_of_note(self, word: frozenset[str]) -> Ids:
        """The notes of the kind that a word names: by folder, by tag, or by a property such as `type`."""
        found: list[set[int]] = [self._of(index, word) for index in (self.in_folders, self.with_tags, self.typed)][::-1]
        if "@daily" in word and not found[-1]:
            found.insert(
                0, {id for id, sheet in self.sheets.items() if sheet.day and not _DATED_NAME.sub("", sheet.stem)}
            )
        return frozenset(sorted(found, key=len)[-1])

    @staticmethod
    def _of(index: Mapping[str, set[int]], word: frozenset[str]) -> set[int]:
        return set().union(*(index[form] for form in word if form in index))

    def tagged(self, tag: str, word: frozenset[str] = frozenset()) -> Ids:
        """The notes with a tag or one below it, by its whole name, the last part of it, or a word for that."""
        whole = self.tags.get(simplified(tag))
        if whole:
            return frozenset(whole)
        return frozenset(self._of(self.with_tags, word | {simplified(tag)}))

    def valued(self, held: Iterable[tuple[str, str]]) -> Ids:
        """The notes that have one of these values: (key, simplified text)."""
        wanted: dict[str, set[str]] = {}
        for key, text in held:
            wanted.setdefault(key, set()).add(text)
        return frozenset(
            id
            for key, texts in wanted.items()
            if key in self.keys
            for id in self.keys[key].notes
            if any(simplified(shown(kind_of(fact.value))) in texts for fact in self.sheets[id].values([key]))
        )

    def mentioning(self, ids: Ids) -> Ids:
        """The notes that link to one of these."""
        return frozenset(id for id, sheet in self.sheets.items() if sheet.links & ids)

    def find_keys(self, said: Sequence[frozenset[str]], quiet: Sequence[bool] = ()) -> list[tuple[Key, set[int], int]]:
        """The keys of which all needed words are said, best first: the key, the places of its words, and how well.

        `quiet` words only help others. What is said in the very word is better than a synonym.
        """
        found = []
        for key in self.keys.values():
            places: set[int] = set()
            score, missing = 0, False
            for word, needed in zip(key.words, key.needed, strict=True):
                at = [place for place, one in enumerate(said) if one & word]
                places.update(at)
                literal = any(not form.startswith("@") for place in at for form in said[place] & word)
                score += (3 if literal else 2) if at else 0
                missing |= needed and not at
            if not places or missing:
                at = [place for place, one in enumerate(said) if one & {f"@{group}" for group in key.groups}]
                places, score, missing = set(at), 2, not at
            if missing or (quiet and all(quiet[place] for place in places)):
                continue
            found.append((key, places, score - (not all(key.needed))))
        return sorted(found, key=lambda one: (-one[2], -len(one[0].notes)))

    def with_words(self, texts: Iterable[str], word: frozenset[str]) -> bool:
        """Whether one of the texts holds the word or one that means the same."""
        return any(word & self.meanings(one) for text in texts for one in WORD.findall(text))


def shown(read: Reading) -> str:
    """A value as it is said: a link by the name of its note."""
    if read.kind == "link":
        return read.target.partition("#")[0].rpartition("/")[2].removesuffix(".md")
    return read.text


_SCALES = {
    "mg": 1e-6,
    "g": 1e-3,
    "kg": 1.0,
    "t": 1e3,
    "mm": 1e-6,
    "cm": 1e-5,
    "m": 1e-3,
    "km": 1.0,
    "ml": 1e-3,
    "l": 1.0,
}


@lru_cache(maxsize=2_000)
def _measured(key: str) -> tuple[str, str]:
    """A value's name without the unit that it ends in, and that unit: `distance` and `km` of `distance_km`."""
    words = re.findall(r"[^\W\d_]+|[€$£¥%]", key)
    unit = words[-1] if words else ""
    minutes = kind_of(f"1 {unit}").minutes or 0
    bare = " ".join(words[:-1])
    if not bare:
        return ("", unit) if (0 < minutes <= 60 and len(unit) > 2) or unit in ("km", "kg") else (key, "")
    if unit == "min" and groups(bare, LANGUAGES) - {"duration", "length"}:
        return key, ""  # the least price, and no minutes
    known = currency_of(unit) or (unit in _SCALES and len(unit) > 1) or (minutes and (len(unit) > 1 or unit == "h"))
    return (bare, unit) if known else (key, "")


def reading(fact: Fact) -> Reading:
    """What a value says; a bare number has the unit that its name ends in: `minutes: 70`, `distance_km: 5`."""
    found = kind_of(fact.value)
    if found.kind == "text" and (amount := _AMOUNT.match(found.text)):  # 12.50 € lunch
        first = kind_of(amount[0])
        known = currency_of(first.unit) or first.unit in _SCALES or first.kind == "duration"
        return replace(first, text=found.text) if first.number is not None and known else found
    if found.kind != "number" or found.unit or not (unit := _measured(key_of(fact.name))[1]):
        return found
    minutes = kind_of(f"1 {unit}").minutes
    if minutes is None:
        return replace(found, unit=unit)
    return replace(found, kind="duration", unit=unit, minutes=minutes * (found.number or 0.0))


def scaled(fact: Fact, number: float) -> float:
    """A number in the unit in which grams and kilograms, metres and kilometres can be compared."""
    return number * _SCALES.get(reading(fact).unit.lower(), 1.0)


def iter_numbers(facts: Iterable[Fact]) -> Iterator[tuple[Fact, float | None, bool]]:
    """Each fact with its number, or the minutes of a duration, None if it has none; and whether it is a duration."""
    for fact in facts:
        read = reading(fact)
        if read.kind == "duration" and read.minutes is not None:
            yield fact, read.minutes, True
        else:
            yield fact, read.number if read.kind == "number" else None, False
