"""Vectors from one machine to another: nothing is embedded twice, and no file can do harm."""

from __future__ import annotations

import base64
import gzip
import json
import os
import stat
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tarsd.errors import EXIT_NO_DAEMON, EXIT_NOTHING, EXIT_OK, EXIT_REFUSED, EXIT_USAGE, BadRequest, ClientError
from tarsd.protocol import MAX_BODY, MAX_NUMBERS, MAX_ROWS, VectorsRequest
from tarsd.store import Batch, Store
from tarsd.store.transfer import export_vectors, import_vectors
from tests.conftest import Daemon
from tests.support.doubles.embedder import Ollama
from tests.support.doubles.server import Reply
from tests.support.engine import until, write
from tests.support.stored import digest, note
from tests.support.stub import Run, Stub

Start = Callable[..., Daemon]

NOTES = {f"Note {n}.md": f"# Note {n}\n\nThe {word} is in the shed.\n" for n, word in enumerate(("saw", "axe", "rope"))}
MODEL = "0123456789abcdef"


class Machines:
    """Two machines with the same notes in different places, and one Ollama that counts."""

    def __init__(self, start: Start, tmp: Path, short: Path, double: Ollama, patch: pytest.MonkeyPatch) -> None:
        self._start, self._short, self._patch = start, short, patch
        self.double = double
        self.vaults = {name: tmp / name / "Notes" for name in ("mac", "pi")}
        for vault in self.vaults.values():
            (vault / ".obsidian").mkdir(parents=True)

    def write(self, name: str, notes: dict[str, str]) -> None:
        """Notes of one machine."""
        for path, text in notes.items():
            write(self.vaults[name], path, text)

    def daemon(self, name: str, **env: str) -> Daemon:
        """Its daemon, with an index that is complete."""
        env = {"TARSD_EMBEDDING": "ollama:nomic-embed-text", "OLLAMA_HOST": self.double.url, **env}
        return self._start(self.vaults[name], TARSD_HOME=str(self._short / name), **env)

    def at(self, name: str) -> list[str]:
        """Commands are given on this machine from now on; the option that says which vault."""
        self._patch.setenv("TARSD_HOME", str(self._short / name))
        return ["--vault", str(self.vaults[name])]


@pytest.fixture
def machines(daemon: Start, tmp_path: Path, short_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    with Ollama() as double:
        yield Machines(daemon, tmp_path, short_tmp, double, monkeypatch)


def embedded(one: Daemon) -> dict[str, Any]:
    """Its status when nothing is left to embed."""

    def done(status: dict[str, Any]) -> bool:
        about = status["embedding"]
        return status["behind"] == 0 and about["state"] in ("complete", "ready") and about["remaining"] == 0

    return one.wait(done)


def texts_in(double: Ollama) -> list[str]:
    """What it was asked to embed, without questions and without the look at how wide its vectors are."""
    texts = [text for batch in double.batches for text in batch]
    return [text for text in texts if "shed" in text and not text.startswith("search_query: ")]


def vectors_of(one: Daemon) -> dict[str, str]:
    """Every vector by the hash of its passage."""
    return {hash: data for part in one.client.stream("/v1/vectors") for hash, data in part["rows"]}


def found_by(one: Daemon, query: str) -> list[tuple[str, float]]:
    hits = one.client.post("/v1/search", {"query": query, "mode": "vec"})["hits"]
    return [(hit["path"], hit["score"]) for hit in hits]


def packed(path: Path, *lines: object, header: object = None) -> Path:
    """An export with these lines; bytes are taken as they are."""
    first = {"format": "tarsd-vectors", "version": 1} if header is None else header
    raw = b"".join(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in (first, *lines))
    path.write_bytes(gzip.compress(raw))
    return path


def vectors(*rows: tuple[str, np.ndarray[Any, Any]], model: str = MODEL) -> dict[str, Any]:
    """An object of the stream."""
    listed = [[hash, base64.b64encode(row.astype("<f2").tobytes()).decode()] for hash, row in rows]
    return {"type": "vectors", "model": model, "name": "m", "dim": len(rows[0][1]), "rows": listed}


HASH = "ab" * 16

# From one machine to the other


def test_nothing_is_embedded_twice_whether_the_notes_come_first_or_the_vectors(
    machines: Machines, run: Run, tmp_path: Path
) -> None:
    machines.write("mac", NOTES)
    mac = machines.daemon("mac")
    embedded(mac)
    assert len(texts_in(machines.double)) == len(NOTES)
    file = tmp_path / "notes.vectors"
    code, out, err = run("index", "export", str(file), *machines.at("mac"))
    assert (code, f"Wrote {file}: 3 vectors of ollama:nomic-embed-text, 0.0 MB.\n" == out) == (EXIT_OK, True), out + err
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".tmp")] == []
    text = gzip.decompress(file.read_bytes()).decode()
    assert not any(word in text for word in ("shed", "Note", str(machines.vaults["mac"])))

    pi = machines.daemon("pi")
    code, out, _ = run("index", "import", str(file), *machines.at("pi"))
    assert code == EXIT_OK
    assert out == "3 vectors of ollama:nomic-embed-text: 3 new, 0 here already.\nAll passages have vectors.\n"
    machines.write("pi", NOTES)
    embedded(pi)
    pi.wait(lambda status: status["embedding"]["done"] == len(NOTES))
    assert len(texts_in(machines.double)) == len(NOTES)
    assert vectors_of(pi) == vectors_of(mac)
    assert found_by(pi, "an axe") == found_by(mac, "an axe") != []

    machines.write("pi", {"Note 1.md": "# Note 1\n\nThe axe is not in the shed any more.\n"})
    pi.wait(lambda status: len(texts_in(machines.double)) > len(NOTES) and status["behind"] == 0)
    embedded(pi)
    assert [text for text in texts_in(machines.double)[len(NOTES) :] if "any more" not in text] == []
    assert (
        "3 vectors of ollama:nomic-embed-text: 0 new, 3 here"
        in run("index", "import", str(file), *machines.at("pi"))[1]
    )


