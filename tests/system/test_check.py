"""The daemon's look at itself: each leg of the index broken by hand, and models that lie, hang or answer."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from tarsd.app import health as check
from tarsd.config import EmbeddingSettings
from tarsd.embed.fake import FakeEmbedder
from tarsd.embed.ollama import OllamaEmbedder
from tarsd.errors import EmbedError, ProviderBusy, ProviderError, RateLimited
from tarsd.index import index_check
from tarsd.index.index_check import CheckResult, IndexCheck
from tarsd.protocol import CheckRequest
from tarsd.providers import make
from tarsd.providers.base import ProviderEvent, StreamEnd, Text, Waiting
from tarsd.providers.fake import FakeProvider as FakeChat
from tarsd.store import schema
from tarsd.store.database import load_vec
from tests.conftest import Daemon
from tests.support.doubles.embedder import Ollama as OllamaServer
from tests.support.doubles.openai import OpenAIDouble
from tests.support.doubles.script import Cut, Fail, Say, Think
from tests.support.doubles.server import Reply
from tests.support.engine import Engine, forget_time, write

Start = Callable[..., Daemon]
SAMPLE = Path(index_check.__file__).parent.parent / "data" / "sample-vault"


@pytest.fixture
def engine(short_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """The sample vault, indexed, with vectors of a model as well."""
    monkeypatch.setattr(index_check, "AGAIN_S", 0.0)
    with Engine(short_tmp, SAMPLE, processes=1) as made:
        made.index()
        yield made


def sound(engine: Engine, behind: int = 0) -> IndexCheck:
    return IndexCheck(lambda: engine.store, engine.vaults, lambda: behind)


def states(engine: Engine) -> dict[str, str]:
    return {name: look().state for name, look in sound(engine).steps}


def breaking(engine: Engine, *statements: str) -> None:
    """Change the index behind the engine's back, as a broken program would."""
    path = engine.config.paths.index_db
    db = apsw.Connection(str(path))
    db.set_busy_timeout(5000)
    load_vec(db)
    db.execute("ATTACH DATABASE ? AS emb", (str(engine.config.paths.embeddings_db),))
    for statement in statements:
        db.execute(statement)
    db.close()


def merged(engine: Engine) -> None:
    """All segments of the keyword index become one, as they do by and by while notes change."""
    breaking(engine, *(f"INSERT INTO {table}({table}) VALUES ('optimize')" for table in schema.KEYWORD_TABLES))


def edited(engine: Engine) -> None:
    for number in range(40):
        write(engine.vault, "changes.md", f"Plover edit {number}\n")
        engine.index()


def deleted_and_back(engine: Engine) -> None:
    away = engine.vault / "Kitchen"
    away.rename(engine.vault.parent / "Kitchen")
    engine.index()
    (engine.vault.parent / "Kitchen").rename(away)
    engine.index()
    merged(engine)


@pytest.mark.parametrize("change", [merged, edited, deleted_and_back])
@pytest.mark.parametrize("table", schema.KEYWORD_TABLES)
def test_what_changed_since_a_search_is_no_damage(engine: Engine, table: str, change: Callable[[Engine], None]) -> None:
    """A connection that has searched remembers the keyword index as it was then."""
    if table != schema.KEYWORD_TABLES[0]:
        for number in range(3):
            write(
                engine.vault, f"tars/sessions/{number}.md", f"---\ntars: session\nid: c{number}\n---\nPlover {number}\n"
            )
            engine.index()
    with engine.store.database.reader() as db:
        db.execute(f"SELECT count(*) FROM {table} WHERE {table} MATCH 'plover'").fetchall()
    change(engine)
    assert sound(engine).file() == CheckResult("ok", "All pages are intact.")


def test_a_sound_index_is_sound(engine: Engine) -> None:
    write(engine.vault, "blank.md", "\n\n")
    write(engine.vault, "only properties.md", "---\na: 1\n---\n")
    write(engine.vault, "empty.md", "")
    write(engine.vault, "signs.md", "!!! … 🗂️\n")
    write(engine.vault, "京都.md", "京都のお茶は緑です。\n")
    write(engine.vault, "twice.md", (SAMPLE / "Kitchen" / "Gertrude.md").read_bytes())
    engine.index()
    assert set(states(engine).values()) == {"ok"}


