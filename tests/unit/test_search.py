"""Search over a real index: every leg, their fusion, filters, what serves when a model fails, related notes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tarsd.config import SearchSettings
from tarsd.embed.base import Kind, Vectors
from tarsd.embed.fake import FakeEmbedder
from tarsd.errors import BadRequest, EmbedderUnreachable, NotFound
from tarsd.providers.extractive import excerpt
from tarsd.search import MODES, Scope, Searcher, fuse, ranking
from tarsd.search.query import parse_query
from tarsd.search.relevance import Signals, relevance
from tarsd.search.titles import TitleIndex, edits, light_stem, nearest
from tarsd.store import NoteRow
from tarsd.words import index_words
from tests.support.engine import Engine, write

NOTES = {
    "Kiln log.md": "---\naliases: [Firing diary]\ntags: [craft/clay]\ncreated: 2026-03-09\nstatus: Open\n---\n"
    "# Kiln log\n\nThe stoneware cone went down at 1240 degrees after nine hours.\n",
    "Glazes.md": "---\ntags: [craft]\ncreated: 2026-05-01\n---\n# Glazes\n\nCeladon wants reduction in the kiln.\n\n"
    "## Ash glaze\n\nSieve the ash twice.\n",
    "Garden/Beans.md": "# Beans\n\nSow the runner beans in May, see [[Kiln log|the firing]].\n",
    "Garden/Compost.md": "# Compost\n\nAsh goes on the heap, never near the beans.\n",
    "Café.md": "# Café\n\nThe espresso machine leaks.\n",
    "Chats/Old talk.md": "---\ntars: session\n---\nThe kiln was said to reach 900 degrees.\n",
    "tars/Memory.md": "---\ntars: memory\n---\n- The kiln is gas fired.\n",
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("search")
    for path, text in NOTES.items():
        write(folder / "v", path, text)
    with Engine(folder, model=None, processes=1) as made:
        made.reconcile()
        yield made


def paths(hits: object) -> list[str]:
    assert isinstance(hits, tuple | list)
    return list(dict.fromkeys(hit.path for hit in hits))


def test_words_are_found_in_every_mode(engine: Engine) -> None:
    for mode in MODES:
        assert "Kiln log.md" in paths(engine.search("stoneware cone", mode))


def test_a_conversation_does_not_stand_before_the_notes_it_repeats(tmp_path: Path) -> None:
    write(tmp_path / "v", "Ferry.md", "# Ferry\n\nThe ferry leaves at nine from the north quay.\n")
    reply = "## When does the ferry leave from the north quay?\n\n> The ferry leaves at nine from the north quay.\n"
    write(tmp_path / "v", "tars/sessions/Talk.md", f"---\ntars: session\n---\n{reply}")
    with Engine(tmp_path, model=None, processes=1) as made:
        made.reconcile()
        for mode in MODES:
            assert paths(made.search("when does the ferry leave from the north quay", mode)) == [
                "Ferry.md",
                "tars/sessions/Talk.md",
            ]


@pytest.mark.parametrize(
    ("query", "line", "text"),
    [
        ("When is Wren's birthday?", 3, "birthday: 2017-03-30"),
        ("rating 5", 4, "rating: 5"),
        ("who is the vet of Wren", 6, 'vet: "[[Dr Kay]]"'),
        ("wren chip 4711", 8, "  number: 4711"),
        ("Lieblingsort Wren", 9, "lieblingsort: Fensterbank"),
        ("好きな場所 Wren", 10, "好きな場所: 窓辺"),
        ("how heavy is the sled", 12, "weight:: 31"),
    ],
)
def test_every_value_of_a_property_is_quoted_at_its_line(tmp_path: Path, query: str, line: int, text: str) -> None:
    block = (
        '---\ntags: [cat]\nbirthday: 2017-03-30\nrating: 5\nindoor: true\nvet: "[[Dr Kay]]"\nchip:\n  number: 4711\n'
        "lieblingsort: Fensterbank\n好きな場所: 窓辺\n---\nweight:: 31\nof the sled\n\n# A\n\nText.\n"
    )
    write(tmp_path / "v", "Wren.md", block)
    write(tmp_path / "v", "Other.md", "# Other\n\nNothing of the kind.\n")
    with Engine(tmp_path, model=None, processes=1) as made:
        made.reconcile()
        hit = made.search(query)[0]
        assert hit.path == "Wren.md"
        start, lines = excerpt(hit.text, [word.strip("?'s").casefold() for word in query.split()])
        found = dict(enumerate(lines, hit.start_line + start))
        assert found[line] == text
        assert block.split("\n")[line - 1] == text


def test_a_note_that_is_only_listed_is_shown_by_its_text(tmp_path: Path) -> None:
    write(tmp_path / "v", "Day.md", "---\ndate: 2026-05-02\nmood: good\n---\nWent to the fair.\n")
    write(tmp_path / "v", "Card.md", "---\ndate: 2026-05-03\n---\n")
    write(tmp_path / "v", "List.md", "---\ntags: [x]\ndate: 2026-05-04\n---\n# To buy\n\nmilk: two\n\n# More\n\nTea.\n")
    with Engine(tmp_path, model=None, processes=1) as made:
        made.reconcile()
        shown = {hit.path: hit.text for hit in made.search("on:2026-05")}
    assert shown == {"Day.md": "Went to the fair.", "Card.md": "date: 2026-05-03", "List.md": "# To buy\n\nmilk: two"}


def test_a_hit_says_where_and_why(engine: Engine) -> None:
    hit = engine.search("celadon reduction")[0]
    assert (hit.path, hit.title, hit.collection, hit.note.memory_type) == ("Glazes.md", "Glazes", "", "")
    assert hit.start_line <= 7 <= hit.end_line and "Celadon" in hit.text
    assert "words: celadon, reduction" in hit.why and any(reason.startswith("meaning") for reason in hit.why)
    assert 0.0 <= hit.score <= 1.0 and hit.relevance >= 0.75
    wire = hit.as_hit()
    assert isinstance(wire["why"], list) and set(wire) >= {"path", "heading", "start_line", "end_line", "score"}


def test_the_link_of_a_hit_names_its_section(engine: Engine) -> None:
    hit = next(hit for hit in engine.search("sieve the ash twice") if hit.heading == "Ash glaze")
    assert hit.link == "Glazes#Ash glaze"


def test_scores_fall(engine: Engine) -> None:
    scores = [hit.score for hit in engine.search("kiln ash beans")]
    assert scores == sorted(scores, reverse=True)


def test_a_title_and_an_alias_come_first(engine: Engine) -> None:
    for query, reason in (("kiln log", "title"), ("Firing diary", "alias Firing diary")):
        first = engine.search(query)[0]
        assert first.path == "Kiln log.md" and reason in first.why


@pytest.mark.parametrize(
    ("typed", "path"),
    [("celadno", "Glazes.md"), ("compsot", "Garden/Compost.md"), ("glazs", "Glazes.md"), ("stonewar", "Kiln log.md")],
)
def test_mistyped_and_unfinished_words(engine: Engine, typed: str, path: str) -> None:
    assert engine.found(typed, "fts")[0] == path


def test_accents_do_not_matter(engine: Engine) -> None:
    assert engine.found("cafe")[0] == engine.found("café")[0] == "Café.md"


def test_anchor_texts_of_links_find_their_target(engine: Engine) -> None:
    assert "Kiln log.md" in engine.found("the firing", "fts")


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ('kiln "nine hours"', {"Kiln log.md"}),
        ("ash -beans -degrees -machine -fired", {"Glazes.md"}),
        ("ash tag:craft", {"Kiln log.md", "Glazes.md"}),
        ("kiln tag:craft/clay", {"Kiln log.md"}),
        ("beans path:garden", {"Garden/Beans.md", "Garden/Compost.md"}),
        ("beans -file:compost path:garden", {"Garden/Beans.md"}),
        ("kiln [status:open]", {"Kiln log.md"}),
        ("kiln after:2026-04 before:2026-06", {"Glazes.md"}),
        ("tag:craft", {"Kiln log.md", "Glazes.md"}),
        ("kiln tag:nothing", set()),
    ],
)
def test_syntax_restricts_every_leg(engine: Engine, query: str, wanted: set[str]) -> None:
    for mode in MODES:
        found = set(paths(engine.search(query, mode)))
        assert found <= wanted, mode
        assert mode == "fts" or found == wanted


def test_filters_of_a_request(engine: Engine) -> None:
    assert set(paths(engine.answer("kiln", filters={"tag": "craft/clay"}).hits)) == {"Kiln log.md"}
    assert set(paths(engine.answer("kiln", filters={"memory_type": "semantic"}).hits)) == {"tars/Memory.md"}
    with pytest.raises(BadRequest):
        engine.answer("kiln", filters={"tag": 7})


def test_blank_finds_nothing(engine: Engine) -> None:
    for query in ("", "  \n", "?!", "()"):
        assert engine.answer(query, "fts").hits == ()
    assert engine.answer("").hits == ()


def test_limit_and_least_score(engine: Engine) -> None:
    assert len(engine.answer("kiln ash beans", limit=2).hits) == 2
    assert engine.answer("kiln", limit=0).hits == ()
    every = engine.answer("kiln").hits
    least = every[1].score
    assert all(hit.score >= least for hit in engine.answer("kiln", min_score=least).hits)


def test_own_conversations_are_found_and_are_no_evidence(engine: Engine) -> None:
    assert "Chats/Old talk.md" in paths(engine.answer("kiln degrees").hits)
    used = paths(engine.answer("kiln degrees", scope=Scope(conversations=False)).hits)
    assert "Chats/Old talk.md" not in used and "tars/Memory.md" in used


def test_what_is_not_in_the_vault_is_not_relevant(engine: Engine) -> None:
    for query in ("passport number of the ambassador", "quarterly revenue forecast", "tsunami evacuation route"):
        assert max((hit.relevance for hit in engine.search(query)), default=0.0) < 0.5, query


def test_rrf_is_selectable(engine: Engine) -> None:
    searcher = engine.searcher
    other = Searcher(engine.store, SearchSettings(fusion="rrf"), searcher.spaces._embedders[0][1])
    hits = other.search("celadon reduction").hits
    assert hits[0].path == "Glazes.md" and 0 < hits[0].score <= 1


class Broken(FakeEmbedder):
    """A model that answers until it is broken; counts how often it is asked."""

    broken = False
    asked = 0

    def embed(self, texts: Any, kind: Kind) -> Vectors:
        self.asked += 1
        if self.broken:
            raise EmbedderUnreachable("Ollama does not answer at 127.0.0.1:11434.")
        return super().embed(texts, kind)


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Engine]:
    """An index with table and model vectors."""
    for path, text in NOTES.items():
        write(tmp_path / "v", path, text)
    with Engine(tmp_path, model=Broken(), processes=1) as made:
        made.index()
        yield made


def test_a_failing_model_is_said_and_the_table_serves(two: Engine) -> None:
    model = two.model
    assert isinstance(model, Broken)
    assert two.answer("celadon").degraded is None
    model.broken = True
    answer = two.answer("celadon reduction")
    assert answer.hits[0].path == "Glazes.md" and "table is used" in (answer.degraded or "")
    assert any("(table)" in reason for reason in answer.hits[0].why)
    assert "Ollama does not answer" in (answer.degraded or "")


def test_a_failing_model_is_left_alone_for_a_while(two: Engine) -> None:
    model = two.model
    assert isinstance(model, Broken)
    model.broken = True
    two.answer("celadon")
    asked = model.asked
    assert two.answer("another query").degraded and model.asked == asked


def test_without_any_vectors_words_serve(two: Engine) -> None:
    model = two.model
    assert isinstance(model, Broken)
    model.broken = True
    searcher = Searcher(two.store, two.config.search, None, model)
    answer = searcher.search("celadon reduction")
    assert answer.hits[0].path == "Glazes.md" and "words only" in (answer.degraded or "")
    assert answer.hits[0].relevance >= 0.5
    assert paths(searcher.search("celadon", "vec").hits) == ["Glazes.md"]


def test_half_a_model_still_finds_everything(tmp_path: Path) -> None:
    for number, (path, text) in enumerate(NOTES.items()):
        write(tmp_path / "v", path, f"{text}\n{number}\n")
    with Engine(tmp_path, model=FakeEmbedder(), processes=1) as engine:
        engine.index()
        write(tmp_path / "v", "New.md", "# New\n\nThe pyrometer reads in Fahrenheit.\n")
        engine.reconcile()
        assert engine.space().coverage < 1
        assert engine.search("pyrometer fahrenheit")[0].path == "New.md"
        assert "New.md" in paths(engine.search("pyrometer fahrenheit", "vec"))


def test_an_edit_is_seen_by_titles_and_words(tmp_path: Path) -> None:
    write(tmp_path / "v", "One.md", "# One\n\nkiln\n")
    with Engine(tmp_path, model=None, processes=1) as engine:
        engine.reconcile()
        assert engine.found("quorl", "fts") == []
        write(tmp_path / "v", "Quorl.md", "A wedge of brass.\n")
        engine.reconcile()
        assert engine.search("quorl")[0].path == "Quorl.md"
        (tmp_path / "v" / "Quorl.md").rename(tmp_path / "v" / "Gantry.md")
        engine.reconcile()
        assert engine.search("gantry")[0].path == "Gantry.md"
        assert "Quorl.md" not in paths(engine.search("quorl"))


def test_related_notes(engine: Engine) -> None:
    hits = engine.searcher.related(("", "Garden/Beans.md"), 5)
    found = {hit.path: hit for hit in hits}
    assert "Garden/Beans.md" not in found and "Garden/Compost.md" in found
    assert "linked from here" in found["Kiln log.md"].why
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert len(engine.searcher.related(("", "Garden/Beans.md"), 1)) == 1
    with pytest.raises(NotFound):
        engine.searcher.related(("", "Nowhere.md"), 5)


# The parts


def test_keyword_values_know_what_good_would_be() -> None:
    assert fuse.keyword_values({1: 2.0, 2: 1.0}, ideal=4.0) == {1: 0.5, 2: 0.25}
    assert fuse.keyword_values({1: 8.0}, ideal=4.0) == {1: 1.0}
    assert fuse.keyword_values({}, ideal=0.0) == {}


def vectors(role: str, cosines: dict[int, float], weight: float = 1.0, coverage: float = 1.0) -> fuse.VectorList:
    return fuse.VectorList(role, role, cosines, 0.2, weight, coverage)


def test_meaning_starts_at_the_background() -> None:
    values, weight = fuse.meaning_values([vectors("table", {1: 0.2, 2: 0.6}, 0.75)], [1, 2, 3])
    assert values == {1: pytest.approx(0.0), 2: pytest.approx(0.5)} and weight == 0.75


def test_a_chunk_without_model_vector_competes_by_the_table() -> None:
    model = vectors("model", {1: 0.6, 2: 0.4}, 1.25, coverage=0.5)
    table = vectors("table", {1: 0.5, 2: 0.3, 3: 0.5})
    values, weight = fuse.meaning_values([model, table], [1, 2, 3])
    assert values[1] == pytest.approx(values[3]) and values[2] < values[3]
    assert 1.0 < weight < 1.25


def test_meaning_leads_where_words_do_not_tell_notes_apart() -> None:
    file_of = {i: 10 * i for i in range(1, 7)}
    flat, peaked = dict.fromkeys(file_of, 0.4), {1: 0.9, 2: 0.5, 3: 0.4, 4: 0.3, 5: 0.2}
    assert fuse.lead(peaked, flat, file_of) == 1.0
    assert fuse.lead(peaked, peaked, file_of) == pytest.approx(1.5)
    assert fuse.lead(flat, peaked, file_of) == fuse.lead({}, peaked, file_of) == 2.0
    assert fuse.lead({}, {}, file_of) == fuse.lead({}, {}, {}) == 1.0


def test_support_speaks_for_notes_that_keep_to_the_subject() -> None:
    weights = fuse.ScoreParts(1.0, 0.0, 0.0, 0.5)
    file_of = {1: 10, 2: 10, 3: 20, 4: 20}
    found = fuse.parts({1: 0.9, 2: 0.8, 3: 0.9}, {}, {}, file_of, {10: 2, 20: 2}, weights)
    ranked, _ = fuse.weighted(found, weights)
    assert [chunk_id for chunk_id, _ in ranked] == [1, 2, 3, 4]


def test_rrf_is_one_for_the_first_of_all_lists() -> None:
    scores = fuse.reciprocal([([1, 2], 1.0), ([1, 3], 1.0)], 60)
    assert scores[1] == pytest.approx(1.0) and scores[2] == scores[3] < 0.5


def test_spread_moves_further_passages_back() -> None:
    ranked = fuse.spread([(1, 1.0), (2, 0.9), (3, 0.85)], {1: 10, 2: 10, 3: 20}, 0.9)
    assert [chunk_id for chunk_id, _ in ranked] == [1, 3, 2]


def test_relevance_rises_with_what_speaks_for_a_passage() -> None:
    def figure(coverage: float, meaning: float | None, absent: float = 0.0) -> float:
        return relevance(Signals(coverage, meaning, absent))

    assert figure(0.0, 0.0) < 0.25 < figure(0.6, 0.3) < figure(1.0, 0.6)
    assert figure(0.5, 0.4, absent=0.5) < figure(0.5, 0.4)
    assert figure(1.0, None) > 0.75 > figure(0.4, None)


def test_a_model_of_all_languages_needs_no_word_of_the_question() -> None:
    def figure(coverage: float, meaning: float, absent: float, lead: float) -> float:
        return relevance(Signals(coverage, meaning, absent, lead))

    assert figure(0.0, 0.3, 1.0, 0.2) > 0.75, "all words are of another language, and one passage stands out"
    assert figure(0.0, 0.16, 1.0, 0.06) < 0.5, "nothing stands out"
    assert figure(0.1, 0.2, 0.4, 0.06) < 0.25, "the vault knows these words, and not together"
    assert figure(0.8, 0.45, 0.0, 0.0) > 0.75, "several notes are about it"
    assert figure(0.3, 0.35, 0.2, 0.1) < 0.5 < figure(0.3, 0.35, 0.2, 0.25), "one passage stands out"


def test_meaning_weighs_more_the_less_words_are_found() -> None:
    assert 1.0 == fuse.beyond_words(0.0) < fuse.beyond_words(0.3) < fuse.beyond_words(1.0) == fuse.beyond_words(0.9)
    assert fuse.beyond_words(0.3, 0.3) == fuse.beyond_words(0.3)
    assert fuse.beyond_words(0.8, 0.2) > fuse.beyond_words(0.8)


def test_a_model_that_finds_all_equally_near_is_not_heard() -> None:
    assert 1.0 == fuse.reads(-0.1) == fuse.reads(0.15) > fuse.reads(0.3) > fuse.reads(0.4) == 0.0


@pytest.mark.parametrize("text", ["what did we decide about heating", "Was haben wir beschlossen?", "ตัดสินใจ"])
@pytest.mark.parametrize("name", ["minilm", "e5"])
def test_which_questions_a_model_understands(text: str, name: str) -> None:
    lists = [fuse.VectorList(name, "model", {}, 0.0, 1.0, 1.0)]
    asked = ranking.Ranking(parse_query(text), "hybrid", lists=lists)
    assert asked.understood is (name == "e5" or text.startswith("what"))
    assert not ranking.Ranking(parse_query(text), "fts").understood


class Synonyms(FakeEmbedder):
    """Knows other words for those of the notes."""

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        same = {"thermometer": "stoneware cone", "oven": "kiln", "melted": "went down", "pottery": "stoneware"}
        return super().embed([" ".join(same.get(w, w) for w in text.lower().split()) for text in texts], kind)


@pytest.mark.parametrize(
    "question",
    [
        "who noticed that the pottery thermometer in the oven melted after breakfast, beside the heap",
        "which pottery thermometer has melted inside the oven during May",
    ],
)
def test_a_paraphrase_is_not_outvoted_by_a_word_it_shares_with_others(tmp_path: Path, question: str) -> None:
    with Engine(tmp_path, model=Synonyms(256, name="synonyms"), processes=1) as engine:
        for path, text in NOTES.items():
            write(engine.vault, path, text)
        engine.index()
        assert engine.search(question, "fts")[0].path != "Kiln log.md"
        assert engine.search(question)[0].path == "Kiln log.md"
        assert engine.searcher._unsaid(engine.searcher.rank(question))[0] > 0.5
        assert engine.searcher._unsaid(engine.searcher.rank("Wer hat die Töpferware im Ofen gesehen?"))[0] == 0.0


def test_what_no_note_knows_does_not_weaken_the_names_in_a_foreign_question(tmp_path: Path) -> None:
    with Engine(tmp_path, model=FakeEmbedder(256), processes=1) as engine:
        for path, text in NOTES.items():
            write(engine.vault, path, text)
        engine.index()
        for question in ("Celadon 釉薬の還元焼成は何度ですか", "¿Qué es lo que necesita el Celadon en el horno?"):
            found = engine.searcher.rank(question)
            assert found.fused[0][0] in {i for i, _ in found.keyword}
            assert found.parts[found.fused[0][0]].keyword >= 0.5


QUERIES_OF_WORDS = (
    "the stoneware cone went down", "stoneware cone and the heap", "stoneware cone Gebühren", "Zollamt Gebühren"
)  # fmt: skip
"""Ever less of each stands in one passage."""


class Translating(FakeEmbedder):
    """Reads German as English, word by word, as a model of all languages would."""

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        english = {"brennofen": "stoneware", "kegel": "cone", "sank": "went", "grad": "degrees", "stunden": "hours"}
        return super().embed([" ".join(english.get(w, w) for w in text.lower().split()) for text in texts], kind)


@pytest.mark.parametrize("answers", [True, False])
def test_what_a_model_of_all_languages_finds_is_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    monkeypatch.setattr(ranking, "MULTILINGUAL", frozenset({"translating"} if answers else ()))
    with Engine(tmp_path, model=Translating(256, name="translating"), processes=1) as engine:
        for path, text in NOTES.items():
            write(engine.vault, path, text)
        engine.index()
        best = engine.search("Brennofen Kegel sank Grad Stunden")[0]
        assert engine.searcher.rank("Brennofen Kegel sank Grad Stunden").all_languages is answers
        assert (best.path, best.relevance >= 0.5) == ("Kiln log.md", answers)
        assert engine.search("Zollamt Hafen Gebühren")[0].relevance < 0.5
        unsaid = [engine.searcher._unsaid(engine.searcher.rank(query))[0] for query in QUERIES_OF_WORDS]
        assert unsaid[0] == 0.0 and (unsaid == sorted(unsaid) and unsaid[-1] == 1.0 if answers else unsaid[-1] == 0.0)


def note(number: int, title: str, *aliases: str) -> NoteRow:
    return NoteRow(number, "", f"{title}.md", title, aliases, (), "note", "", False, False, 0, 0, "ok")


def test_title_cover() -> None:
    index = TitleIndex()
    index.update([note(1, "Graph view"), note(2, "Daily notes", "Journal"), note(3, "Notes")], 1)
    found = index.matches({"graph": 1.0}, "graph")
    assert 0 < found[1].cover < 1 and set(found) == {1}
    assert index.matches({"journal": 1.0}, "journal")[2].exact
    both = index.matches({"daily": 1.0, "note": 1.0}, "daily note")
    assert both[2].cover == both[3].cover == 1.0


@pytest.mark.report("https://github.com/epwalsh/obsidian.nvim/issues/102")
@pytest.mark.parametrize(
    ("title", "query"),
    [
        ("🏡 Homepage", "homepage"),
        ("✅ Done list", "done list"),
        ("→ Зима ❄️", "зима"),
        ("🇯🇵 日本", "日本"),
        ("A+B=C", "a b c"),
    ],
)
def test_a_name_with_emoji_or_symbols_is_found_by_its_words(title: str, query: str) -> None:
    index = TitleIndex()
    index.update([note(1, title), note(2, "Link home")], 1)
    for said in (query, title):
        words = index_words(said)
        assert index.matches(dict.fromkeys(words, 1.0), " ".join(words))[1].exact, said


def test_a_name_of_symbols_alone_is_found_by_them() -> None:
    index = TitleIndex()
    index.update([note(1, "🏡"), note(2, "🏡 Homepage")], 1)
    found = index.matches({"🏡": 1.0}, "🏡")
    assert found[1].exact and not found[2].exact


@pytest.mark.report("https://github.com/epwalsh/obsidian.nvim/issues/102")
def test_a_note_named_with_an_emoji_stands_before_those_that_link_to_it(tmp_path: Path) -> None:
    write(tmp_path / "v", "00. Home/🏡 Homepage.md", "Welcome to the quayside.\n")
    write(tmp_path / "v", "Link home.md", "[[🏡 Homepage]] and [[00. Home/🏡 Homepage|home]]\n")
    with Engine(tmp_path, model=None, processes=1) as engine:
        engine.reconcile()
        assert engine.search("Homepage")[0].path == "00. Home/🏡 Homepage.md"


def test_the_title_index_follows_the_store() -> None:
    index = TitleIndex()
    kept, gone = note(1, "Kiln"), note(2, "Kiln log")
    index.update([kept, gone], 1)
    index.update([kept, note(3, "Gantry")], 2)
    assert set(index.matches({"kiln": 1.0, "gantry": 1.0}, "kiln gantry")) == {1, 3}
    assert index.similar("gantyr") == ["gantry"] and index.similar("logg") == []


def test_names_of_one_common_word_are_still_matched() -> None:
    index = TitleIndex()
    many = [note(n, f"Plugin number{n}") for n in range(1, 500)]
    index.update([*many, note(500, "Plugin")], 1)
    assert set(index.matches({"plugin": 1.0}, "plugin")) == {500}
    assert 7 in index.matches({"plugin": 1.0, "number7": 1.0}, "plugin number7")


@pytest.mark.parametrize(
    ("one", "two", "distance"),
    [("kiln", "kiln", 0), ("kiln", "klin", 1), ("kiln", "kilns", 1), ("kiln", "kin", 1), ("kiln", "kale", 2)],
)
def test_edits(one: str, two: str, distance: int) -> None:
    assert edits(one, two, 2) == distance


def test_edits_agree_with_the_plain_definition() -> None:
    def plain(a: str, b: str) -> int:
        grid = np.zeros((len(a) + 1, len(b) + 1), int)
        grid[:, 0], grid[0] = range(len(a) + 1), range(len(b) + 1)
        for i, j in itertools.product(range(1, len(a) + 1), range(1, len(b) + 1)):
            grid[i, j] = min(grid[i - 1, j] + 1, grid[i, j - 1] + 1, grid[i - 1, j - 1] + (a[i - 1] != b[j - 1]))
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                grid[i, j] = min(grid[i, j], grid[i - 2, j - 2] + 1)
        return int(grid[-1, -1])

    for one, two in itertools.product(map("".join, itertools.product("abc", repeat=3)), repeat=2):
        assert edits(one, two, 3) == plain(one, two)


def test_nearest_words() -> None:
    assert nearest("obsidan", ["obsidian", "oxidan", "obscure"], 3) == ["obsidian"]
    assert nearest("abc", ["abd"], 3) == []


def test_light_stems_meet() -> None:
    groups: list[Callable[[], set[str]]] = [
        lambda: {light_stem(word) for word in ("glaze", "glazes", "glazed", "glazing")},
        lambda: {light_stem(word) for word in ("diary", "diaries")},
        lambda: {light_stem(word) for word in ("note", "notes")},
        lambda: {light_stem(word) for word in ("cache", "caches", "cached", "caching")},
        lambda: {light_stem(word) for word in ("box", "boxes")},
        lambda: {light_stem(word) for word in ("stop", "stopped", "stopping", "stops")},
    ]
    assert all(len(group()) == 1 for group in groups)


def test_a_query_with_private_text_goes_to_no_model_elsewhere(tmp_path: Path) -> None:
    class Away(FakeEmbedder):
        local = False

    model = Away()
    write(tmp_path / "v", "Kiln.md", NOTES["Kiln log.md"])
    with Engine(tmp_path, model=model, processes=1) as made:
        made.index()
        before = model.texts
        assert paths(made.searcher.search("stoneware cone", scope=Scope(leaves=False)).hits) == ["Kiln.md"]
        assert model.texts == before
        made.searcher.search("stoneware cone")
        assert model.texts > before
