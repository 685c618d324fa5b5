"""Embedding in the background: what is embedded, when, how often, and what is made of failures."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tarsd.children import ChildDied
from tarsd.config import ChunkSettings, Config, PrivacySettings
from tarsd.embed.base import Embedder, Vectors, nothing
from tarsd.embed.fake import FakeEmbedder
from tarsd.errors import DiskFull, EmbedderUnreachable, EmbedError, RateLimited, StoreError
from tarsd.index import Indexer
from tarsd.store import Batch
from tests.support.engine import Engine, embed_all, write
from tests.support.index_dump import dump
from tests.unit.index.conftest import Bench


def with_model(bench: Bench, model: Embedder, *, busy: Callable[[], bool] | None = None) -> None:
    bench.model = model
    bench.restart()
    if busy is not None:
        bench.indexer.background._busy = busy
    bench.run()


def test_every_passage_gets_a_vector_and_a_restart_embeds_nothing(bench: Bench) -> None:
    for i in range(70):
        bench.write(f"{i}.md", f"text {i}", age=100 - i)
    model = FakeEmbedder(48)
    with_model(bench, model)
    assert bench.indexer.background.status().remaining == 70
    assert embed_all(bench.indexer) == 70
    assert model.seen[0].endswith("text 69") and model.seen[-1].endswith("text 0")
    status = bench.indexer.background.status()
    assert (status.state, status.done, status.remaining) == ("complete", 70, 0)
    space = bench.store.vectors.space_for(model.fingerprint)
    assert space is not None and space.state == "active"
    bench.write("new.md", "a heron")
    bench.run()
    assert bench.indexer.background.status().state == "embedding", "complete is only what has no passage left"
    (bench.root / "new.md").unlink()
    bench.restart()
    bench.run()
    assert embed_all(bench.indexer) == 0 and model.texts == 70
    shutil.move(bench.root, bench.root.with_name("elsewhere"))
    bench.root = bench.root.with_name("elsewhere")
    bench.restart(vault=bench.root)
    bench.run()
    assert embed_all(bench.indexer) == 0 and model.texts == 70


def test_the_thread_takes_what_was_just_edited_first_and_ends_when_asked(bench: Bench) -> None:
    for i in range(100):
        bench.write(f"{i}.md", f"text {i}", age=1000 + i)
    gate, seen = threading.Semaphore(0), threading.Event()

    class Gated(FakeEmbedder):
        def embed(self, texts: Any, kind: Any) -> Vectors:
            seen.set()
            assert gate.acquire(timeout=20)
            return super().embed(texts, kind)

    model = Gated(48)
    with_model(bench, model)
    stop = threading.Event()
    thread = threading.Thread(target=bench.indexer.background.run, args=(stop.is_set,))
    thread.start()
    assert seen.wait(20)
    bench.write("99.md", "just edited", age=1)
    bench.run("99.md")
    gate.release(10)
    deadline = time.monotonic() + 20
    while bench.indexer.background.status().state != "complete" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert model.seen[32].endswith("just edited") and bench.coverage(model.fingerprint) == 1.0
    stop.set()
    thread.join(20)
    assert not thread.is_alive()


def test_embedding_waits_while_somebody_asks(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("a.md", "text")
    asked = iter([True, True, False])
    with_model(bench, FakeEmbedder(48), busy=lambda: next(asked))
    assert embed_all(bench.indexer) == 1
    assert next(asked, "none left") == "none left"


def test_batches_are_bounded_and_a_restart_goes_on_where_it_stopped(bench: Bench) -> None:
    for i in range(200):
        bench.write(f"{i}.md", f"text {i} " * (1 + i % 60))
    sizes: list[int] = []

    class Counting(FakeEmbedder):
        batch = 512

        def embed(self, texts: Any, kind: Any) -> Vectors:
            sizes.append(len(texts))
            if len(sizes) == 4:
                self.error = EmbedderUnreachable("gone", "start it")
            return super().embed(texts, kind)

    model = Counting(48)
    with_model(bench, model)
    embed_all(bench.indexer)
    status = bench.indexer.background.status()
    assert status.state == "unreachable" and 0 < status.done < 200 and status.reason == "gone"
    assert max(sizes) <= 32
    done, model.error = status.done, None
    total = bench.store.counts().chunks
    bench.restart()
    bench.run()
    assert embed_all(bench.indexer) == total - done


def test_a_poisoned_text_costs_a_few_calls_and_only_itself(bench: Bench) -> None:
    for i in range(40):
        bench.write(f"{i}.md", "poison text" if i == 7 else f"text {i}")

    class Refusing(FakeEmbedder):
        asked = 0

        def embed(self, texts: Any, kind: Any) -> Vectors:
            if any("poison" in text for text in texts):
                self.asked += 1
                raise EmbedError("too long", permanent=True)
            return super().embed(texts, kind)

    model = Refusing(48)
    with_model(bench, model)
    assert embed_all(bench.indexer) == 39
    assert model.asked <= 8
    bench.restart()
    bench.run()
    embed_all(bench.indexer)
    assert model.asked <= 8 and bench.indexer.background.status().remaining == 0
    assert [(one.path, one.reason) for one in bench.store.problems()] == [("7.md", "no vector: too long")]
    assert bench.find("poison") == ["7.md"]
    asked = model.asked
    bench.run(full=True)  # a wish to read everything is a wish to try everything again
    embed_all(bench.indexer)
    assert asked < model.asked <= asked + 8
    bench.write("7.md", "cured text", age=2)
    bench.run()
    assert embed_all(bench.indexer) == 1 and bench.store.problems() == []


def test_a_server_that_refuses_everything_blames_no_note(bench: Bench) -> None:
    for i in range(5):
        bench.write(f"{i}.md", f"text {i}")
    model = FakeEmbedder(48)
    model.error = EmbedError("no such route", permanent=True)
    with_model(bench, model)
    assert embed_all(bench.indexer) == 0
    assert bench.store.problems() == [] and bench.indexer.background.status().state == "failing"
    model.error = None
    assert embed_all(bench.indexer) == 5


def test_rows_that_cannot_be_compared_are_failures_of_their_text_alone(bench: Bench) -> None:
    for i in range(6):
        bench.write(f"{i}.md", f"text {i}")
    model = FakeEmbedder(48)
    model.nans = lambda text: "text 3" in text
    model.zeros = lambda text: "text 4" in text
    with_model(bench, model)
    assert embed_all(bench.indexer) == 4
    assert [one.path for one in bench.store.problems()] == ["3.md", "4.md"]
    assert embed_all(bench.indexer) == 0 and model.calls == 1


def test_rate_limits_are_waited_for_as_asked(bench: Bench) -> None:
    bench.write("a.md", "text")
    model = FakeEmbedder(48)
    model.errors = [RateLimited("slow down", retry_after=0.01), RateLimited("slow down")]
    with_model(bench, model)
    background = bench.indexer.background
    assert 0.01 <= background.drain(lambda: False) <= 0.06
    assert bench.indexer.background.status().state == "rate_limited"
    assert 1.0 <= background.drain(lambda: False) <= 3.0
    assert background.drain(lambda: False) == 60.0
    assert bench.coverage(model.fingerprint) == 1.0 and background._failures == 0


def test_while_the_server_is_down_words_and_table_go_on(bench: Bench) -> None:
    model = FakeEmbedder(48)
    model.error = EmbedderUnreachable("no answer", "start it")
    with_model(bench, model)
    bench.write("a.md", "text")
    bench.run("a.md")
    assert embed_all(bench.indexer) == 0
    assert bench.find("text") == ["a.md"] and bench.coverage(bench.table.fingerprint) == 1.0
    pauses = [bench.indexer.background.drain(lambda: False) for _ in range(8)]
    assert pauses[0] < pauses[-1] <= 75.0


def test_only_what_is_missing_is_embedded(bench: Bench) -> None:
    for i in range(20):
        bench.write(f"{i}.md", f"text {i}")
    model = FakeEmbedder(48)
    with_model(bench, model)
    embed_all(bench.indexer)
    space = bench.store.vectors.space_for(model.fingerprint)
    assert space is not None
    bench.store.database._db.execute(f"DELETE FROM vec_{space.id} WHERE chunk_id <= 6")
    bench.store.database._vectors.execute("DELETE FROM vectors WHERE id IN (SELECT max(id) - 2 FROM vectors)")
    bench.restart()
    assert bench.run().repaired
    assert embed_all(bench.indexer) == 1 and model.texts == 21


def test_a_new_model_takes_over_when_it_is_complete(bench: Bench) -> None:
    for i in range(5):
        bench.write(f"{i}.md", f"text {i}")
    old, new = FakeEmbedder(48, name="old"), FakeEmbedder(96, name="new")
    with_model(bench, old)
    embed_all(bench.indexer)
    new.errors = [EmbedderUnreachable("not yet")]
    with_model(bench, new)
    embed_all(bench.indexer)
    space = bench.store.vectors.space_for(old.fingerprint)
    assert space is not None and space.state == "active"
    assert bench.coverage(new.fingerprint) == 0.0
    with_model(bench, old)
    assert embed_all(bench.indexer) == 0 and bench.coverage(new.fingerprint) == -1.0
    with_model(bench, new)
    assert embed_all(bench.indexer) == 5 and old.texts == 5
    assert bench.coverage(old.fingerprint) == -1.0
    assert len(bench.store.vectors.knn(bench.store.vectors.spaces()[-1].id, np.ones(96), 9)) == 5


def test_private_notes_are_never_given_to_a_model_elsewhere(bench: Bench) -> None:
    bench.write("Private/a.md", "secret words")
    bench.write("b.md", "hidden words #mine")
    bench.write("c.md", "open words")
    model = FakeEmbedder(48)
    model.local = False
    bench.config = replace(bench.config, privacy=PrivacySettings(("Private/", "#mine")))
    with_model(bench, model)
    assert embed_all(bench.indexer) == 1
    assert [text for text in model.seen if "secret" in text or "hidden" in text] == []
    status = bench.indexer.background.status()
    assert (status.state, status.remaining, status.held_back) == ("complete", 0, 2)
    assert bench.coverage(bench.table.fingerprint) == 1.0
    bench.restart(privacy=PrivacySettings())
    bench.run()
    assert embed_all(bench.indexer) == 2


def test_a_model_that_does_not_tell_its_width_is_asked_once(bench: Bench) -> None:
    bench.write("a.md", "text")

    class Shy(FakeEmbedder):
        asked = 0

        def embed(self, texts: Any, kind: Any) -> Vectors:
            self.asked += 1
            self.dim = 48
            return super().embed(texts, kind)

    model = Shy(48)
    model.dim = 0
    with_model(bench, model)
    assert embed_all(bench.indexer) == 1 and model.asked == 2
    model.dim = 0
    bench.restart()
    bench.run()
    assert embed_all(bench.indexer) == 0 and model.asked == 2


def test_a_model_that_gives_nothing_is_said(bench: Bench) -> None:
    bench.write("a.md", "text")

    class Empty(FakeEmbedder):
        def embed(self, texts: Any, kind: Any) -> Vectors:
            return nothing(len(texts), 0)

    model = Empty(48)
    model.dim = 0
    with_model(bench, model)
    assert embed_all(bench.indexer) == 0 and bench.indexer.background.status().state == "failing"


def test_without_a_model_the_table_is_all_there_is(bench: Bench) -> None:
    bench.write("a.md", "text")
    with_model(bench, FakeEmbedder(48))
    embed_all(bench.indexer)
    bench.model = None
    bench.restart()
    bench.run()
    assert bench.indexer.background.status().state == "none" and embed_all(bench.indexer) == 0
    assert [space.role for space in bench.store.vectors.spaces()] == ["table"]


def test_the_builtin_model_runs_in_a_child_and_survives_its_death(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("a.md", "text")
    model = FakeEmbedder(48, name="minilm")
    called: list[str] = []

    def call(name: str, texts: list[str], threads: int) -> Vectors:
        called.append(name)
        raise ChildDied("crash")

    with_model(bench, model)
    monkeypatch.setattr(bench.indexer.background._pool, "call", call)
    assert embed_all(bench.indexer) == 1
    assert called == ["tarsd.embed.minilm:embed_batch"] * 2 and model.calls == 1


def test_the_settings_decide_the_chunker(bench: Bench) -> None:
    def chunker(config: Config) -> str:
        return Indexer(config, [], bench.store, bench.table)._settings.chunker

    base = bench.config
    others = [
        replace(base, chunk=ChunkSettings(tokens=100)),
        replace(base, include_comments=True),
        replace(base, privacy=PrivacySettings(("x/",))),
    ]
    assert len({chunker(one) for one in (base, *others)}) == 4
    assert chunker(replace(base, vault=Path("/elsewhere"))) == chunker(base)


def test_a_disk_that_comes_back_without_its_notes_is_a_first_look(bench: Bench) -> None:
    bench.indexer.second_look_s = 0.3
    for i in range(5):
        bench.write(f"{i}.md", f"text {i}")
    bench.run()
    away = bench.root.with_name("away")
    bench.root.rename(away)
    bench.root.mkdir()
    assert bench.run().removed == 0
    time.sleep(0.4)  # longer away than the second look takes
    (bench.root / ".obsidian").mkdir()
    report = bench.run()
    assert report.removed == 0 and report.again_s is not None and 0.1 < report.again_s < 0.31
    time.sleep(report.again_s)
    assert bench.run().removed == 5


def test_what_a_pass_left_undone_stays_behind(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("old.md", "text")
    bench.write("gone.md", "text to go")
    bench.run()
    for i in range(300):
        bench.write(f"{i}.md", f"word{i}")
    (bench.root / "gone.md").unlink()
    apply, room = bench.store.apply, 2

    def full(batch: Batch, *, settle: bool = True) -> None:
        nonlocal room
        room -= 1
        if room < 0:
            raise DiskFull("The disk is full.", "Make room.")
        apply(batch, settle=settle)

    monkeypatch.setattr(bench.store, "apply", full)
    with pytest.raises(DiskFull):
        bench.run()
    left = 300 + 2 - len(bench.paths()) + 1  # the one that is gone is to do as well
    assert left > 100 and bench.indexer.behind == left
    with pytest.raises(DiskFull):
        bench.run()
    assert bench.indexer.behind == left
    lacking = [f"{i}.md" for i in range(300) if f"{i}.md" not in bench.paths()]
    with pytest.raises(DiskFull):
        bench.run(lacking[0])
    assert bench.indexer.behind == left
    monkeypatch.setattr(bench.store, "apply", apply)
    bench.run(lacking[0])
    assert bench.indexer.behind == left - 1
    (bench.root / lacking[1]).unlink()
    bench.run(lacking[1])  # no work any more, and nothing to wait for
    assert bench.indexer.behind == left - 2
    seen = []
    bench.run(progress=lambda *step: seen.append(bench.indexer.behind))
    assert bench.indexer.behind == 0 and seen[0] < left - 2 and seen == sorted(seen, reverse=True)


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"#t{i}" for i in range(8000)),
        "---\naliases:\n" + "".join(f"  - other{i}\n" for i in range(8000)) + "---\n" + "words of text\n\n" * 4000,
        "---\ntitle: " + "".join(f"t{i} " for i in range(8000)) + "\n---\n" + "words of text\n\n" * 4000,
        "# " + "".join(f"head{i} " for i in range(8000)) + "\n\n" + "words of text\n\n" * 4000,
    ],
    ids=["tags", "aliases", "title", "heading"],
)
def test_what_a_note_is_called_costs_no_more_than_its_size(bench: Bench, text: str) -> None:
    bench.write("a.md", text)
    bench.run()
    assert bench.store.counts().chunks > 20
    pages = bench.store.database._db.execute(
        "SELECT (SELECT * FROM pragma_page_count) - (SELECT * FROM pragma_freelist_count)"
    )
    assert pages.get * 4096 < 400_000 + 12 * len(text)
    before = dump(bench.store)
    bench.store.search.rebuild()
    assert dump(bench.store) == before


def test_a_text_that_the_server_lied_about_is_tried_again_later_and_not_for_ever(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(6):
        bench.write(f"{i}.md", f"text {i}")
    model = FakeEmbedder(48)
    model.nans = lambda text: "text 3" in text
    model.refuse = lambda text: "text 4" in text
    with_model(bench, model)
    background = bench.indexer.background
    assert embed_all(bench.indexer) == 4
    status = bench.indexer.background.status()
    assert (status.state, status.remaining, status.failed) == ("complete", 0, 2)
    assert {one.path for one in bench.store.problems()} == {"3.md", "4.md"}
    assert all("tarsd reindex --full" in one.hint for one in bench.store.problems())
    assert embed_all(bench.indexer) == 0 and model.calls == 1
    now = [time.monotonic()]
    monkeypatch.setattr("tarsd.index.background.time.monotonic", lambda: now[0])
    for pause, calls in ((70, 2), (70, 2), (3600, 3), (100_000, 3)):
        now[0] += pause
        background.wake()
        assert embed_all(bench.indexer) == 0 and model.calls == calls
    assert sum("text 3" in text for text in model.seen) == 3
    assert sum("text 4" in text for text in model.seen) == 1
    model.nans = model.refuse = None
    bench.run(full=True)
    assert embed_all(bench.indexer) == 2 and bench.store.problems() == []


def test_a_new_start_tries_again_what_the_server_lied_about(bench: Bench) -> None:
    for i in range(3):
        bench.write(f"{i}.md", f"text {i}")
    model = FakeEmbedder(48)
    model.zeros = lambda text: "text 1" in text
    with_model(bench, model)
    assert embed_all(bench.indexer) == 2
    model.zeros = None
    bench.restart()
    bench.run()
    assert embed_all(bench.indexer) == 1 and model.texts == 4
    assert bench.store.problems() == [] and bench.coverage(model.fingerprint) == 1.0


def test_cached_vectors_of_another_length_count_as_missing(bench: Bench) -> None:
    for i in range(5):
        bench.write(f"{i}.md", f"text {i}")
    model = FakeEmbedder(48)
    with_model(bench, model)
    hashes = [row[0] for row in bench.store.database._db.execute("SELECT hash FROM chunks")]
    bench.store.cache.put(model.fingerprint, hashes[:2], np.ones((2, 96), np.float32))
    bench.store.cache.put(model.fingerprint, hashes[2:3], np.ones((1, 48), np.float32))
    assert embed_all(bench.indexer) == 2 and model.texts == 4, "two take the place of those of another length"
    assert bench.coverage(model.fingerprint) == 1.0
    bench.store.database._vectors.execute("UPDATE vectors SET vector = x'000102' WHERE hash = ?", (hashes[0],))
    space = bench.store.vectors.space_for(model.fingerprint)
    assert space is not None and len(bench.store.vectors.knn(space.id, np.ones(48), 9)) == 4
    bench.store.vectors.warm(space.id)
    assert len(bench.store.vectors.knn(space.id, np.ones(48), 9)) == 4
    with pytest.raises(StoreError, match="different models"):
        bench.store.vectors.put(space.id, hashes[:1], np.ones((1, 96), np.float32))


def test_an_index_that_was_lost_after_a_long_rest_embeds_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Engine(tmp_path) as engine:
        for number in range(5):
            write(engine.vault, f"{number}.md", f"Text number {number} is about tea.")
        engine.index()
        engine.embed()
        assert engine.model.texts == 5
        index = engine.config.paths.index_db
    index.unlink()
    later = time.time() + 200 * 86_400
    monkeypatch.setattr(time, "time", lambda: later)
    with Engine(tmp_path) as engine:
        engine.index()
        engine.embed()
        assert engine.model.texts == 0