GAPS = {
    "passages without words": "DELETE FROM fts WHERE rowid IN (SELECT id FROM chunks LIMIT 3)",
    "words without a passage": "INSERT INTO fts(rowid, body) VALUES (99999, 'word')",
    "passages without a note": "UPDATE chunks SET file_id = 99999 WHERE id = (SELECT min(id) FROM chunks)",
    "links without a note": "INSERT INTO links SELECT 99999, 1, '', '', '', '', '', 0, NULL",
    "names without a note": "INSERT INTO names VALUES ('x', 99999, 0)",
    "notes without passages": "UPDATE chunks SET file_id = (SELECT max(id) FROM files) WHERE file_id = 1",
    "passages without a vector of table": "DELETE FROM vec_1 WHERE chunk_id IN (SELECT chunk_id FROM vec_1 LIMIT 3)",
    "vectors of fake without a passage": "INSERT INTO vec_2(chunk_id, code) VALUES (99999, vec_bit(zeroblob(8)))",
    "vectors of fake missing from the cache": "DELETE FROM emb.vectors WHERE embedder = 2 AND id % 5 = 0",
}


@pytest.mark.parametrize("what", GAPS)
def test_a_gap_between_the_legs_is_a_fault(engine: Engine, what: str) -> None:
    breaking(engine, GAPS[what])
    verdict = sound(engine).passages()
    assert verdict.state == "fault" and what in verdict.text and "reindex --full" in verdict.hint


def test_its_hint_mends_it(engine: Engine) -> None:
    for statement in GAPS.values():
        breaking(engine, statement)
    assert sound(engine).passages().state == "fault"
    engine.restart()
    engine.reconcile(full=True)
    engine.embed()
    assert {name: look() for name, look in sound(engine).steps if look().state != "ok"} == {}


