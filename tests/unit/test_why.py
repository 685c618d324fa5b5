"""The steps from a file to its place in an answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tarsd.why import Explanation, why
from tests.support.engine import Engine, write


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    write(tmp_path / "v", "Kiln.md", "# Kiln\n\nThe cone went down at 1240 degrees.\n\n## Ash\n\nSieve it.\n")
    write(tmp_path / "v", "Beans.md", "Sow them in May.\n")
    write(tmp_path / "v", "Chat.md", "---\ntars: session\n---\nThe cone went down.\n")
    write(tmp_path / "v", ".hidden/Secret.md", "cone\n")
    with Engine(tmp_path, model=None, processes=1) as made:
        made.reconcile()
        yield made


def ask(engine: Engine, path: str, query: str) -> Explanation:
    return why(engine.store, engine.searcher, list(engine.vaults.values()), ("", path), query)


def steps(said: Explanation) -> dict[str, bool]:
    return {step.step: step.ok for step in said.steps}


def test_a_found_note(engine: Engine) -> None:
    said = ask(engine, "Kiln.md", "cone degrees kiln")
    assert said.final_rank == 1 and said.verdict.startswith("Found")
    assert all(ok for name, ok in steps(said).items())
    assert said.ranks["words"] == 1 and said.ranks["titles"] == 1 and said.ranks["meaning (table)"] == 1
    assert said.chunks[0]["terms"] == ["cone", "degrees", "kiln"] and said.chunks[0]["rank"] == 1
    assert said.as_json()["steps"][0] == {"step": "in the vault", "ok": True, "detail": "The file is there."}


def test_ranks_agree_with_search(engine: Engine) -> None:
    found = list(dict.fromkeys(hit.path for hit in engine.search("sieve the cone")))
    for path in found:
        assert ask(engine, path, "sieve the cone").final_rank == found.index(path) + 1


def test_a_note_without_the_words(engine: Engine) -> None:
    said = ask(engine, "Beans.md", "cone")
    assert steps(said)["words"] is False


def test_words_that_are_nowhere_are_named(engine: Engine) -> None:
    detail = next(step.detail for step in ask(engine, "Kiln.md", "cone zirconium").steps if step.step == "terms")
    assert "zirconium (nowhere in the vault)" in detail


def test_a_note_left_out_by_a_filter(engine: Engine) -> None:
    said = ask(engine, "Kiln.md", "cone path:garden")
    assert steps(said)["filters"] is False and said.final_rank is None and "filters" in said.verdict


def test_an_excluded_note(engine: Engine) -> None:
    said = ask(engine, ".hidden/Secret.md", "cone")
    assert steps(said) == {"in the vault": True, "not excluded": False, "indexed": False}
    assert "dot" in said.verdict


def test_a_note_that_does_not_exist(engine: Engine) -> None:
    said = ask(engine, "Nowhere.md", "cone")
    assert steps(said)["in the vault"] is False and said.final_rank is None


def test_a_path_that_leaves_the_vault(engine: Engine) -> None:
    assert steps(ask(engine, "../outside.md", "cone"))["in the vault"] is False


def test_an_unknown_collection(engine: Engine) -> None:
    said = why(engine.store, engine.searcher, list(engine.vaults.values()), ("work", "Kiln.md"), "cone")
    assert "no collection" in said.verdict


def test_own_conversations_are_said_to_be_no_evidence(engine: Engine) -> None:
    said = ask(engine, "Chat.md", "cone")
    assert steps(said)["evidence"] is False and said.final_rank is not None


def test_a_blank_query(engine: Engine) -> None:
    assert ask(engine, "Kiln.md", "  ").final_rank is None
