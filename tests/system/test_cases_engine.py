"""Reported faults of embedding and search, played through the whole engine; tests are named for them."""

from __future__ import annotations

import dataclasses
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tarsd import embed
from tarsd.chunk import count_tokens
from tarsd.config import ChunkSettings, EmbeddingSettings, load
from tarsd.embed.base import Embedder, Kind, Vectors
from tarsd.embed.fake import FakeEmbedder
from tarsd.embed.ollama import OllamaEmbedder
from tarsd.embed.remote import REST_S
from tarsd.errors import EmbedderUnreachable, EmbedError, RateLimited, StoreError
from tarsd.index import Indexer
from tarsd.search import MODES
from tarsd.store import Store
from tests.conftest import Daemon
from tests.support.doubles.embedder import Ollama
from tests.support.doubles.server import Call, Reply
from tests.support.engine import LONG, Engine, fill, until, write
from tests.support.index_dump import dump

Start = Callable[..., Daemon]


def ollama(url: str, model: str = "nomic-embed-text", rest_s: float = REST_S) -> Embedder:
    embedder = embed.make(EmbeddingSettings(model=f"ollama:{model}", ollama_host=url))
    assert isinstance(embedder, OllamaEmbedder)
    embedder.rest_s = rest_s
    return embedder


# ---------------------------------------------------------------------------------------- models


class Once(FakeEmbedder):
    """Embeds one batch of documents a time: then it is away, until it is told to go on."""

    goes_on = False
    given = 0

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        if kind == "document":
            self.given += 1
            if self.given > 1 and not self.goes_on:
                raise EmbedderUnreachable("The model is away.", "Start it.")
        return super().embed(texts, kind)


@pytest.mark.parametrize("other", [Once(768), Once(384, name="other", salt="x")], ids=["dimensions", "name"])
@pytest.mark.report("https://github.com/tobi/qmd/issues/497")
def test_vectors_of_two_models_are_never_compared(short_tmp: Path, other: Once) -> None:
    with Engine(short_tmp, model=FakeEmbedder(384)) as engine:
        fill(engine.vault, 40)
        engine.index()
        old = engine.space()
        assert (old.state, old.coverage) == ("active", 1.0)
        asked = engine.model.texts
        engine.restart(other)
        report = engine.reconcile()
        assert (report.changed, report.added, other.texts) == (0, 0, 0)
        for mode in MODES:
            assert [hit.path for hit in engine.answer("bowline dinghy", mode).hits][:1] == ["rope.md"]
        about = engine.status()["embedding"]
        assert about["remaining"] == 43 and about["state"] != "complete"
        assert other.seen == []  # nothing to compare the question with, so it is not embedded
        engine.embed()
        assert 0 < engine.space().coverage < 1.0 and engine.space().state == "building"
        assert next(one for one in engine.store.vectors.spaces() if one.id == old.id).state == "active"
        assert engine.search("bowline dinghy")[0].path == "rope.md"
        other.goes_on = True
        engine.embed()
        (now,) = (one for one in engine.store.vectors.spaces() if one.role == "model")
        assert (now.fingerprint, now.state, now.coverage, now.dim) == (other.fingerprint, "active", 1.0, other.dim)
        with pytest.raises(StoreError):
            engine.store.vectors.knn(now.id, np.ones(64, np.float32), 3)
        assert engine.search("bowline dinghy", "vec")[0].path == "rope.md"
        again = FakeEmbedder(384)
        engine.restart(again)
        engine.index()
        assert (again.texts, asked) == (0, 43)  # its vectors were kept


@pytest.mark.report("https://github.com/engram-app/Engram/issues/1620")
def test_notes_cut_by_an_older_rule_are_cut_anew(short_tmp: Path) -> None:
    with Engine(short_tmp, processes=1) as engine:
        fill(engine.vault, 20)
        long = "\n\n".join(f"## Part {n}\n\n" + " ".join(f"word{n}x{m}" for m in range(60)) for n in range(6))
        write(engine.vault, "long.md", long)
        engine.index()
        asked = engine.model.texts
        before = {row.chunker for row in engine.rows().values()}
        engine.restart(chunk=ChunkSettings(tokens=60))
        report = engine.index()
        assert (report.changed, report.unchanged) == (24, 0)
        (chunker,) = {row.chunker for row in engine.rows().values()}
        assert {chunker} != before
        total = engine.store.counts().chunks
        assert 0 < engine.model.texts - asked < total - 20
        assert engine.space().coverage == 1.0
        assert engine.progress[-1][:2] == (24, 24)
        assert engine.index().changed == 0


