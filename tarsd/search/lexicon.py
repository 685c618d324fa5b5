"""Query terms against the words that the vault really holds: how rare each is, and what a mistyped one may mean."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from tarsd.search.held import begins_word, has_literal, has_word
from tarsd.search.query import Query, Term
from tarsd.search.titles import nearest
from tarsd.store import Store, stem
from tarsd.words import fold, split_words, stems

_folded = functools.lru_cache(maxsize=1_000)(fold)
_LEAST_PREFIX = 3
_CORRECTIONS = 3
# So many are looked at where some may stand only in notes that are not to be known of.
_SPARE = 20
# Words that share their first two letters with a mistyped one; in 100,000 words few pairs have more.
_NEIGHBOURS = 2_000
_CACHED = 2_000
_ALIKE = (1.0,) * 6
# Counts are kept from one state of the index to the next unless this share of it is new; small ones never are.
_DRIFT, _FEW = 0.02, 20
# What a word stands for that was not typed: a correction may be wrong.
CORRECTED = 0.7


@dataclass(frozen=True, slots=True)
class TermStats:
    """A term with what the vault knows of it.

    `chunks` hold it; `weight` says how much it tells, always above 0, and `bm25` is FTS5's own figure for that, next
    to 0 for what half of the chunks hold. Where nothing holds it, `completed` says that longer words begin
    with it, and `instead` lists the near words that are looked for as well. `forms` are its stems in the languages
    of the vault.
    """

    term: Term
    chunks: int
    weight: float
    bm25: float
    completed: bool = False
    instead: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        """Whether the vault holds it, or what it may mean."""
        return self.chunks > 0 or self.completed or bool(self.instead)

    @property
    def trust(self) -> float:
        """1 for the term as typed, less for a substitute."""
        return 1.0 if self.chunks else CORRECTED

    @property
    def expression(self) -> str:
        """The FTS5 expression that finds the term or its substitute."""
        parts = [self.term.expression]
        if self.completed:
            parts.append(f'"{self.term.words[0]}"*')
        parts += [f'"{word}"' for word in self.instead]
        return " OR ".join(parts + ([self.inflected] if self.forms else []))

    @property
    def inflected(self) -> str:
        """The FTS5 expression that finds its other forms."""
        return f"forms : ({_any(self.forms)})"

    def in_text(self, text: str) -> bool:
        """Whether folded text contains the term, a word of the same stem, or its substitute."""
        term = self.term
        if term.spaceless:
            return "".join(term.words) in text
        literal = _folded(term.literal)
        if len(term.words) > 1 or literal[:1] == ".":
            return has_literal(text, literal)
        if self.completed and begins_word(text, term.words[0]):
            return True
        return any(has_word(text, word) for word in (term.words[0], *self.instead))

    def exactly_in(self, text: str) -> bool:
        """Whether folded text holds the term as it was typed, not inflected and not inside a longer word."""
        return has_literal(text, _folded(self.term.literal))


def _any(expressions: Sequence[str]) -> str:
    return " OR ".join(f'"{word}"' for word in expressions)


class Lexicon:
    """Looks terms up in the store; remembers the answers until the index changes.

    It knows nothing of the `hidden` files (ids): a word that stands only there is one that stands nowhere. Nor do
    conversations count: what is asked must not change the answer when it is asked again.
    """

    def __init__(
        self, store: Store, title_words: Callable[[str], list[str]], hidden: frozenset[int] = frozenset()
    ) -> None:
        self.hidden = hidden
        self._store = store
        self._title_words = title_words
        self._known: dict[str, int] = {}
        self._guesses: dict[str, tuple[bool, tuple[str, ...], int]] = {}
        self._generation, self._total = -1, 0
        self._languages: tuple[int, list[str]] = (-1, [])
        self._lock = threading.Lock()

    def look_up(self, query: Query, total: int) -> list[TermStats]:
        """Every term of the query; `total` is the number of chunks in the index."""
        languages = self._vault_languages()
        plain = [_term_stats(term, 0, 0, total, forms=_forms(term, languages)) for term in query.terms]
        counts = self._counts([stats.expression for stats in plain])
        return [self._stats(stats, counts[stats.expression], total) for stats in plain]

    def among_conversations(self, terms: Sequence[TermStats], files: Collection[int], total: int) -> list[TermStats]:
        """The terms that were looked up in `total` chunks of notes, as they stand in these conversations as well.

        What is looked for in place of a word that no note holds stays, unless they hold the word.
        """
        talk = self._store.counts().of_conversations
        typed = [replace(stats, completed=False, instead=()) for stats in terms]
        if self.hidden:
            find = self._store.search.fts
            counts = {t.expression: len(find(t.expression, _ALIKE, talk, files, conversations=True)) for t in typed}
        else:
            counts = self._store.search.frequencies((stats.expression for stats in typed), conversations=True)
        found: list[TermStats] = []
        for stats, bare in zip(terms, typed, strict=True):
            chunks = bare.chunks + counts[bare.expression]
            said = chunks > bare.chunks
            found.append(_term_stats(bare.term, chunks, chunks, total + talk, forms=bare.forms) if said else stats)
        return found

    def _vault_languages(self) -> list[str]:
        generation = self._store.database.generation
        if self._languages[0] != generation:
            self._languages = (generation, self._store.search.languages())
        return self._languages[1]

    def _counts(self, expressions: Sequence[str]) -> dict[str, int]:
        """How many chunks hold each; what is found at all is only counted again when the index has grown or shrunk."""
        with self._lock:
            generation = self._store.database.generation
            if self._generation != generation or len(self._known) > _CACHED:
                total = self._store.counts().of_notes
                if abs(total - self._total) > _DRIFT * self._total or len(self._known) > _CACHED:
                    self._known, self._total = {}, total
                else:
                    self._known = {match: count for match, count in self._known.items() if count > _FEW}
                self._generation, self._guesses = generation, {}
            known = self._known
        missing = [match for match in expressions if match not in known]
        if missing:
            known.update(self._frequencies(missing))
        return known

    def _frequencies(self, expressions: Sequence[str]) -> dict[str, int]:
        counts = self._store.search.frequencies(expressions)
        if self.hidden:
            most = self._store.counts().of_notes
            found = [match for match, count in counts.items() if count]
            counts |= {
                match: counts[match] - len(self._store.search.fts(match, _ALIKE, most, self.hidden)) for match in found
            }
        return counts

    def _stats(self, plain: TermStats, count: int, total: int) -> TermStats:
        term = plain.term
        if count or term.whole or term.spaceless:
            return _term_stats(term, count, count, total, forms=plain.forms)
        word = term.words[0]
        guess = self._guesses.get(word)
        if guess is None:
            guess = self._guesses[word] = self._guess(word)
        completed, instead, found = guess
        return _term_stats(term, 0, found, total, completed=completed, instead=instead, forms=plain.forms)

    def _guess(self, word: str) -> tuple[bool, tuple[str, ...], int]:
        """What a word that is nowhere may mean: whether it is a beginning, else the near words; chunks with either."""
        if len(word) >= _LEAST_PREFIX and self._store.search.words_from(word, 1):
            expression = f'"{word}"*'
            if count := self._counts([expression])[expression]:
                return True, (), count
        if not word.isalpha():
            return False, (), 0
        near = self._title_words(word)
        if len(near) < _CORRECTIONS:
            listed = self._store.search.words_from(stem(word)[:2], _NEIGHBOURS)
            most = _SPARE if self.hidden else _CORRECTIONS
            near += [candidate for candidate in nearest(stem(word), listed, most) if candidate not in near]
        counts = self._counts([f'"{candidate}"' for candidate in near])
        if self.hidden:
            near = [candidate for candidate in near if counts[f'"{candidate}"']]
        chosen = tuple(near[:_CORRECTIONS])
        return False, chosen, max((counts[f'"{candidate}"'] for candidate in chosen), default=0)


def _term_stats(
    term: Term, chunks: int, found: int, total: int, *, completed: bool = False, instead: tuple[str, ...] = (),
    forms: tuple[str, ...] = (),
) -> TermStats:  # fmt: skip
    """`found` of `total` chunks contain the term or its substitute."""
    odds = (max(0, total - found) + 0.5) / (found + 0.5)
    return TermStats(term, chunks, math.log(1.0 + odds), math.log(max(odds, 1.0 + 1e-6)), completed, instead, forms)


def _forms(term: Term, languages: Sequence[str]) -> tuple[str, ...]:
    """The stems of a word in these languages."""
    if term.spaceless or len(term.words) > 1 or not languages or any(char.isdigit() for char in term.words[0]):
        return ()
    # As it was typed: stemmers know endings by their accents.
    word = term.literal if split_words(fold(term.literal)) == list(term.words) else term.words[0]
    return tuple(dict.fromkeys(form for language in languages for form in stems([word.strip()], language)))
