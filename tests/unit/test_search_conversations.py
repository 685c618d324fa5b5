"""What was asked changes nothing: session notes and summaries are found, and count in no statistic of the notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tarsd.search import MODES, Scope, Searcher
from tarsd.search.ranking import EVERYTHING
from tests.support.engine import Engine, write

TOPICS = ("ferry", "kiln", "insurance", "garden", "bicycle", "choir", "harbour", "bread", "tax", "owl")
QUESTIONS = (
    "when does the ferry leave from the north quay",
    "how hot is the kiln",
    "insurance renewal",
    "what grows beside the garden wall",
    "bicycel",  # mistyped
    "harb",  # unfinished
    "zyxomma",  # nowhere in the notes
    '"north quay" ferry',
    "ferry -kiln",
    "the firing",  # what a link calls a note
    "Brot backen",
    "路線",
)
Hits = list[tuple[str, int, float, float, tuple[str, ...]]]


def fill(vault: Path) -> None:
    for number in range(40):
        topic = TOPICS[number % len(TOPICS)]
        text = f"# {topic.title()} {number}\n\nThe {topic} of day {number} was seen from the north quay.\n\n"
        write(vault, f"{topic}/{topic} {number}.md", f"{text}## More\n\nEntry {number * 7919 % 1000} on {topic}s.\n")
    write(vault, "Kiln log.md", "# Kiln log\n\nThe kiln reached 1240 degrees. 路線図。\n")
    write(vault, "Beans.md", "# Beans\n\nSow them in May, see [[Kiln log|the firing]].\n")


def talk(vault: Path, count: int, kind: str = "session") -> None:
    """Conversations that repeat the questions, mistyped words and all, and link to notes by names of their own."""
    for number in range(count):
        asked = QUESTIONS[number % len(QUESTIONS)]
        text = f"## {asked}\n\n> The ferry of day {number}, zyxomma, bicycel. [[Kiln log|hot ferry {number}]]\n"
        about = f"---\ntars: {kind}\nid: c{number}\naliases: [{asked!r}]\n---\n"
        write(vault, f"tars/{kind}/2026-11-29 {asked.strip(chr(34))} {number}.md".replace('"', ""), about + text)


def is_talk(path: str) -> bool:
    return path.startswith("tars/")


def answers(searcher: Searcher, scope: Scope = EVERYTHING) -> dict[tuple[str, str], Hits]:
    """The hits of all questions in every mode, but for conversations."""
    found: dict[tuple[str, str], Hits] = {}
    for question in QUESTIONS:
        for mode in MODES:
            hits = searcher.search(question, mode, 200, scope=scope).hits
            notes = [hit for hit in hits if not is_talk(hit.path)]
            found[question, mode] = [(hit.path, hit.start_line, hit.score, hit.relevance, hit.why) for hit in notes]
    return found


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    fill(tmp_path / "v")
    with Engine(tmp_path, processes=1) as made:
        made.index()
        yield made


def embedded(engine: Engine) -> None:
    engine.index()


def not_embedded_yet(engine: Engine) -> None:
    engine.reconcile()


def after_a_start(engine: Engine) -> None:
    engine.index()
    engine.restart()


def with_codes_in_memory(engine: Engine) -> None:
    engine.index()
    for space in engine.store.vectors.spaces():
        engine.store.vectors.warm(space.id)


def after_a_check(engine: Engine) -> None:
    engine.index()
    engine.store.search.rebuild()
    assert engine.store.check() == []


@pytest.mark.parametrize("state", [embedded, not_embedded_yet, after_a_start, with_codes_in_memory, after_a_check])
@pytest.mark.parametrize("kind", ["session", "summary"])
def test_asking_changes_no_hit_and_no_relevance(engine: Engine, state: Callable[[Engine], None], kind: str) -> None:
    before = answers(engine.searcher)
    assert any(hits for hits in before.values())
    talk(engine.vault, 48, kind)
    state(engine)
    assert answers(engine.searcher) == before
    assert answers(engine.searcher, Scope(conversations=False)) == before


def test_a_conversation_that_grows_and_one_that_is_deleted_change_nothing(engine: Engine) -> None:
    talk(engine.vault, 5)
    engine.index()
    before = answers(engine.searcher)
    for file in sorted((engine.vault / "tars/session").iterdir())[:3]:
        file.write_text(file.read_text("utf-8") + "\n## And then?\n\nThe kiln, the owl and the ferry.\n", "utf-8")
    next(file for file in sorted((engine.vault / "tars/session").iterdir(), reverse=True)).unlink()
    engine.index()
    assert answers(engine.searcher) == before


def test_conversations_are_found_behind_the_notes_they_repeat(engine: Engine) -> None:
    talk(engine.vault, 12)
    engine.index()
    for mode in MODES:
        found = engine.search("the ferry was seen from the north quay", mode, 200)
        assert any(is_talk(hit.path) for hit in found) and not is_talk(found[0].path)
    best, *_ = engine.search("zyxomma")
    assert is_talk(best.path) and "words: zyxomma" in best.why
    (listed, *_) = [hit.path for hit in engine.search('path:tars/session "north quay" ferry')]
    assert is_talk(listed)


def test_conversations_displace_no_answer(engine: Engine) -> None:
    whole = [hit.path for hit in engine.search("kiln", limit=5)]
    talk(engine.vault, 48)
    engine.index()
    assert [hit.path for hit in engine.search("kiln", limit=5)] == whole


@pytest.mark.parametrize(
    ("becomes", "found"), [("---\ntars: session\n---\n", False), ("", True), ("---\ntars: memory\n---\n", True)]
)
def test_a_note_counts_as_what_it_is_now(engine: Engine, becomes: str, found: bool) -> None:
    def known() -> Sequence[Any]:
        (stats,) = engine.searcher.rank("quorl").terms
        return [stats.chunks, engine.store.counts().of_notes]

    chunks = engine.store.counts().of_notes
    for before in ("", "---\ntars: session\n---\n"):
        write(engine.vault, "Turn.md", f"{before}The quorl.\n")
        engine.index()
        write(engine.vault, "Turn.md", f"{becomes}The quorl, then.\n")
        engine.index()
        assert known() == [int(found), chunks + int(found)]
        assert engine.store.check() == [] and "Turn.md" in engine.found("quorl")