def test_a_gap_that_closes_by_itself_is_none(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    breaking(engine, "INSERT INTO names VALUES ('x', 99999, 0)")
    monkeypatch.setattr(time, "sleep", lambda seconds: breaking(engine, "DELETE FROM names WHERE file_id = 99999"))
    assert sound(engine).passages().state == "ok"


def test_a_page_that_is_overwritten_is_found(short_tmp: Path) -> None:
    with Engine(short_tmp, SAMPLE, model=None, processes=1) as engine:
        engine.reconcile()
        breaking(engine, "PRAGMA wal_checkpoint(TRUNCATE)")
        db = apsw.Connection(str(engine.config.paths.index_db))
        page = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'links_key'").get
        db.close()
        with engine.config.paths.index_db.open("r+b") as file:
            file.seek((page - 1) * 4096)
            file.write(b"\xff" * 4096)
        verdict = sound(engine).file()
        assert verdict.state == "fault" and "damaged" in verdict.text and verdict.hint
    assert not list(engine.config.paths.index_db.parent.glob("*corrupt*")), "it only reports"


def test_a_file_that_takes_too_long_is_skipped(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_check, "QUICK_CHECK_S", -1.0)
    monkeypatch.setattr("tarsd.store.examine._STEPS", 1)
    assert sound(engine).file().state == "skipped"
    assert engine.found("gertrude"), "the connection is as good as before"


def test_notes_that_differ_on_disk_are_named(engine: Engine) -> None:
    note = engine.vault / "Kitchen" / "Gertrude.md"
    about = note.stat()
    note.write_bytes(note.read_bytes().swapcase())  # same size, same time: no scan sees it
    os.utime(note, ns=(about.st_atime_ns, about.st_mtime_ns))
    verdict = CheckResult("ok", "")
    for _ in range(60):  # 50 of 56 are looked at
        verdict = sound(engine).notes()
        if verdict.state != "ok":
            break
    assert (verdict.state, verdict.paths, verdict.hint) == ("fault", ["Kitchen/Gertrude.md"], "tarsd reindex --full")
    engine.reconcile(full=True)
    assert sound(engine).notes().state == "ok"


def test_notes_that_came_or_went_are_named(engine: Engine) -> None:
    (engine.vault / "Kitchen" / "Gertrude.md").unlink()
    write(engine.vault, "Fresh.md", "Just written.\n")
    verdict = sound(engine).notes()
    assert (verdict.state, verdict.paths) == ("fault", ["Fresh.md", "Kitchen/Gertrude.md"])
    assert sound(engine, behind=2).notes().state == "warning", "it is known, and being done"
    engine.reconcile()
    assert sound(engine).notes().state == "ok"


def test_notes_that_cannot_be_read_now_are_no_fault(engine: Engine) -> None:
    note = engine.vault / "Kitchen" / "Gertrude.md"
    size = note.stat().st_size
    note.unlink()
    with note.open("wb") as file:
        file.truncate(size)  # a file without its bytes, as a cloud leaves it
    os.mkfifo(engine.vault / "Pipe.md")
    assert sound(engine).notes().state == "ok"


def test_a_vault_that_is_away_is_told(engine: Engine) -> None:
    shutil.move(engine.vault, engine.vault.with_name("away"))
    lines = asyncio.run(checked(engine))
    assert (lines["vault"]["state"], "is missing" in lines["vault"]["text"]) == ("fault", True)
    assert lines["notes"]["state"] == "fault" and lines["passages"]["state"] == "ok"


def test_a_passage_that_its_words_do_not_find_is_a_fault(engine: Engine) -> None:
    first = "(SELECT min(id) FROM chunks)"
    breaking(
        engine,
        f"DELETE FROM fts WHERE rowid = {first}",
        f"INSERT INTO fts(rowid, body) VALUES ({first}, 'something else')",
    )
    verdict = sound(engine).words()
    assert verdict.state == "fault" and len(verdict.paths) == 1 and verdict.hint == "tarsd reindex --full"
    assert sound(engine).passages().state == "ok", "the legs go together"
    engine.reconcile(full=True)
    assert sound(engine).words().state == "ok"


@pytest.mark.parametrize("space", [1, 2])
def test_a_passage_with_the_vector_of_another_is_a_fault(engine: Engine, space: int) -> None:
    bits = {1: 256, 2: 64}[space]
    breaking(
        engine,
        f"CREATE TEMP TABLE ids AS SELECT chunk_id FROM vec_{space}",
        f"DELETE FROM vec_{space}",
        f"INSERT INTO vec_{space}(chunk_id, code) SELECT chunk_id, vec_bit(randomblob({bits} / 8)) FROM temp.ids",
    )
    engine.restart()
    verdict = sound(engine).vectors()
    assert verdict.state == "fault" and verdict.paths


# ------------------------------------------------------------------------------------------------ models


class Lying(FakeEmbedder):
    """An embedder that gives what it is told to."""

    def __init__(self, *answers: Any) -> None:
        super().__init__()
        self._answers = list(answers)

    def embed(self, texts: Sequence[str], kind: Any) -> Any:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return np.array([answer], dtype=np.float32)


def test_an_embedder_that_works_is_fine() -> None:
    verdict = check.round_trip(FakeEmbedder())
    assert (verdict.state, "64 dimensions" in verdict.text) == ("ok", True)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([[np.nan, np.nan]] * 2, "cannot embed"),
        ([[np.inf, np.inf]] * 2, "cannot embed"),
        ([[1.0, 0.0], [0.0, 1.0]], "a different vector"),
    ],
)
def test_an_embedder_that_lies_is_a_fault(answers: list[Any], words: str) -> None:
    verdict = check.round_trip(Lying(*answers))
    assert verdict.state == "fault" and words in verdict.text and verdict.hint


def test_a_server_of_vectors_without_any_is_a_fault() -> None:
    with OllamaServer() as server:
        server.answer = lambda batch: Reply({"embeddings": [[0.0] * 32 for _ in batch]})
        embedder = OllamaEmbedder("nomic-embed-text", EmbeddingSettings(ollama_host=server.url))
        assert check.round_trip(embedder).state == "fault"
        server.answer = lambda batch: None
        assert check.round_trip(embedder).state == "ok"


def asked(*events: ProviderEvent | float | Exception) -> CheckResult:
    model = FakeChat(events)
    try:
        return asyncio.run(check.ask(model, seconds=0.3))
    finally:
        assert [one.messages[0].text for one in model.requests] == [check.QUESTION]


def test_a_model_that_answers_is_fine() -> None:
    assert asked(Text("ready"), StreamEnd()).state == "ok"
    assert asked(Text("well"), 60.0, StreamEnd()).state == "ok", "it has begun, and is slow"
    assert asyncio.run(check.ask(make("extractive"))).state == "skipped"


def test_a_model_that_does_not_is_a_fault() -> None:
    assert "broke off" in asked(Text("rea")).text
    assert "an empty answer" in asked(StreamEnd()).text
    loading = asked(Waiting("It is being loaded …"), 60.0)
    assert loading.state == "warning" and "being loaded" in loading.text
    with pytest.raises(TimeoutError):
        asked(60.0)
    with pytest.raises(ProviderError):
        asked(ProviderError("No."))


