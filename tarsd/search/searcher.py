"""A query → hits: keyword list, vector lists and titles, fused, calibrated, with the reasons."""

from __future__ import annotations

import heapq
import logging
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tarsd.config import SearchSettings
from tarsd.embed.base import Embedder
from tarsd.errors import StoreError
from tarsd.passage import Key, Passage
from tarsd.search import filters as conditions
from tarsd.search import fuse
from tarsd.search.held import searched_text
from tarsd.search.lexicon import Lexicon, TermStats
from tarsd.search.query import Query, parse_filters, parse_query
from tarsd.search.ranking import EVERYTHING, STRONG_TITLE, Mode, Ranking, Scope, judged
from tarsd.search.related import related
from tarsd.search.relevance import MAYBE, RELEVANT
from tarsd.search.titles import TitleIndex
from tarsd.search.vectors import QueryVector, VectorSpaces
from tarsd.store import Store

log = logging.getLogger(__name__)

MAX_LIMIT = 200
COLUMN_WEIGHTS = (2.0, 2.0, 1.0, 1.5, 1.0, 1.0, 0.5)
"""BM25 weights of title, aliases, tags, headings, body, anchors, forms."""

_KEYWORD_LIST = 150
_VECTOR_LIST = 50
# Passages whose text is looked at, at least; the order beyond them comes from the lists alone.
_READ = 40
_MANY = 4_000
# Passages that BM25 looks at: about a microsecond each.
_RANKED = 6_000
_TITLES_ADDED = 10
# One or two words are looked for as words; a sentence may say what a note says in other words.
_QUESTION = 3
_ALONE = 8
_OWN = 0.5  # what a conversation of ours keeps of its score
_FEW = 10
_HEARD = 5  # keyword passages that say whether the query is in the notes' words
_REPEATED = 0.5  # what a passage keeps of its score for each one before it that reads the same


@dataclass(frozen=True)
class Results:
    """Hits, best first. `degraded` says in a sentence or two what did not serve, None when all did."""

    hits: tuple[Passage, ...]
    degraded: str | None = None


@dataclass
class Held:
    """What a passage holds of a query: the terms, and those of them that are only part of a name."""

    text: str
    terms: list[TermStats] = field(default_factory=list)
    in_names: list[TermStats] = field(default_factory=list)