def test_vectors_for_notes_that_wait_for_their_model_are_used_at_once(
    machines: Machines, run: Run, tmp_path: Path
) -> None:
    for name in machines.vaults:
        machines.write(name, NOTES)
    embedded(machines.daemon("mac"))
    file = tmp_path / "notes.vectors"
    assert run("index", "export", str(file), *machines.at("mac"))[0] == EXIT_OK
    before = len(machines.double.batches)
    machines.double.answer = lambda batch: Reply({"error": "busy"}, 503) if "shed" in " ".join(batch) else None
    pi = machines.daemon("pi")
    pi.wait(lambda status: status["embedding"]["remaining"] == len(NOTES) and len(machines.double.batches) > before)
    pi.wait(lambda status: status["embedding"]["state"] not in ("starting", "embedding"))
    asked = len(texts_in(machines.double))
    code, out, _ = run("index", "import", str(file), *machines.at("pi"), "--json")
    reply = json.loads(out)
    assert (code, reply["vectors"]) == (EXIT_OK, len(NOTES))
    assert reply["models"] == [
        {"model": reply["models"][0]["model"], "name": "ollama:nomic-embed-text", "added": 3, "known": 0, "fits": True}
    ]
    status = pi.client.get("/v1/status")["embedding"]
    assert (status["done"], status["remaining"]) == (len(NOTES), 0)
    embedded(pi)
    assert len(texts_in(machines.double)) == asked


def test_vectors_that_come_while_others_are_made_leave_the_rest_unmade(
    machines: Machines, run: Run, tmp_path: Path
) -> None:
    notes = {f"{n}.md": f"# Note {n}\n\nShelf {n} in the shed.\n" for n in range(100)}
    for name in machines.vaults:
        machines.write(name, notes)
    embedded(machines.daemon("mac"))
    file = tmp_path / "notes.vectors"
    assert run("index", "export", str(file), *machines.at("mac"))[0] == EXIT_OK
    before, gate = len(texts_in(machines.double)), threading.Semaphore(0)

    def slow(batch: list[str]) -> None:
        if "shed" in " ".join(batch):
            gate.acquire(timeout=60)

    machines.double.answer = slow
    pi = machines.daemon("pi")
    pi.wait(lambda status: status["behind"] == 0 and len(texts_in(machines.double)) > before)
    first = len(texts_in(machines.double))
    gate.release()
    until(lambda: len(texts_in(machines.double)) > first)
    assert run("index", "import", str(file), *machines.at("pi"))[0] == EXIT_OK
    gate.release(len(notes))
    embedded(pi)
    assert len(texts_in(machines.double)) - before < 70, "what was on its way, and no more"
    assert pi.client.get("/v1/status")["embedding"]["done"] == len(notes)


def test_vectors_of_another_model_are_said_to_be_of_no_use(machines: Machines, run: Run, tmp_path: Path) -> None:
    machines.write("mac", NOTES)
    embedded(machines.daemon("mac"))
    file = tmp_path / "notes.vectors"
    assert run("index", "export", str(file), *machines.at("mac"))[0] == EXIT_OK
    machines.daemon("pi", TARSD_EMBEDDING="minilm")
    code, out, err = run("index", "import", str(file), *machines.at("pi"))
    assert (code, "3 new" in out) == (EXIT_NOTHING, True)
    assert "They cannot be used here: the embedding model is minilm, by the config." in err