@pytest.mark.report("https://github.com/engram-app/Engram/issues/1591")
def test_a_passage_that_no_model_takes_holds_up_nothing(short_tmp: Path) -> None:
    with Ollama() as server:
        said = {"error": "the input length exceeds the context length"}
        server.answer = lambda batch: Reply(said, 400) if any("poison" in text for text in batch) else None
        with Engine(short_tmp, model=ollama(server.url)) as engine:
            fill(engine.vault, 40)
            write(engine.vault, "bad.md", "# Fine\n\nA fine part.\n\n# Bad\n\n" + "poison ivy " * 60)
            engine.index()
            poisoned = [batch for batch in server.batches if any("poison" in text for text in batch)]
            assert len(poisoned) <= 4
            (told,) = [problem for problem in engine.problems() if "no vector" in problem.reason]
            assert told.path == "bad.md" and told.line >= 5 and told.reason and told.hint
            about = engine.indexer.background.status()
            assert (about.state, about.remaining, about.done) == ("complete", 0, 44)
            assert engine.found("poison ivy") == ["bad.md"]
            asked = len(server.batches)
            engine.index()
            assert len(server.batches) == asked
            engine.restart()  # a start tries once more, whatever was refused before
            engine.index()
            again = [batch for batch in server.batches[asked:] if any("poison" in text for text in batch)]
            assert 1 <= len(again) <= 4 and engine.indexer.background.status().remaining == 0
            write(engine.vault, "bad.md", "# Fine\n\nA fine part.\n\n# Bad\n\nCured.\n")  # another content, another try
            engine.index()
            assert engine.problems() == [] and engine.space().coverage == 1.0


@pytest.mark.report("https://github.com/engram-app/Engram/issues/1591")
def test_a_model_that_raises(short_tmp: Path) -> None:
    class Strict(FakeEmbedder):
        tried = 0

        def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
            if any("poison" in text for text in texts):
                self.tried += 1
                raise EmbedError("The text is refused.", permanent=True)
            return super().embed(texts, kind)

    model = Strict()
    with Engine(short_tmp, model=model) as engine:
        fill(engine.vault, 40)
        write(engine.vault, "bad.md", "poison ivy")
        engine.index()
        assert engine.indexer.background.status().state == "complete" and engine.space().vectors == 43
        assert model.tried <= 4
        assert [problem.path for problem in engine.problems()] == ["bad.md"]


@pytest.mark.report("https://github.com/pvliesdonk/markdown-vault-mcp/issues/489")
def test_the_end_of_a_passage_is_embedded_as_well(short_tmp: Path) -> None:
    with Ollama(reads=2048) as server, Engine(short_tmp, model=ollama(server.url)) as engine:
        dull = "\n\n".join(f"Paragraph {n} of minutes, agenda and attendance." for n in range(600))
        write(engine.vault, "long.md", f"{dull}\n\n# Gear\n\nThe lobster pots were mended with tarred twine.\n")
        fill(engine.vault, 5)
        engine.index()
        assert max(len(re.findall(r"\w+", text)) for text in server.texts) <= 2048
        (best, *_) = engine.search("twine tarred for pots of lobster", "vec")
        assert best.path == "long.md" and "lobster pots" in best.text


@pytest.mark.parametrize("limit", [64, 256])
@pytest.mark.report("https://github.com/pvliesdonk/markdown-vault-mcp/issues/489")
def test_a_model_that_reads_little(short_tmp: Path, limit: int) -> None:
    model = FakeEmbedder()
    model.max_tokens = limit
    with Engine(short_tmp, model=model, chunk=ChunkSettings(tokens=400)) as engine:
        write(engine.vault, "long.md", "\n\n".join(f"Paragraph {n} of minutes and agenda." for n in range(200)))
        engine.index()
        assert max(count_tokens(text) for text in model.seen) <= limit


