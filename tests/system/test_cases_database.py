"""The index file itself: locked, damaged, grown and shrunk, each by a public report."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tarsd.cli import main
from tarsd.embed.fake import FakeEmbedder
from tarsd.store import Store
from tests.conftest import Daemon
from tests.support.engine import Engine, contents, fill, until, write
from tests.support.index_dump import dump

Start = Callable[..., Daemon]

MANY = 2_100
"""Notes enough for three of the blocks in which sqlite-vec keeps vectors, of 1,024 each."""


@pytest.mark.report("https://github.com/asg017/sqlite-vec/issues/83")
def test_without_loadable_extensions_vectors_are_compared_all_the_same(
    vault: Path, tmp_path: Path, daemon: Start
) -> None:
    fill(vault, 30)
    write(tmp_path, "broken/sqlite_vec.py", "raise ImportError('no extension for this machine')")
    paths = os.pathsep.join([str(tmp_path / "broken"), os.environ.get("PYTHONPATH", "")])
    one = daemon(PYTHONPATH=paths, TARSD_EMBEDDING="fake")
    status = one.wait(lambda status: status["embedding"]["state"] == "complete")
    for mode in ("fts", "vec", "hybrid"):
        hits = one.client.post("/v1/search", {"query": "bowline dinghy", "mode": mode})["hits"]
        assert hits[0]["path"] == "rope.md", mode
    (told,) = [problem for problem in status["problems"] if "sqlite-vec" in problem["reason"]]
    assert told["hint"]


@pytest.mark.report("https://github.com/asg017/sqlite-vec/issues/54")
def test_vectors_that_come_and_go_leave_no_space_taken(short_tmp: Path) -> None:
    def size(engine: Engine) -> int:
        engine.stop()
        return engine.config.paths.index_db.stat().st_size

    with Engine(short_tmp, model=FakeEmbedder(384)) as engine:
        notes = [write(engine.vault, f"n{n}.md", f"entry {n} of the ledger, kind {n % 97}\n") for n in range(MANY)]
        engine.index()
        for round in range(5):
            for note in notes[round::10]:
                note.write_text(f"entry {note.stem} changed in round {round}\n")
            engine.index()
        for note in notes[100:]:
            note.unlink()
        engine.reconcile(full=True)
        engine.store.maintain()
        churned = size(engine)
        survivors = contents(engine.vault)
    with Engine(short_tmp / "fresh", model=FakeEmbedder(384)) as fresh:
        for path, (raw, _) in survivors.items():
            write(fresh.vault, path, raw)
        fresh.index()
        assert len(fresh.rows()) == 100
        assert churned <= 2 * size(fresh)


@pytest.mark.report("https://github.com/asg017/sqlite-vec/issues/54")
def test_space_is_given_back_without_being_asked(short_tmp: Path) -> None:
    with Engine(short_tmp, model=FakeEmbedder(384)) as engine:
        notes = [write(engine.vault, f"n{n}.md", f"entry {n} of the ledger, kind {n % 97}\n") for n in range(MANY)]
        engine.index()
        before = engine.config.paths.index_db.stat().st_size
        for note in notes[100:]:
            note.unlink()
        engine.reconcile(force=True)
        engine.restart()
        engine.reconcile()
        engine.stop()
        assert engine.config.paths.index_db.stat().st_size < before / 2


HOLD = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
db.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
db.execute("ROLLBACK")
"""


