"""Titles and aliases in memory: how much of one a query covers, and which of their words a mistyped word may mean."""

from __future__ import annotations

import functools
import itertools
import math
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tarsd.store import NoteRow
from tarsd.words import index_words, is_stop, stems

# A word in more names than this singles nobody out.
_COMMON = 300
_PAIRED = 6
# The store lists new notes a moment after it counts a new generation.
_SETTLES_S = 1.0


@dataclass(frozen=True, slots=True)
class TitleMatch:
    """How a note's best name fits a query: `cover` is the share of the name's weight that the query names (0-1)."""

    file_id: int
    cover: float
    exact: bool
    alias: bool
    name: str


@dataclass(frozen=True, slots=True)
class _Name:
    file_id: int
    text: str
    folded: str
    alias: bool
    surface: tuple[str, ...]
    words: tuple[str, ...]
    forms: tuple[str, ...]


def light_stem(word: str) -> str:
    """A folded word without the commonest English endings; names and queries meet in this form."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ches", "shes", "sses", "xes", "zes")):
        word = word[:-2]
    for ending, least in (("ing", 6), ("ed", 5), ("s", 4)):
        if len(word) >= least and word.endswith(ending) and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    if len(word) > 4 and word.endswith("e"):
        word = word[:-1]
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls":
        word = word[:-1]
    return word


def _spellings(names: Iterable[tuple[str, bool]]) -> Iterator[tuple[str, bool, list[str]]]:
    """The words of each name, and again without its emoji and other symbols: who looks for 🏡 Home types home."""
    for text, alias in names:
        found = index_words(text)
        plain = [word for word in found if any(char.isalnum() for char in word)]
        for words in (found, plain) if plain != found else (found,):
            if words:
                yield text, alias, words


class TitleIndex:
    """All names of all notes by word, or of all `conversations`: these would make the words of questions common.

    `update` takes what the store lists and works only on what changed.
    """

    def __init__(self, *, conversations: bool = False) -> None:
        self._conversations = conversations
        self._generation, self._settled, self._checked = -1, 0.0, 0.0
        self._notes: dict[int, NoteRow] = {}
        self._names: dict[int, list[_Name]] = {}
        self._by_word: defaultdict[str, set[int]] = defaultdict(set)
        self._surface: Counter[str] = Counter()
        self._by_length: defaultdict[int, set[str]] = defaultdict(set)
        self._single: defaultdict[str, set[int]] = defaultdict(set)
        self._by_text: defaultdict[str, set[int]] = defaultdict(set)

    def update(self, notes: Sequence[NoteRow], generation: int) -> None:
        """Follow the store, at this generation or later; unchanged notes are known by being the same objects."""
        now = time.monotonic()
        if generation != self._generation:
            self._generation, self._settled = generation, now + _SETTLES_S
        elif now > self._settled and self._checked > self._settled:
            return
        self._checked = now
        known = self._notes
        if len(notes) == len(known) and all(known.get(note.id) is note for note in notes):
            return
        fresh = {note.id: note for note in notes}
        for file_id, note in known.items():
            if fresh.get(file_id) is not note:
                self._remove(file_id)
        for file_id, note in fresh.items():
            if known.get(file_id) is not note:
                self._add(note)
        self._notes = fresh

    def _add(self, note: NoteRow) -> None:
        if note.of_conversation != self._conversations:
            return
        stem = note.path.rpartition("/")[2].rpartition(".")[0]
        names = [(note.title, False), *((alias, True) for alias in note.aliases)]
        if stem != note.title:
            names.insert(1, (stem, False))
        made: list[_Name] = []
        for text, alias, found in _spellings(names):
            stop = is_stop(found)
            kept = tuple(word for word, empty in zip(found, stop, strict=True) if not empty) or tuple(found)
            light = tuple(light_stem(word) for word in kept)
            forms = tuple(stems(kept, note.language))
            forms = forms if len(forms) == len(kept) else light
            name = _Name(note.id, text, " ".join(found), alias, kept, light, forms)
            made.append(name)
            self._by_text[name.folded].add(note.id)
            for word in kept:
                self._surface[word] += 1
                self._by_length[len(word)].add(word)
            for word in (*name.words, *name.forms):
                self._by_word[word].add(note.id)
            if len(name.words) == 1:
                self._single[name.words[0]].add(note.id)
        self._names[note.id] = made

    def _remove(self, file_id: int) -> None:
        for name in self._names.pop(file_id, ()):
            self._by_text[name.folded].discard(file_id)
            for word in name.surface:
                self._surface[word] -= 1
                if not self._surface[word]:
                    del self._surface[word]
                    self._by_length[len(word)].discard(word)
            self._single.get(name.words[0], set()).discard(file_id)
            for word in (*name.words, *name.forms):
                if word in self._by_word:
                    self._by_word[word].discard(file_id)
                    if not self._by_word[word]:
                        del self._by_word[word]

    def weight(self, stem: str) -> float:
        """How much a title word tells: rare ones more. Always above 0."""
        return math.log(1 + len(self._names) / (1 + len(self._by_word.get(stem, ()))))

    def matches(
        self, spoken: Mapping[str, float], sentence: str, inflected: Mapping[str, float] | None = None
    ) -> dict[int, TitleMatch]:
        """The best matching name of every note that shares a word with the query.

        `spoken` maps the query's content words (folded) to how sure they are (1 as typed, less when corrected);
        `sentence` is the whole query, for names it equals or holds; `inflected` are stems of its words in the
        languages of the vault.
        """
        sure: dict[str, float] = dict(inflected or {})
        for word, trust in spoken.items():
            stem = light_stem(word)
            sure[stem] = max(trust, sure.get(stem, 0.0))
        folded = " ".join(index_words(sentence))
        weigh = functools.cache(self.weight)
        best: dict[int, TitleMatch] = {}
        for file_id in self._sharing(list(sure)) | self._by_text.get(folded, set()):
            for name in self._names.get(file_id, ()):
                whole = sum(map(weigh, name.words))
                got = sum(
                    weigh(word) * max(sure.get(word, 0.0), sure.get(form, 0.0))
                    for word, form in zip(name.words, name.forms, strict=True)
                )
                exact = name.folded == folded
                cover = 1.0 if exact else got / whole
                known = best.get(file_id)
                if cover > 0 and (known is None or (exact, cover) > (known.exact, known.cover)):
                    best[file_id] = TitleMatch(file_id, cover, exact, name.alias, name.text)
        return best

    def _sharing(self, stems: Sequence[str]) -> set[int]:
        """Notes that share a word with the query; of a word in very many names only those that share another one,
        or have no other."""
        files: set[int] = set()
        common: list[set[int]] = []
        for stem in stems:
            found = self._by_word.get(stem, set())
            if len(found) <= _COMMON:
                files |= found
            else:
                common.append(found)
                files |= self._single.get(stem, set())
        for first, second in itertools.combinations(common[:_PAIRED], 2):
            files |= first & second
        return files

    def mentioned(self, text: str) -> Collection[int]:
        """Notes whose name of two or more words (or one of six letters and more) stands in the text."""
        found = index_words(text)
        files: set[int] = set()
        for length in range(1, 6):
            for start in range(len(found) - length + 1):
                name = " ".join(found[start : start + length])
                if name in self._by_text and (length > 1 or len(name) > 5):
                    files |= self._by_text[name]
        return files

    def similar(self, word: str, limit: int = 3) -> list[str]:
        """Title words that a mistyped word may mean, nearest first."""
        around = range(len(word) - 2, len(word) + 3)
        return nearest(word, (known for length in around for known in self._by_length.get(length, ())), limit)


def nearest(word: str, among: Iterable[str], limit: int) -> list[str]:
    """Words within one edit (two from eight letters on), nearest first; words under four letters have none."""
    length = len(word)
    if length < 4:
        return []
    most = 1 if length < 8 else 2
    letters = set(word)
    found: list[tuple[int, str]] = []
    for candidate in among:
        # Cheap looks first: an edit changes the length by one and at most two of the letters in use.
        if candidate == word or abs(len(candidate) - length) > most:
            continue
        if len(letters.symmetric_difference(candidate)) > 2 * most:
            continue
        # One of the first two letters is nearly always right.
        if candidate[:1] not in (word[:1], word[1:2]) and candidate[1:2] != word[1:2]:
            continue
        distance = edits(word, candidate, most)
        if distance <= most:
            found.append((distance, candidate))
    return [candidate for _, candidate in sorted(found)[:limit]]


def edits(left: str, right: str, most: int) -> int:
    """Insertions, deletions, replacements and swaps of neighbours between two words; `most` + 1 when beyond."""
    before, last = list(range(len(right) + 1)), list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        row = [i] + [0] * len(right)
        for j, b in enumerate(right, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            row[j] = cost
        if min(row) > most:
            return most + 1
        before, last = last, row
    return last[-1]