@pytest.mark.report("https://github.com/pvliesdonk/markdown-vault-mcp/issues/159")
def test_batches_are_bounded_and_kept_one_by_one(short_tmp: Path) -> None:
    class Recorder(FakeEmbedder):
        def __init__(self) -> None:
            super().__init__()
            self.batches: list[list[str]] = []

        def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
            self.batches.append(list(texts))
            if len(self.batches) == 7:
                raise EmbedError("Out of memory.")
            return super().embed(texts, kind)

    first, second = Recorder(), Recorder()
    with Engine(short_tmp, model=first) as engine:
        for number in range(710):
            write(engine.vault, f"n{number}.md", f"entry {number} " + "long words " * (number % 80))
        engine.index()
        assert len(first.batches) == 7
        assert max(map(len, first.batches)) <= 32
        assert max(sum(map(count_tokens, batch)) for batch in first.batches) <= 9000
        assert engine.space().vectors == sum(map(len, first.batches[:6]))
        engine.restart(second)
        engine.index()  # to its own seventh call
        engine.index()
        sent = {text for batch in first.batches[:6] for text in batch}
        assert not sent & {text for batch in second.batches for text in batch}
        assert engine.space().coverage == 1.0


@pytest.mark.report("https://github.com/pvliesdonk/markdown-vault-mcp/issues/159")
def test_a_kill_between_batches(vault: Path, daemon: Start) -> None:
    with Ollama() as server:
        fill(vault, 200)

        def fourth_hangs(batch: list[str]) -> None:
            if len(server.batches) == 4:
                time.sleep(LONG)

        server.answer = fourth_hangs
        one = daemon(TARSD_EMBEDDING="ollama:nomic-embed-text", OLLAMA_HOST=server.url)
        until(lambda: len(server.batches) == 4)
        one.stop(signal.SIGKILL)
        sent = {text for batch in server.batches[:3] for text in batch}
        server.batches.append([])
        one.restart()
        status = one.wait(lambda status: status["embedding"]["state"] == "complete")
        assert (status["embedding"]["done"], status["embedding"]["remaining"]) == (203, 0)
        assert not sent & {text for batch in server.batches[5:] for text in batch}


@pytest.mark.report("https://github.com/vlasky/sqlite-vec/issues/8")
def test_vectors_that_are_none_are_not_kept(short_tmp: Path) -> None:
    class Raw(FakeEmbedder):
        """Hands on what the server sent."""

        def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
            rows = super().embed(texts, kind)
            for at, text in enumerate(texts):
                if "zerocase" in text:
                    rows[at] = 0.0
                if "nancase" in text:
                    rows[at] = np.nan
            return rows

    with Engine(short_tmp, model=Raw()) as engine:
        fill(engine.vault, 10)
        write(engine.vault, "zero.md", "the zerocase of a matter")
        write(engine.vault, "nan.md", "the nancase of a matter")
        engine.index()
        assert {problem.path for problem in engine.problems()} == {"zero.md", "nan.md"}
        assert engine.space().vectors == 13
        assert engine.indexer.background.status().state == "complete"
        found = engine.store.vectors.knn(engine.space().id, engine.model.embed(["matter of a bowline"], "query")[0], 50)
        assert len(found) == 13 and all(np.isfinite(cosine) for _, cosine in found)
        assert not {"zero.md", "nan.md"} & {
            row.note.path for row in engine.store.notes.passages(one for one, _ in found)
        }
        hits = engine.search("bowline dinghy", "vec")
        assert hits[0].path == "rope.md" and all(np.isfinite(hit.score) for hit in hits)
        for query in ("the zerocase", "the nancase"):  # the question itself has no vector
            assert all(np.isfinite(hit.score) for hit in engine.search(query))
        assert engine.found("zerocase") == ["zero.md"] and engine.found("nancase") == ["nan.md"]


# ---------------------------------------------------------------------------------------- coverage


@pytest.mark.report("https://github.com/pvliesdonk/markdown-vault-mcp/issues/956")
def test_missing_vectors_are_made_up_for(short_tmp: Path) -> None:
    class Shaky(FakeEmbedder):
        batch = 1
        fails = True

        def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
            if self.fails and self.calls % 10 in (2, 5, 8):
                self.calls += 1
                raise EmbedError("Timed out.")
            return super().embed(texts, kind)

    model = Shaky()
    with Engine(short_tmp, model=model) as engine:
        fill(engine.vault, 97)
        engine.reconcile()
        for _ in range(20):
            engine.embed()  # to the next failure
        have = engine.indexer.background.status().done
        about = engine.status()["embedding"]
        assert 0 < have < 100 and (about["done"], about["remaining"]) == (have, 100 - have)
        assert engine.space().coverage == have / 100
        assert about["state"] == "failing" or about["reason"]
        healthy = Shaky()
        healthy.fails = False
        engine.restart(healthy)
        engine.index()
        assert (healthy.texts, engine.space().coverage) == (100 - have, 1.0)
        assert engine.status()["embedding"]["done"] == 100