@contextlib.contextmanager
def held(database: Path) -> Iterator[Callable[[], object]]:
    """A database locked for writing by another process, until the function that is given is called."""
    command = [sys.executable, "-c", HOLD, str(database)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None and holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield holder.stdin.close


def called(*arguments: str) -> int:
    """The exit code of a command, run here."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(ended.value.code or 0)


@pytest.mark.report("https://github.com/AVIDS2/memorix/issues/291")
def test_commands_and_passes_lock_each_other_out_of_nothing(
    vault: Path, daemon: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(vault)
    one = daemon()
    with held(one.config.paths.index_db) as release:
        write(vault, "during.md", "Written while the index was held: a marmot.")
        # all of this is answered before the lock is let go
        reply = one.client.post("/chat", {"message": "how is sencha steeped?"})
        assert [source["path"] for source in reply["sources"]] == ["tea.md"]
        assert one.client.post("/v1/search", {"query": "bowline"})["hits"][0]["path"] == "rope.md"
        assert called("search", "bowline", "--vault", str(vault)) == 0
        assert "rope.md" in capsys.readouterr().out
        one.wait(lambda status: status["behind"] > 0)
        release()
    status = one.wait(lambda status: status["behind"] == 0 and status["counts"]["notes"] == 4)
    assert status["problems"] == []
    assert one.client.post("/v1/search", {"query": "marmot"})["hits"][0]["path"] == "during.md"


@pytest.mark.report("https://github.com/AVIDS2/memorix/issues/291")
def test_a_lock_that_stays_is_told(short_tmp: Path) -> None:
    with Engine(short_tmp, store=partial(Store, busy_ms=50)) as engine:
        fill(engine.vault)
        engine.watch()
        with held(engine.config.paths.index_db) as release:
            write(engine.vault, "during.md", "a marmot")
            until(lambda: "locked" in engine.trouble)
            assert engine.found("bowline") == ["rope.md"]
            release()
        until(lambda: engine.found("marmot") == ["during.md"])
        assert engine.trouble == ""


def _middle(path: Path) -> None:
    raw = path.read_bytes()
    at = len(raw) // 2 // 4096 * 4096
    path.write_bytes(raw[:at] + b"\xa5" * 4096 + raw[at + 4096 :])


def _half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _stray_log(path: Path) -> None:
    Path(f"{path}-wal").write_bytes(b"\x37\x7f\x06\x82" + b"\xa5" * 9000)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "middle": _middle,
    "half": _half,
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("no database at all"),
    "wal": _stray_log,
}


@pytest.mark.parametrize("which", ["index", "embeddings"])
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.report("https://github.com/samschott/maestral/issues/908")
def test_a_damaged_index_is_made_anew(short_tmp: Path, damage: str, which: str) -> None:
    with Engine(short_tmp) as engine:
        fill(engine.vault, 200)
        engine.index()
        asked = engine.model.texts
        before = contents(engine.vault)
        store = dump(engine.store)
        file = getattr(engine.config.paths, f"{which}_db")
        engine.restart(before=lambda _: DAMAGES[damage](file))
        engine.index()
        assert engine.found("bowline") == ["rope.md"]
        assert engine.search("bowline dinghy", "vec")[0].path == "rope.md"
        assert dump(engine.store) == store
        assert engine.space().coverage == 1.0
        assert contents(engine.vault) == before
        if which == "index":
            assert engine.model.texts == asked + 1  # the question: vectors came from the cache
        if damage in ("half", "text"):
            assert any("rebuilt" in sentence for sentence in engine.indexer.repaired)
            assert [path for path in file.parent.iterdir() if ".corrupt-" in path.name]


@pytest.mark.report("https://github.com/samschott/maestral/issues/908")
def test_chat_says_so_and_the_command_rebuilds(vault: Path, daemon: Start) -> None:
    fill(vault, 600)
    before = contents(vault)
    one = daemon()
    one.stop()
    one.config.paths.index_db.write_text("no database at all")
    one.process = one.spawn()
    until(one.client.alive)
    reply = one.client.post("/chat", {"message": "how is sencha steeped?"})
    assert "being built" in str(reply) or "tea.md" in str(reply)
    status = one.wait()
    assert any("rebuilt" in problem["reason"] for problem in status["problems"])
    one.config.paths.index_db.write_text("broken again, under the daemon")
    assert called("reindex", "--full", "--vault", str(vault)) == 0
    one.wait()
    assert one.client.post("/v1/search", {"query": "bowline"})["hits"][0]["path"] == "rope.md"
    assert {path: held for path, held in contents(vault).items() if not path.startswith("tars/")} == before