class Searcher:
    """Search over one index. Any number of threads; keeps nothing but titles and word counts in memory."""

    def __init__(
        self, store: Store, settings: SearchSettings, table: Embedder | None, model: Embedder | None = None
    ) -> None:
        self.store, self.settings = store, settings
        self.spaces = VectorSpaces(store, table, model)
        self.files: Searcher | None = None
        self.titles, self._questions = TitleIndex(), TitleIndex(conversations=True)
        self._titles_lock = threading.Lock()
        self._lexicon = self._narrow = Lexicon(store, self._similar_titles)

    def search(
        self,
        text: str,
        mode: Mode = "hybrid",
        limit: int = 20,
        min_score: float = 0.0,
        filters: Mapping[str, Any] | None = None,
        scope: Scope = EVERYTHING,
    ) -> Results:
        """The best passages for a query.

        `filters` as `parse_filters` takes them, on top of those in the text; hits below `min_score` (0-1) are left
        out.
        """
        limit = max(0, min(limit, MAX_LIMIT))
        ranking = self.rank(text, mode, limit, filters, scope)
        hits = [hit for hit, _ in judged(ranking, limit)]
        talk = self.rank_conversations(ranking, limit, scope)
        if talk is not None:
            hits = _together(hits, [hit for hit, _ in judged(talk, limit)], limit, _conversations_last)
        if self.files is not None and scope.files is not None:
            files = self._of_files(text, mode, limit, filters, scope.files)
            # They merely arrived: they come after what was written, where that answers.
            if any(hit.relevance >= RELEVANT and not hit.note.of_conversation for hit in hits):
                files = [replace(hit, score=hit.score * self.settings.weight_files) for hit in files]
            hits = _together(hits, files, limit, _files_last)
        return Results(tuple(hit for hit in hits if hit.score >= min_score), ranking.trouble or None)

    def _of_files(
        self, text: str, mode: Mode, limit: int, filters: Mapping[str, Any] | None, scope: Scope
    ) -> list[Passage]:
        """What files that are no notes hold of a query."""
        assert self.files is not None
        try:
            return list(self.files.search(text, mode, limit, 0.0, filters, scope).hits)
        except StoreError as error:
            log.warning("files were not searched: %s", error.message)
            return []

    def related(self, key: Key, limit: int = 10) -> list[Passage]:
        """Notes that belong to the one at (collection, path); NotFound when it is not in the index."""
        notes = self.store.notes.titles()
        with self._titles_lock:
            both = (self.titles, self._questions)
            for names in both:
                names.update(notes, self.store.database.generation)
            return related(self.store, self.spaces, both, key, max(0, min(limit, MAX_LIMIT)))

    def rank(
        self,
        text: str,
        mode: Mode = "hybrid",
        limit: int = 20,
        filters: Mapping[str, Any] | None = None,
        scope: Scope = EVERYTHING,
    ) -> Ranking:
        """All lists of a query over the notes and their fusion: what `search` shows the top of, and `why` explains."""
        query = parse_query(text)
        ranking = Ranking(query, mode)
        wanted = (*query.filters, *parse_filters(filters))
        if query.blank and not wanted and scope.only is None:
            return ranking
        notes = self.store.notes.titles()
        with self._titles_lock:
            self.titles.update(notes, self.store.database.generation)
        ranking.passing = conditions.select(self.store, notes, wanted)
        if scope.hidden:
            everything = {note.id for note in notes}
            ranking.passing = (everything if ranking.passing is None else ranking.passing) - scope.hidden
        if scope.only is not None:
            ranking.passing = set(scope.only) if ranking.passing is None else ranking.passing & scope.only
        if _lists_only(query):
            return self._listing(ranking, limit, scope)
        ranking.terms = self._lexicon_of(scope.hidden).look_up(query, self._total(scope))
        if ranking.passing is not None:
            ranking.allowed = ranking.passing - {row.id for row in self.store.notes.conversations()}
        self._rank(ranking, max(_READ, limit + limit // 4), scope)
        return ranking

    def rank_conversations(self, notes: Ranking, limit: int, scope: Scope = EVERYTHING) -> Ranking | None:
        """The query of a ranking over the conversations, None where there is nothing to rank."""
        every = self.store.notes.conversations()
        talk = {row.id for row in every if scope.conversations or not conditions.is_own(row)}
        if notes.passing is not None:
            talk &= notes.passing
        if not talk or _lists_only(notes.query):
            return None
        ranking = Ranking(notes.query, notes.mode, conversations=True, longest=_FEW + 2 * limit, asked=notes.asked)
        if len(talk) < len(every):
            ranking.allowed = talk
        lexicon = self._lexicon_of(scope.hidden)
        ranking.terms = lexicon.among_conversations(notes.terms, talk, self._total(scope))
        with self._titles_lock:
            self._questions.update(self.store.notes.titles(), self.store.database.generation)
        self._rank(ranking, limit + limit // 4, scope)
        return ranking

    def _total(self, scope: Scope) -> int:
        """How many chunks the notes have, of those that may be known of."""
        hidden = scope.hidden and scope.hidden - {row.id for row in self.store.notes.conversations()}
        return self.store.counts().of_notes - sum(self.store.notes.sizes(hidden).values())

    def _rank(self, ranking: Ranking, read: int, scope: Scope) -> None:
        """All lists and their fusion; `read` is how many passages are looked at."""
        mode, query = ranking.mode, ranking.query
        if ranking.allowed is not None and not ranking.allowed:
            return
        required = self._required(ranking)
        if mode != "vec":
            self._keyword_list(ranking)
        if mode != "fts":
            self._vector_lists(ranking, required, leaves=scope.leaves)
            if mode == "vec" and not ranking.lists:
                self._keyword_list(ranking)
        if mode == "hybrid":
            spoken = {stats.term.words[0]: 1.0 for stats in ranking.terms if len(stats.term.words) == 1}
            spoken |= {word: stats.trust for stats in ranking.terms for word in stats.instead}
            spoken |= {word: 1.0 for stats in ranking.terms if stats.term.spaceless for word in stats.term.words}
            with self._titles_lock:
                inflected = {form: 1.0 for stats in ranking.terms for form in stats.forms}
                names = self._questions if ranking.conversations else self.titles
                ranking.titles = names.matches(spoken, query.text, inflected)
        self._fuse(ranking, required)
        self._read(ranking, read)

    def _lexicon_of(self, hidden: frozenset[int]) -> Lexicon:
        if not hidden:
            return self._lexicon
        lexicon = self._narrow
        if lexicon.hidden != hidden:
            lexicon = self._narrow = Lexicon(self.store, self._similar_titles, hidden)
        return lexicon

    # The lists

    def _keyword_list(self, ranking: Ranking) -> None:
        query = ranking.query
        if not ranking.terms:
            return
        match = " OR ".join(stats.expression for stats in _rarest(ranking.terms))
        for phrase in query.phrases:
            match = f"{phrase.expression} AND ({match})"
        if query.negatives:
            match = f"({match}) NOT ({' OR '.join(term.expression for term in query.negatives)})"
        ranking.keyword = self._fts(ranking, match, ranking.longest or _KEYWORD_LIST, ranking.allowed)

    def _fts(self, ranking: Ranking, match: str, limit: int, files: Collection[int] | None) -> list[tuple[int, float]]:
        find = self.store.search.fts
        return find(match, COLUMN_WEIGHTS, limit, files, conversations=ranking.conversations)

    def _vector_lists(self, ranking: Ranking, required: set[int] | None, *, leaves: bool) -> None:
        if ranking.asked is None:
            ranking.asked, ranking.trouble = self.spaces.query_vectors(ranking.query.text, leaves=leaves)
        talk = ranking.conversations
        for vector in ranking.asked:
            if ranking.vectors and _coverage(ranking.vectors[0][0], talk) >= 1.0:
                break  # the table was asked for the sake of the other kind
            try:
                nearest = self.store.vectors.knn(
                    vector.space.id, vector.vector, ranking.longest or _VECTOR_LIST, ranking.allowed, conversations=talk
                )
            except StoreError as error:
                ranking.trouble = f"The vectors cannot be used ({error.message.rstrip('.')}). Searched by words only."
                ranking.vectors.clear()
                break
            if required is not None:
                have = {chunk_id for chunk_id, _ in nearest}
                extra = self.spaces.cosines(vector, required - have) if len(required) <= _MANY else {}
                nearest = [item for item in nearest if item[0] in required] + list(extra.items())
            nearest.sort(key=lambda item: -item[1])
            ranking.vectors.append((vector, nearest))
        candidates = {i for i, _ in ranking.keyword} | {i for _, nearest in ranking.vectors for i, _ in nearest}
        for vector, nearest in ranking.vectors:
            cosines = dict(nearest)
            cosines |= self.spaces.cosines(vector, candidates - cosines.keys())
            role = vector.space.role
            weight = self.settings.weight_vec if role == "model" else self.settings.weight_table
            ranking.lists.append(
                fuse.VectorList(vector.name, role, cosines, vector.background, weight, _coverage(vector, talk))
            )

    def _required(self, ranking: Ranking) -> set[int] | None:
        """Chunks that hold every phrase, None when the query has none."""
        if not ranking.query.phrases:
            return None
        match = " AND ".join(phrase.expression for phrase in ranking.query.phrases)
        return {i for i, _ in self._fts(ranking, match, _MANY, ranking.allowed)}

    def _fuse(self, ranking: Ranking, required: set[int] | None) -> None:
        ids = list(
            dict.fromkeys([i for i, _ in ranking.keyword] + [i for vectors in ranking.lists for i in vectors.cosines])
        )
        ranking.file_of = self.store.notes.files_of(ids)
        if required is None:
            self._add_titled(ranking)
        self._drop_negatives(ranking)
        chosen = list(ranking.file_of)
        # In another language, words that no note knows are the rule, and say nothing of the names beside them.
        single = [t for t in ranking.terms if not t.term.whole and (t.known or ranking.understood)]
        ideal = sum(stats.bm25 for stats in single)
        keyword = fuse.keyword_values(dict(ranking.keyword), ideal)
        meaning, of_meaning = fuse.meaning_values(ranking.lists, chosen)
        title = {file_id: match.cover for file_id, match in ranking.titles.items()}
        settings = self.settings
        hybrid = ranking.mode == "hybrid"
        if hybrid and len(ranking.terms) >= _QUESTION:
            of_meaning *= fuse.lead(keyword, meaning, ranking.file_of)
        if hybrid and ranking.lists:
            of_meaning *= fuse.beyond_words(*self._unsaid(ranking))
            if ranking.lists[0].name == "minilm":
                of_meaning *= fuse.reads(ranking.lists[0].background)
        weights = fuse.ScoreParts(
            0.0 if ranking.mode == "vec" and ranking.lists else settings.weight_fts,
            of_meaning,
            settings.weight_title if hybrid else 0.0,
            settings.weight_support if hybrid else 0.0,
        )
        sizes = self.store.notes.sizes(set(ranking.file_of.values())) if hybrid else {}
        ranking.parts = fuse.parts(keyword, meaning, title, ranking.file_of, sizes, weights)
        if settings.fusion == "rrf" and hybrid:
            lists = [([i for i, _ in ranking.keyword], 1.0)]
            lists += [([i for i, _ in nearest], 1.0) for _, nearest in ranking.vectors[:1]]
            scores = fuse.reciprocal(lists, settings.rrf_k)
            ranking.fused = fuse.ordered({i: scores.get(i, 0.0) for i in ranking.file_of})
        else:
            ranking.fused, ranking.total = fuse.weighted(ranking.parts, weights)

    def _unsaid(self, ranking: Ranking) -> tuple[float, float]:
        """The share of the query (0-1) that even the keyword passage with most of it does not say, and how much of
        that stands elsewhere in the notes.

        Of pairs of characters only those count that stand nowhere: no passage has most pairs of a sentence. Where the
        model may not know the query's language, what stands nowhere does not count at all.
        """
        rows = self.store.notes.passages([i for i, _ in ranking.keyword[:_HEARD]])
        most = max((ranking.share(held.terms) for held in self.held(ranking.terms, rows).values()), default=0.0)
        pairs = sum(t.weight for t in ranking.terms if t.term.spaceless and not t.term.whole) / ranking.weight
        absent = ranking.absent()
        unsaid = max(absent, (1.0 - min(1.0, most)) * (1.0 - pairs))
        if not ranking.understood:
            return unsaid - absent, 0.0
        # The table knows words and no sentences: it leads, but not so far.
        return unsaid, unsaid - absent if ranking.lists[0].role == "model" else 0.0

    def _add_titled(self, ranking: Ranking) -> None:
        """Notes whose name fits and none of whose passages is in a list come in with their first one."""
        present = set(ranking.file_of.values())
        strong = [
            match
            for match in ranking.titles.values()
            if match.cover >= STRONG_TITLE
            and match.file_id not in present
            and (ranking.allowed is None or match.file_id in ranking.allowed)
        ]
        for match in sorted(strong, key=lambda match: (-match.cover, match.file_id))[:_TITLES_ADDED]:
            for row in self.store.notes.opening(match.file_id):
                ranking.file_of[row.id] = match.file_id

    def _drop_negatives(self, ranking: Ranking) -> None:
        bad = self._negative(ranking, _MANY, set(ranking.file_of.values()))
        ranking.file_of = {i: file_id for i, file_id in ranking.file_of.items() if file_id not in bad}

    def _negative(self, ranking: Ranking, limit: int, files: set[int] | None) -> set[int]:
        """Those of the files that hold what the query excludes."""
        if not ranking.query.negatives:
            return set()
        match = " OR ".join(term.expression for term in ranking.query.negatives)
        found = [i for i, _ in self._fts(ranking, match, limit, files)]
        return set(self.store.notes.files_of(found).values())

    def _listing(self, ranking: Ranking, limit: int, scope: Scope) -> Ranking:
        """Filters and exclusions without words: what meets them, notes and conversations, last changed first."""
        ranking.allowed = allowed = ranking.passing
        left_out: set[int] = set()
        for ranking.conversations in (True, False):
            left_out |= self._negative(ranking, self.store.counts().chunks, allowed)
        listed = [
            note
            for note in self.store.notes.titles()
            if note.id not in left_out
            and (allowed is None or note.id in allowed)
            and (scope.conversations or not conditions.is_own(note))
        ]
        listed.sort(key=lambda note: (-note.mtime_ns, note.path))
        for note in listed[:limit]:
            for row in self.store.notes.opening(note.id):
                ranking.rows[row.id] = row
                ranking.file_of[row.id] = note.id
                ranking.parts[row.id] = fuse.ScoreParts(0.0, 0.0, 0.0, 0.0)
                ranking.fused.append((row.id, 1.0))
        return ranking

    # Reading the best

    def _read(self, ranking: Ranking, count: int) -> None:
        """Fetch the best passages; exact wording moves up, further passages of one note move back."""
        factor = self.settings.same_note
        ranked = fuse.spread(ranking.fused, ranking.file_of, factor)
        head, tail = ranked[:count], ranked[count:]
        ranking.rows = {row.id: row for row in self.store.notes.passages([i for i, _ in head])}
        weight = sum(stats.weight for stats in ranking.terms) or 1.0
        exact: dict[int, float] = {}
        for chunk_id, held in self.held(ranking.terms, list(ranking.rows.values())).items():
            ranking.held[chunk_id], ranking.in_names[chunk_id] = held.terms, frozenset(held.in_names)
            exact[chunk_id] = sum(stats.weight for stats in held.terms if stats.exactly_in(held.text)) / weight
        if ranking.mode != "vec":
            raw = dict(ranking.fused)
            # A word alone is a name and meant as it stands; in a sentence, inflections are the rule.
            bonus = self.settings.weight_exact * max(1.0, _ALONE / max(1, len(ranking.terms)) ** 2)
            whole = ranking.total + bonus
            scores = {i: (raw[i] * ranking.total + bonus * exact.get(i, 0.0)) / whole for i, _ in head}
            head = fuse.spread(fuse.ordered(scores), ranking.file_of, factor)
        if ranking.conversations:  # they repeat what notes say, in the words of the question: the notes come first
            head = [(i, score * _OWN) for i, score in head]
        head = self._once(ranking, head)
        floor = head[-1][1] if head else 0.0
        ranking.fused = head + [(i, min(score, floor)) for i, score in tail]

    def _once(self, ranking: Ranking, head: fuse.Scored) -> fuse.Scored:
        """The best ones, those further back that read the same as others in other notes: footers, templates."""
        notes: defaultdict[str, set[int]] = defaultdict(set)
        for row in ranking.rows.values():
            notes[row.text].add(row.note.id)
        ranking.repeated = {i: len(notes[row.text]) for i, row in ranking.rows.items() if len(notes[row.text]) > 1}
        if not ranking.repeated:
            return head
        seen: Counter[str] = Counter()
        scores: dict[int, float] = {}
        for i, score in head:
            scores[i] = score
            if i in ranking.repeated:
                text = ranking.rows[i].text
                scores[i] *= _REPEATED ** seen[text]
                seen[text] += 1
        return fuse.ordered(scores)

    def held(self, terms: Sequence[TermStats], rows: Sequence[Passage]) -> dict[int, Held]:
        """By passage id, which of the terms it holds: what the keyword index would match, and that alone.

        The passages are of notes, or all of conversations.
        """
        found = {row.id: Held(searched_text(row)) for row in rows}
        talk = any(row.note.of_conversation for row in rows)
        for stats in terms:
            lacking = {id: held for id, held in found.items() if not stats.in_text(held.text)}
            for id in found.keys() - lacking.keys():
                found[id].terms.append(stats)
            if stats.forms and lacking:
                for id in self.store.search.holding(stats.inflected, lacking, conversations=talk):
                    lacking.pop(id).terms.append(stats)
            word = stats.term.words[0]
            inside = [id for id, held in lacking.items() if not stats.term.spaceless and word in held.text]
            if inside and len(stats.term.words) == 1:
                for id in self.store.search.holding(f'forms : "{word}"', inside, conversations=talk):
                    found[id].terms.append(stats)
                    found[id].in_names.append(stats)
        return found

    def _similar_titles(self, word: str) -> list[str]:
        with self._titles_lock:
            return self.titles.similar(word)


def _lists_only(query: Query) -> bool:
    """Whether there are only conditions to meet, and nothing to look for."""
    return not query.terms and not query.text


def _coverage(vector: QueryVector, conversations: bool) -> float:
    return vector.space.talk_coverage if conversations else vector.space.coverage


def _together(
    notes: Sequence[Passage], others: Sequence[Passage], limit: int, last: Callable[[Passage], tuple[bool, ...]]
) -> list[Passage]:
    """Hits of notes and of conversations, or files, by score; where not all have room, those that are `last` go."""
    hits = list(heapq.merge(notes, others, key=lambda hit: -hit.score))
    kept = set(map(_known_by, sorted(hits, key=last)[:limit]))
    return [hit for hit in hits if _known_by(hit) in kept]


def _conversations_last(hit: Passage) -> tuple[bool, bool]:
    """They displace no answer, and where they answer, what does not."""
    return hit.relevance < MAYBE, hit.note.of_conversation


def _files_last(hit: Passage) -> tuple[bool, ...]:
    """They displace no answer, and nothing that scores more."""
    return (hit.relevance < MAYBE or hit.note.of_file,)


def _known_by(hit: Passage) -> tuple[bool, int]:
    """Files have an index, and so numbers, of their own."""
    return hit.note.of_file, hit.id


def _rarest(terms: Sequence[TermStats]) -> list[TermStats]:
    """The terms worth ranking by: rare ones first, until they hold enough passages to choose from.

    BM25 costs as much as there are passages with any of the words, and gives nearly nothing for words that stand in
    most of them.
    """
    kept: list[TermStats] = []
    passages = 0
    for stats in sorted(terms, key=lambda stats: stats.chunks):
        if kept and passages + stats.chunks > _RANKED:
            break
        kept.append(stats)
        passages += stats.chunks
    return kept