def provider(double: OpenAIDouble) -> Any:
    return make(f"openai:{double.model}", settings_of(double), lambda name: "sk-double")


def settings_of(double: OpenAIDouble) -> Any:
    from tarsd.config import ChatSettings

    return ChatSettings(openai_base_url=f"{double.url}/v1")


@pytest.mark.parametrize(
    ("step", "state", "words"),
    [
        ((Say("ready"),), "ok", "first word after"),
        ((Think("They want one word."), Say("ready")), "ok", "first word"),
        ((Fail(401, "wrong key"),), "fault", "key"),
        ((Fail(404, "no such model", "not_found_error"),), "fault", "small-model"),
        ((Fail(429, "slow down"),), "warning", ""),
        ((Say("rea"), Cut()), "fault", ""),
        ((Cut(),), "fault", ""),
    ],
    ids=str,
)
def test_each_failure_of_a_server_is_told_in_its_words(
    short_tmp: Path, step: tuple[Any, ...], state: str, words: str
) -> None:
    with OpenAIDouble() as double, Engine(short_tmp, model=None, processes=1) as engine:
        engine.reconcile()
        double.enqueue(*step)
        line = asyncio.run(checked(engine, provider(double)))["chat"]
        assert line["state"] == state and words in line["text"], line
        assert state == "ok" or line["hint"], line


async def checked(
    engine: Engine, provider: Any = None, fallback: Any = None, embedders: Sequence[Any] = (), *, model: bool = True
) -> dict[str, dict[str, Any]]:
    """The lines of a whole look, by name."""
    app = engine.app
    app.chat.services = replace(app.chat.services, provider=provider or make("extractive"), fallback=fallback)
    app.indexing.embedders = embedders
    return {line["name"]: line async for line in app.check(CheckRequest(model))}


def test_whatever_fails_is_a_line(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "CHAT_S", 0.2)
    monkeypatch.setattr(IndexCheck, "words", lambda self: 1 / 0)
    lying = [Lying(EmbedError("No vectors today.", "Come back."))]
    lines = asyncio.run(checked(engine, FakeChat([60.0]), FakeChat([ProviderBusy("Too many.", "Wait.")]), lying))
    assert [line["state"] for line in lines.values()] == [
        "ok",
        "ok",
        "ok",
        "ok",
        "fault",
        "ok",
        "fault",
        "fault",
        "warning",
    ]
    assert (lines["words"]["text"], lines["words"]["group"]) == ("The check failed (ZeroDivisionError).", "Index")
    assert (lines["meaning"]["text"], lines["meaning"]["hint"]) == ("No vectors today.", "Come back.")
    assert "within" in lines["chat"]["text"]
    lines = asyncio.run(checked(engine, embedders=[Lying(RateLimited("Slowly."))]))
    assert lines["meaning"]["state"] == "warning"


def test_without_models_no_server_is_asked(daemon: Start, home: Path, vault: Path) -> None:
    write(vault, "a.md", "Tea.\n")
    with OpenAIDouble() as double, OllamaServer() as ollama:
        home.joinpath("config.toml").write_text(double.config() + f'[ollama]\nhost = "{ollama.url}"\n')
        env = {"TARSD_CHAT": "", "TARSD_EMBEDDING": "ollama:nomic-embed-text", **double.env()}
        one = daemon(**env)
        one.wait(lambda status: status["embedding"]["state"] == "complete")
        before = len(ollama.batches)
        lines = list(one.client.stream("/v1/check", {"model": False}))
        assert (len(double.requests), len(ollama.batches)) == (0, before)
        assert {line["state"] for line in lines if line["group"] == "Models"} == {"ok", "skipped"}
        lines = list(one.client.stream("/v1/check", {}))
        assert [line["state"] for line in lines] == ["ok"] * len(lines), lines
        assert (len(double.requests), ollama.texts[before:]) == (1, [f"search_document: {check.SENTENCE}"] * 2)
        sent = str(double.requests) + str(ollama.texts[before:])
        assert "Tea" not in sent and check.QUESTION in sent


def test_an_old_time_stamp_hides_nothing(engine: Engine) -> None:
    forget_time(write(engine.vault, "Late.md", "It came with an old date.\n"), 1e8)
    assert sound(engine).notes().paths == ["Late.md"]