@pytest.mark.parametrize("leg", ["keywords", "vectors", "table", "passages"])
@pytest.mark.report("https://github.com/Signet-AI/signetai/issues/881")
def test_an_empty_leg_is_filled_and_told(short_tmp: Path, leg: str) -> None:
    def lose(index: Path) -> None:
        # the store's own connection has what such tables need
        store = Store(index, index.parent.parent / "embeddings.db")
        spaces = {space.role: space.id for space in store.vectors.spaces()}
        sql = {
            "keywords": "INSERT INTO fts(fts) VALUES ('delete-all')",
            "vectors": f"DELETE FROM vec_{spaces['model']}",
            "table": f"DELETE FROM vec_{spaces['table']}",
            "passages": "DELETE FROM chunks",
        }[leg]
        store.database._db.execute(sql)
        store.close()

    with Engine(short_tmp) as engine:
        fill(engine.vault, 50)
        engine.index()
        whole, asked = dump(engine.store), engine.model.texts
        engine.restart(before=lose)
        engine.index()
        assert engine.indexer.repaired
        assert any(problem["reason"] in engine.indexer.repaired for problem in engine.status()["problems"])
        counts = engine.store.counts()
        assert counts.keywords == counts.chunks == 53
        assert dump(engine.store) == whole
        assert engine.model.texts == asked
        assert engine.found("bowline") == ["rope.md"]
        engine.restart()
        engine.index()
        assert engine.indexer.repaired == ()


@pytest.mark.report("https://github.com/Signet-AI/signetai/issues/881")
def test_without_a_model_the_status_says_so(vault: Path, daemon: Start) -> None:
    fill(vault, 10)
    one = daemon(TARSD_EMBEDDING="table")
    status = one.client.get("/v1/status")
    assert status["embedding"]["model"] == "table"
    assert (status["embedding"]["done"], status["counts"]["chunks"]) == (13, 13)
    assert one.client.post("/v1/search", {"query": "bowline", "mode": "vec"})["hits"]


@pytest.mark.report("https://github.com/glowingjade/obsidian-smart-composer/issues/283")
def test_a_server_that_asks_for_time_gets_it(short_tmp: Path) -> None:
    pause = 0.1

    class Limited(FakeEmbedder):
        batch = 1

        def __init__(self) -> None:
            super().__init__()
            self.since = 0.0
            self.given = 0
            self.early: list[float] = []
            self.limits = 0

        def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
            now = time.monotonic()
            if now < self.since:
                self.early.append(self.since - now)
            if self.given and self.given % 5 == 0 and self.since >= 0:
                self.limits += 1
                told = None if self.limits == 3 else pause
                self.given += 1
                self.since = now + (told or 0)
                raise RateLimited("Too many requests.", retry_after=told)
            self.given += 1
            return super().embed(texts, kind)

    model = Limited()
    with Engine(short_tmp, model=model) as engine:
        fill(engine.vault, 97)
        engine.reconcile()
        engine.embed_in_background()
        until(lambda: engine.indexer.background.status().state == "rate_limited")
        told = engine.status()
        assert told["embedding"]["state"] == "rate_limited" and told["embedding"]["reason"]
        done = engine.indexer.background.status().done
        assert done > 0
        until(lambda: engine.indexer.background.status().state == "complete")
        assert engine.space().coverage == 1.0
        assert model.texts == 100 and model.early == [] and model.limits >= 20


@pytest.mark.report("https://github.com/glowingjade/obsidian-smart-composer/issues/283")
def test_questions_go_first(short_tmp: Path) -> None:
    asked = [True]

    def indexer(*parts: Any, **more: Any) -> Indexer:
        return Indexer(*parts, **more | {"busy": lambda: asked[0]})

    with Engine(short_tmp, indexer=indexer) as engine:
        fill(engine.vault)
        engine.reconcile()
        engine.embed_in_background()
        time.sleep(0.3)
        assert engine.model.texts == 0
        asked[0] = False
        until(lambda: engine.space().coverage == 1.0)


