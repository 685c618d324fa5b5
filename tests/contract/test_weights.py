"""New weights under a model's name, and several names for the same: each vector is of the weights it is kept for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tarsd import embed
from tarsd.config import EmbeddingSettings
from tarsd.embed.base import Embedder, fingerprint
from tarsd.embed.ollama import OllamaEmbedder
from tarsd.upstream import ollama_name
from tests.support.doubles.embedder import Ollama
from tests.support.doubles.server import Reply
from tests.support.engine import Engine, fill, write

NAME = "nomic-embed-text"
PREFIXES = ("search_document: ", "search_query: ")


def made(server: Ollama, name: str = NAME) -> Embedder:
    return embed.make(EmbeddingSettings(model=f"ollama:{name}", ollama_host=server.url))


@pytest.fixture
def server() -> Iterator[Ollama]:
    with Ollama() as it:
        yield it


@pytest.fixture
def engine(server: Ollama, short_tmp: Path) -> Iterator[Engine]:
    """Some notes that are embedded."""
    with Engine(short_tmp, model=made(server), processes=1) as it:
        fill(it.vault, 20)
        it.index()
        assert it.space().coverage == 1.0
        server.batches.clear()
        yield it


def check(engine: Engine, server: Ollama) -> None:
    """There is one space, whole, of the weights that the server has now."""
    (space,) = (one for one in engine.store.vectors.spaces() if one.role == "model")
    assert (space.state, space.coverage) == ("active", 1.0)
    chunks = [row.id for file in engine.store.notes.titles() for row in engine.store.notes.passages_of(file.id)]
    ids, vectors = engine.store.vectors.of(space.id, chunks)
    rows = {row.id: row for row in engine.store.notes.passages(ids.tolist())}
    for chunk, vector in zip(ids.tolist(), vectors, strict=True):
        text = f"{rows[chunk].note.title}\n{rows[chunk].text}"
        likeness = {digest: as_by(server, digest, text) @ vector for digest in ("d1", "d2")}
        assert max(likeness, key=lambda digest: likeness[digest]) == server.digest
    assert engine.answer("bowline dinghy").degraded is None


def as_by(server: Ollama, digest: str, text: str) -> np.ndarray:
    """About the vector that weights give a text."""
    now, server.digest = server.digest, digest
    try:
        row = np.array(server.vector(text), dtype=np.float32)
    finally:
        server.digest = now
    return row / np.linalg.norm(row)


@pytest.mark.parametrize("seen_by", ["reindex --full", "a new note", "a question", "time"])
def test_new_weights_under_a_name_are_noticed_and_all_is_embedded_anew_once(
    engine: Engine, server: Ollama, seen_by: str
) -> None:
    old, server.digest = engine.space().fingerprint, "d2"
    if seen_by == "reindex --full":
        engine.reconcile(full=True)
    elif seen_by == "a new note":
        write(engine.vault, "new.md", "# Kettle\n\nThe kettle whistles.\n")
        engine.reconcile()
    elif seen_by == "a question":
        told = engine.answer("bowline dinghy")
        assert told.hits[0].path == "rope.md" and "has changed" in (told.degraded or "")
    else:
        embedder = engine.indexing.embedders[1]
        assert isinstance(embedder, OllamaEmbedder)
        embedder._fresh_until = 0.0
    server.batches.clear()
    engine.embed()
    engine.embed()
    check(engine, server)
    assert engine.space().fingerprint != old
    again = [text for text, count in Counter(server.texts).items() if count > 1 and text.startswith(PREFIXES[0])]
    assert len(again) <= (1 if seen_by == "a new note" else 0), "what was sent before it was noticed"


def test_a_pull_while_all_is_embedded_mixes_nothing(server: Ollama, short_tmp: Path) -> None:
    def pull(batch: list[str]) -> Reply | None:
        if len(server.batches) == 2:
            server.digest = "d2"
        return None

    server.answer = pull
    with Engine(short_tmp, model=made(server), processes=1) as engine:
        fill(engine.vault, 30)
        engine.index()
        engine.embed()
        check(engine, server)


def test_weights_that_come_back_have_their_vectors_still(engine: Engine, server: Ollama) -> None:
    server.digest = "d2"
    engine.reconcile(full=True)
    engine.embed()
    server.digest = "d1"
    engine.reconcile(full=True)
    server.batches.clear()
    engine.embed()
    assert server.batches == []
    check(engine, server)


def test_a_server_that_does_not_say_what_it_has_costs_no_vectors(engine: Engine, server: Ollama) -> None:
    own, server.model = engine.space().fingerprint, "other:latest"
    engine.reconcile(full=True)
    engine.embed()
    assert engine.space().fingerprint == own and engine.space().coverage == 1.0


@pytest.mark.parametrize("name", [f"{NAME}:latest", f"{NAME}:v1.5", f"somebody/{NAME}"])
def test_names_of_the_same_weights_have_the_same_vectors(engine: Engine, server: Ollama, name: str) -> None:
    server.others = {ollama_name(name): server.digest}
    engine.restart(made(server, name))
    engine.index()
    assert server.batches == [] and engine.space().coverage == 1.0


@pytest.mark.parametrize(("name", "digest"), [(f"{NAME}:v1.5", "d2"), ("mine", "d1")], ids=["weights", "prefixes"])
def test_what_gives_other_vectors_is_another_model(engine: Engine, server: Ollama, name: str, digest: str) -> None:
    server.others = {ollama_name(name): digest}
    engine.restart(made(server, name))
    engine.index()
    assert len(server.texts) == engine.store.counts().chunks


def test_vectors_of_an_earlier_version_are_kept(engine: Engine, server: Ollama) -> None:
    """It told names apart."""
    former = fingerprint("ollama", NAME, "d1", None, server.dim, *PREFIXES)
    own = engine.space().fingerprint
    engine.store.vectors.rename(own, former)
    assert engine.store.vectors.space_for(former) and not engine.store.vectors.space_for(own)
    engine.restart(made(server))
    engine.index()
    assert server.batches == [] and (engine.space().fingerprint, engine.space().coverage) == (own, 1.0)


@pytest.mark.parametrize(("family", "key", "most"), [("ollama", None, 8), ("openai", None, 8), ("openai", "k", 32)])
def test_a_question_waits_for_few_texts_of_a_server(family: str, key: str | None, most: int) -> None:
    assert embed.make(EmbeddingSettings(model=f"{family}:m", openai_key=key)).batch == most