def test_without_a_daemon_and_without_vectors(run: Run, daemon: Start, vault: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.vectors"
    assert run("index", "export", str(file), "--vault", str(vault))[0] == EXIT_NO_DAEMON
    assert run("index", "import", str(packed(file)), "--vault", str(vault))[0] == EXIT_NO_DAEMON
    file.unlink()
    daemon()
    code, _, err = run("index", "export", str(file), "--vault", str(vault))
    assert (code, "There are no model vectors to export yet." in err) == (EXIT_NOTHING, True)
    assert not file.exists()


# Files


@pytest.fixture
def taking(stub: Stub) -> Stub:
    """A daemon that takes all vectors."""
    stub.replies["GET /v1/hello"]["embedding_model"] = "minilm"
    stub.replies["POST /v1/vectors"] = {"added": 1, "known": 0, "fits": True}
    return stub


def taken(stub: Stub) -> int:
    return sum(route == "POST /v1/vectors" for route, _ in stub.asked)


ROW = vectors((HASH, np.ones(4)))


def test_a_file_that_is_cut_short_or_damaged_keeps_what_was_read(run: Run, taking: Stub, tmp_path: Path) -> None:
    file = tmp_path / "cut.vectors"
    rows = [vectors(*((f"{n:030x}{m:02x}", np.random.default_rng(n * 99 + m).normal(size=64)) for m in range(99)))
            for n in range(40)]  # fmt: skip
    whole = packed(file, *rows).read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    code, _, err = run("index", "import", str(file))
    assert (code, 0 < taken(taking) < 40) == (EXIT_REFUSED, True)
    assert "The file is incomplete. " in err and "Imported before that: " in err
    broken = bytearray(whole)
    broken[len(whole) // 2 : len(whole) // 2 + 40] = bytes(40)
    file.write_bytes(broken)
    code, _, err = run("index", "import", str(file))
    assert (code, "Vectors read so far are kept" in err) == (EXIT_REFUSED, True), err


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"# A note\n",
        gzip.compress(b""),
        gzip.compress(b"# A note\n"),
        gzip.compress(b"[" * 100_000 + b"\n"),
        gzip.compress(b'{"format": "other"}\n'),
        gzip.compress(b'"\xff\xfe"\n'),
        b"\x1f\x8b" + b"\x00" * 50,
    ],
    ids=["empty", "note", "nothing", "packed note", "nested", "other", "no UTF-8", "garbage"],
)
def test_what_is_no_export_is_refused(run: Run, taking: Stub, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.vectors"
    file.write_bytes(content)
    code, _, err = run("index", "import", str(file))
    assert (code, taken(taking)) == (EXIT_REFUSED, 0)
    assert err.startswith("The file ") and "Traceback" not in err


def test_a_file_of_another_version_is_refused(run: Run, taking: Stub, tmp_path: Path) -> None:
    file = packed(tmp_path / "a.vectors", ROW, header={"format": "tarsd-vectors", "version": 2})
    code, _, err = run("index", "import", str(file))
    assert (code, "another version of tarsd" in err, taken(taking)) == (EXIT_REFUSED, True, 0)


@pytest.mark.parametrize("end", [b"\n", b""], ids=["lines", "one line"])
def test_a_file_that_unfolds_without_end_is_left(run: Run, taking: Stub, tmp_path: Path, end: bytes) -> None:
    bomb = (b" " * 100_000 + end) * 1_000
    file = packed(tmp_path / "bomb.vectors", ROW, b'{"a": 1}' + bomb)
    assert file.stat().st_size < len(bomb) / 100
    tracemalloc.start()
    code, _, err = run("index", "import", str(file))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * MAX_BODY < len(bomb)
    assert (code, taken(taking)) == (EXIT_REFUSED, 1), err


def test_a_file_of_very_many_vectors_is_left(run: Run, taking: Stub, tmp_path: Path) -> None:
    rows = vectors(*[(HASH, np.ones(4))] * 300)
    many = packed(tmp_path / "many.vectors", *[rows] * 300)
    code, _, err = run("index", "import", str(many))
    assert (code, "contains an invalid vector" in err) == (EXIT_REFUSED, True)
    assert 0 < taken(taking) < 150


@pytest.mark.parametrize("kind", ["folder", "fifo", "missing"])
def test_only_a_file_is_read(run: Run, taking: Stub, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    code, _, err = run("index", "import", str(path))
    assert (code, "Traceback" in err) == (EXIT_NOTHING if kind == "missing" else EXIT_REFUSED, False)


@pytest.mark.parametrize("kind", ["folder", "fifo", "note", "no folder"])
def test_nothing_but_an_older_export_is_overwritten(run: Run, stub: Stub, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a"
    stub.replies["GET /v1/status"]["embedding"] = {"model": "minilm", "done": 1, "remaining": 0}
    stub.replies["GET /v1/vectors"] = [ROW]
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "note":
        path.write_text("# A note\n")
    else:
        path = tmp_path / "none" / "a"
    code, _, err = run("index", "export", str(path))
    assert (code, "Traceback" in err) == (EXIT_REFUSED, False)
    assert kind != "note" or path.read_text() == "# A note\n"
    other = tmp_path / "b"
    for _ in range(2):
        assert run("index", "export", str(other))[0] == EXIT_OK


def test_an_export_that_breaks_off_leaves_no_file(run: Run, stub: Stub, tmp_path: Path) -> None:
    def breaking() -> Iterator[Any]:
        yield ROW
        yield {"type": "error", "error": {"code": "x", "message": "The disk is gone.", "hint": ""}}

    stub.replies["GET /v1/status"]["embedding"] = {"model": "minilm", "done": 1, "remaining": 0}
    stub.replies["GET /v1/vectors"] = breaking
    assert run("index", "export", str(tmp_path / "a"))[0] == EXIT_REFUSED
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == []


# What the daemon takes


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"model": 1}, "model"),
        ({"model": "../x"}, "model"),
        ({"model": None}, "model"),
        ({"dim": 0}, "dim"),
        ({"dim": None}, "dim"),
        ({"dim": True}, "dim"),
        ({"dim": MAX_NUMBERS + 1}, "dim"),
        ({"dim": 5}, "rows"),
        ({"rows": None}, "rows"),
        ({"rows": []}, "rows"),
        ({"rows": {}}, "rows"),
        ({"rows": ROW["rows"] * (MAX_ROWS + 1)}, "rows"),
        ({"rows": [[HASH]]}, "rows"),
        ({"rows": [[HASH, 1]]}, "rows"),
        ({"rows": [["zz" * 16, ROW["rows"][0][1]]]}, "rows"),
        ({"rows": [[HASH, "not base64!"]]}, "rows"),
        ({"rows": [[HASH, "é"]]}, "rows"),
    ],
    ids=repr,
)
def test_a_request_is_read_strictly(change: dict[str, Any], field: str) -> None:
    with pytest.raises(BadRequest) as refused:
        VectorsRequest.read({**ROW, **change})
    assert refused.value.field == field
    assert VectorsRequest.read(ROW).rows == ((bytes.fromhex(HASH), np.ones(4, "<f2").tobytes()),)