@pytest.mark.parametrize("spelling", ["localhost:{}", "0.0.0.0:{}", "http://localhost:{}/", "http://localhost:{}/v1"])
@pytest.mark.report("https://github.com/AsyncFuncAI/deepwiki-open/issues/248")
def test_a_host_of_any_spelling_is_reached(short_tmp: Path, spelling: str) -> None:
    with Ollama() as server:
        env = {"TARSD_HOME": str(short_tmp / "h"), "TARSD_EMBEDDING": "ollama:nomic-embed-text"}
        config = load(vault=short_tmp / "v", env=env | {"OLLAMA_HOST": spelling.format(server.port)})
        with Engine(short_tmp, model=embed.make(config.embedding)) as engine:
            fill(engine.vault)
            engine.index()
            assert engine.indexer.background.status().state == "complete" and engine.space().coverage == 1.0


@pytest.mark.report("https://github.com/AsyncFuncAI/deepwiki-open/issues/248")
def test_what_is_wrong_is_told_and_mends_itself(vault: Path, daemon: Start) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    fill(vault)
    one = daemon(TARSD_EMBEDDING="ollama:nomic-embed-text", OLLAMA_HOST=f"0.0.0.0:{port}")

    def told(word: str) -> dict[str, Any]:
        status = one.wait(lambda status: word in status["embedding"].get("reason", ""))
        assert any(word in problem["reason"] for problem in status["problems"])
        return dict(status["embedding"])

    off = told(f"Ollama at http://127.0.0.1:{port} does not answer")
    assert off["state"] == "unreachable" and "ollama serve" in off["hint"]
    hits = one.client.post("/v1/search", {"query": "bowline dinghy"})
    assert hits["hits"][0]["path"] == "rope.md"
    with Ollama(port) as server:
        status = one.wait(lambda status: status["embedding"]["state"] == "complete")
        assert (status["embedding"]["done"], status["embedding"]["remaining"]) == (3, 0)
        assert len(server.texts) == 3
        assert not [problem for problem in status["problems"] if "Ollama" in problem["reason"]]


@pytest.mark.report("https://github.com/AsyncFuncAI/deepwiki-open/issues/248")
def test_without_the_model_and_while_it_loads(short_tmp: Path) -> None:
    with Ollama(model="other:latest") as server, Engine(short_tmp, model=ollama(server.url, rest_s=0.0)) as engine:
        fill(engine.vault)
        engine.index()
        missing = engine.indexer.background.status()
        assert missing.state == "model_missing" and "ollama pull nomic-embed-text" in missing.hint
        server.model = "nomic-embed-text:latest"
        server.answer = lambda batch: Reply({"error": "llm server loading model"}, 500)
        engine.embed()
        loading = engine.indexer.background.status()
        assert "loading" in loading.reason and loading.state not in ("model_missing", "unreachable")
        server.answer = lambda batch: None
        engine.embed()
        assert engine.indexer.background.status().state == "complete"


class Both(Ollama):
    """The double, with the answers of the other API too."""

    def reply(self, call: Call) -> Reply:
        said = super().reply(call)
        if call.path == "/v1/embeddings" and "embeddings" in said.json:
            data = [{"index": at, "embedding": row} for at, row in enumerate(said.json["embeddings"])]
            return dataclasses.replace(said, json={"object": "list", "model": "m", "data": data})
        return said


