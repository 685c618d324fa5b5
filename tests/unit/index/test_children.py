"""Many notes are prepared in child processes, which may die."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from tarsd import children
from tarsd.children import ChildDied, Pool
from tarsd.embed.table import TableEmbedder
from tarsd.index import Indexer
from tarsd.store import Store
from tarsd.vault import Vault
from tests.support.index_dump import dump
from tests.unit.index.conftest import Bench


def test_many_notes_in_children_come_to_the_same(bench: Bench, tmp_path: Path) -> None:
    for i in range(60):
        bench.write(f"{i % 7}/{i}.md", f"# Head {i}\n\ntext number{i} and [[{(i * 3) % 60}|link {i}]]\n")
    bench.table = TableEmbedder()  # type: ignore[assignment]
    bench.restart()
    seen: list[tuple[int, int, str]] = []
    report = bench.indexer.reconcile(progress=lambda *step: seen.append(step))
    assert report.added == 60 and report.embedded == bench.store.counts().chunks
    assert seen[-1][:2] == (60, 60)
    children = bench.indexer._pool.pids()
    assert children
    other = Store(tmp_path / "o.db", bench.home / "embeddings.db")
    single = Indexer(bench.config, [Vault(bench.root)], other, bench.table)
    single.reconcile([""])
    for i in range(7):
        single.reconcile([str(i)])
    assert dump(other) == dump(bench.store)
    single.close()
    other.close()
    bench.indexer.close()
    assert not any(alive(pid) for pid in children)


def alive(pid: int) -> bool:
    """Whether it runs; one that ended and that nobody has waited for yet does not."""
    try:
        os.kill(pid, 0)
        status = Path(f"/proc/{pid}/stat")
        return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_a_note_that_kills_its_process_is_left_out_alone(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(40):
        bench.write(f"{i}.md", f"text {i}")

    class Deadly(Pool):
        def submit(self, name: str, *arguments: Any) -> Future[Any]:
            future: Future[Any] = Future()
            try:
                future.set_result(self.call(name, *arguments))
            except ChildDied as error:
                future.set_exception(error)
            return future

        def call(self, name: str, *arguments: Any) -> Any:
            if any(job.info.path == "7.md" for job in arguments[0]):
                raise ChildDied("crash")
            return children.resolve(name)(*arguments)

    bench.indexer._pool = Deadly(1)
    report = bench.run()
    assert (report.added, report.failed) == (39, 1) and "7.md" not in bench.paths()


def test_children_answer_raise_die_and_are_replaced() -> None:
    one = Pool(1, timeout_s=30.0)
    try:
        first = one.call("os:getpid")
        assert first != os.getpid() and one.call("os:getpid") == first and one.pids() == [first]
        with pytest.raises(ZeroDivisionError):
            one.call("operator:truediv", 1, 0)
        assert one.call("builtins:print", "noise") is None
        with pytest.raises(ChildDied):
            one.call("os:_exit", 3)
        second = one.call("os:getpid")
        assert second != first
    finally:
        one.close()
    assert not alive(second)
    with pytest.raises(ChildDied):
        one.call("os:getpid")


@pytest.mark.parametrize("module", ["pickle.py", "re.py", "select.py"])
def test_where_no_child_can_run_the_work_is_done_here(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / module).write_text("raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    one = Pool(1)
    try:
        assert one.call("os:getpid") == os.getpid()
        with pytest.raises(FileNotFoundError):
            one.call("os:stat", str(tmp_path / "nothing"))
        assert one.pids() == []
    finally:
        one.close()


def test_what_a_call_raises_is_raised_and_not_tried_again(tmp_path: Path) -> None:
    one = Pool(1, timeout_s=30.0)
    try:
        (tmp_path / "full").mkdir()
        one.call("os:rmdir", str(tmp_path / "full"))
        with pytest.raises(FileNotFoundError):
            one.call("os:rmdir", str(tmp_path / "full"))
        with pytest.raises(ModuleNotFoundError):
            one.call("no_such_module:x")
    finally:
        one.close()


def test_a_child_that_does_not_answer_is_ended() -> None:
    one = Pool(1, timeout_s=0.2)
    try:
        with pytest.raises(ChildDied):
            one.call("time:sleep", 60)
        assert one.pids() == []
    finally:
        one.close()


def test_children_do_not_outlive_a_killed_parent() -> None:
    script = (
        "import sys, time; from tarsd.children import Pool; one = Pool(1);"
        "print(one.call('os:getpid'), flush=True); time.sleep(60)"
    )
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path))
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
        parent.wait(20)
    deadline = time.monotonic() + 20
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(child)


def test_idle_children_are_ended() -> None:
    one = Pool(1, idle_s=0.05)
    try:
        pid = one.call("os:getpid")
        deadline = time.monotonic() + 20
        while alive(pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not alive(pid) and one.call("os:getpid") != pid
    finally:
        one.close()