def test_the_largest_object_fits_into_a_body() -> None:
    rows = [(f"{n:032x}", np.ones(MAX_NUMBERS)) for n in range(MAX_ROWS)]
    assert len(json.dumps(vectors(*rows))) < MAX_BODY


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0], ids=str)
def test_a_request_with_a_bad_vector_leaves_nothing_behind(daemon: Start, bad: float) -> None:
    one = daemon(TARSD_EMBEDDING="minilm")
    rows = (HASH, np.ones(384)), ("cd" * 16, np.full(384, bad))
    with pytest.raises(ClientError) as refused:
        one.client.post("/v1/vectors", vectors(*rows))
    assert (refused.value.exit_code, refused.value.message) == (
        EXIT_USAGE, "1 of the vectors are invalid."
    )  # fmt: skip
    assert one.client.post("/v1/vectors", vectors(rows[0])) == {"added": 1, "known": 0, "fits": False}
    assert one.client.post("/v1/vectors", vectors(rows[0])) == {"added": 0, "known": 1, "fits": False}


def test_vectors_of_another_width_displace_none(tmp_path: Path) -> None:
    store = Store(tmp_path / "index.db", tmp_path / "embeddings.db")
    store.apply(Batch(put=[note("One.md", "tea")]))
    space = store.vectors.ensure_space("m", "m:1", 4, "model")
    store.vectors.put(space.id, [digest("tea")], np.ones((1, 4)))
    wide = [(digest("tea"), np.ones(8, "<f2").tobytes())]
    with pytest.raises(BadRequest):
        import_vectors(store, "m:1", wide)
    other = Store(tmp_path / "other.db", tmp_path / "embeddings.db")
    with pytest.raises(BadRequest):
        import_vectors(other, "m:1", wide)
    assert [[len(base64.b64decode(data)) for _, data in batch["rows"]] for batch in export_vectors(store)] == [[8]]
    store.close()
    other.close()