@pytest.mark.parametrize("kind", ["openai", "ollama"])
@pytest.mark.report("https://github.com/tobi/qmd/issues/497")
def test_another_length_under_the_same_name(short_tmp: Path, kind: str) -> None:
    """The server was started again with another model: search goes on, and its vectors are made anew beside."""
    with Both() as server:

        def made() -> Embedder:
            return embed.make(
                EmbeddingSettings(
                    model=f"{kind}:nomic-embed-text",
                    ollama_host=server.url,
                    openai_base_url=f"{server.url}/v1",
                    openai_key=None,
                )
            )

        with Engine(short_tmp, model=made()) as engine:
            fill(engine.vault, 10)
            engine.index()
            old = engine.space()
            assert (old.dim, old.coverage) == (32, 1.0)
            server.dim = 48
            write(engine.vault, "new.md", "# Kettle\n\nThe kettle whistles.\n")
            results = engine.answer("bowline dinghy")
            assert results.hits[0].path == "rope.md" and "table is used" in (results.degraded or "")
            engine.restart(made())
            results = engine.answer("bowline dinghy")
            assert results.hits[0].path == "rope.md" and "has changed" in (results.degraded or "")
            engine.index()
            (now,) = (one for one in engine.store.vectors.spaces() if one.role == "model")
            assert (now.dim, now.coverage, now.state) == (48, 1.0, "active")
            assert engine.answer("bowline dinghy").degraded is None
            assert engine.search("kettle whistles", "vec")[0].path == "new.md"
            server.dim = 32  # and back while it runs: what indexing notices
            write(engine.vault, "last.md", "# Oar\n\nThe oar is varnished.\n")
            engine.index()
            engine.index()
            (back,) = (one for one in engine.store.vectors.spaces() if one.role == "model")
            assert (back.fingerprint, back.dim, back.coverage) == (old.fingerprint, 32, 1.0)


@pytest.mark.report("https://github.com/vlasky/sqlite-vec/issues/8")
def test_a_server_that_lies_for_a_while(short_tmp: Path) -> None:
    lies: list[list[Any]] = [[0.0] * 32, [None] * 32, [], [1.0, 2.0]]
    with Both() as server:
        server.answer = lambda batch: Reply(
            {
                "embeddings": [
                    lies[int(text.split("liar")[1][0])] if "liar" in text else server.vector(text) for text in batch
                ]
            }
        )
        with Engine(short_tmp, model=ollama(server.url)) as engine:
            fill(engine.vault)
            for number in range(4):
                write(engine.vault, f"l{number}.md", f"The liar{number} of the story\n")
            engine.index()
            assert engine.space().vectors == 3
            told = engine.problems()
            assert len(told) == 4 and all("tarsd reindex --full" in one.hint for one in told)
            assert max(sum(f"liar{number}" in text for text in server.texts) for number in range(4)) == 2
            for _ in range(4):  # each start tries again: with others, and alone
                engine.restart()
                engine.index()
            assert [sum(f"liar{number}" in text for text in server.texts) for number in range(4)] == [2 + 4 * 2] * 4
            server.answer = lambda batch: None
            engine.reconcile(full=True)
            engine.embed()
            assert engine.problems() == [] and engine.space().coverage == 1.0


@pytest.mark.report("https://github.com/AsyncFuncAI/deepwiki-open/issues/248")
def test_a_server_that_hangs_keeps_no_question_waiting(short_tmp: Path) -> None:
    gate = threading.Event()
    with Both() as server, Engine(short_tmp, model=ollama(server.url)) as engine:
        fill(engine.vault)
        engine.index()
        assert engine.answer("bowline").degraded is None

        def hang(batch: list[str]) -> None:
            gate.wait(LONG)

        server.answer = hang
        try:
            started = time.monotonic()
            results = engine.answer("a knot for the dinghy")
            took = time.monotonic() - started
            assert 1.0 < took < 4.0 and results.hits[0].path == "rope.md"
            assert "did not answer within 2 s" in (results.degraded or "")
            assert "table is used" in (results.degraded or "")
            asked, started = len(server.batches), time.monotonic()
            assert engine.answer("light of the harbour").hits[0].path == "harbour.md"
            assert time.monotonic() - started < 1.0 and len(server.batches) == asked
        finally:
            gate.set()


@pytest.mark.report("https://github.com/AsyncFuncAI/deepwiki-open/issues/248")
def test_no_fault_of_an_embedder_fails_a_search(short_tmp: Path) -> None:
    class Odd(FakeEmbedder):
        fault: Callable[[], Vectors] | None = None

        def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
            return self.fault() if kind == "query" and self.fault is not None else super().embed(texts, kind)

    def raises() -> Vectors:
        raise ValueError("cannot reshape")

    for fault in (raises, lambda: np.ones((1, 7), np.float32), lambda: np.full((1, 64), np.inf, np.float32)):
        model = Odd()
        with Engine(short_tmp, model=model) as engine:
            fill(engine.vault)
            engine.index()
            model.fault = fault
            for mode in MODES:
                results = engine.answer("bowline dinghy", mode)
                assert results.hits[0].path == "rope.md"
                assert mode == "fts" or "table is used" in (results.degraded or "")
