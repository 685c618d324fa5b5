"""Files are read in children with limits."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarsd.children import ChildDied, Pool
from tarsd.extract import Reader
from tests.support.pdfs import pdf, write


@pytest.fixture
def reader() -> Iterator[Reader]:
    one = Reader()
    yield one
    one.close()


def test_a_child_reads_one_file_after_another(reader: Reader, tmp_path: Path) -> None:
    for word in ("copper", "tin"):
        found = reader.read(write(tmp_path / f"{word}.pdf", pdf([[word]])), "pdf")
        assert [page.text for page in found.pages] == [word]
    assert "opened" in reader.read(tmp_path / "none.pdf", "pdf").problem
    reader.close()
    with pytest.raises(ChildDied):
        reader.read(tmp_path / "tin.pdf", "pdf")


@pytest.mark.parametrize(
    "code",
    [
        "__import__('socket').socket()",
        "__import__('socket').getaddrinfo('localhost', 80)",
        "__import__('urllib.request').request.urlopen('http://127.0.0.1:9')",
        "__import__('subprocess').run(['true'])",
        "__import__('os').system('true')",
        "__import__('os').fork()",
        "__import__('os').posix_spawn('/bin/true', ['true'], {})",
        "__import__('os').execv('/bin/true', ['true'])",
        "__import__('multiprocessing').Process(target=print).start()",
        "open('written', 'wb', buffering=0).write(b'x')",
        "open('none.pdf', 'w')",
        "__import__('os').open('none.pdf', 1)",
        "__import__('os').remove('none.pdf')",
        "__import__('os').rename('none.pdf', 'other.pdf')",
    ],
)
def test_a_child_may_not(code: str, tmp_path: Path) -> None:
    """Open connections, start processes, write files."""
    pool = Pool(1, here=False)
    try:
        (tmp_path / "none.pdf").write_bytes(b"no PDF")
        pool.call("os:chdir", str(tmp_path))
        pool.call("tarsd.extract.reader:in_child", str(tmp_path / "none.pdf"), "pdf")
        with pytest.raises(OSError):
            pool.call("builtins:eval", code)
        assert (tmp_path / "none.pdf").read_bytes() == b"no PDF"
    finally:
        pool.close()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not count what a process may write to")
def test_a_child_has_little_memory(tmp_path: Path) -> None:
    pool = Pool(1, here=False)
    try:
        pool.call("tarsd.extract.reader:in_child", str(tmp_path / "none.pdf"), "pdf")
        assert pool.call("builtins:eval", "len(bytearray(200_000_000))") == 200_000_000
        with pytest.raises(MemoryError):
            pool.call("builtins:eval", "len(bytearray(1_100_000_000))")
    finally:
        pool.close()


def test_a_file_that_takes_too_long_or_kills_its_child_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_and_deadly.py").write_text(
        "import os, time\ndef in_child(path, kind):\n    time.sleep(60) if 'slow' in path else os.abort()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("tarsd.extract.reader._CALL", "slow_and_deadly:in_child")
    reader = Reader(timeout_s=0.5)
    try:
        slow, deadly = reader.read(Path("slow"), "pdf"), reader.read(Path("deadly"), "pdf")
    finally:
        reader.close()
    assert slow.problem == "Reading it took more than 60 s." and slow.hint
    assert "broke down" in deadly.problem and deadly.hint


def test_the_process_that_asks_loads_nothing_of_it(tmp_path: Path) -> None:
    path = write(tmp_path / "a.pdf", pdf([["copper"]]))
    code = (
        "import sys; from pathlib import Path; from tarsd.extract import Reader; one = Reader();"
        "print(one.read(Path(sys.argv[1]), 'pdf').pages[0].text); one.close();"
        "print([name for name in ('pypdfium2', 'lxml', 'PIL', 'numpy', 'ctypes') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ},
    )
    assert done.stdout.split("\n")[:2] == ["copper", "[]"]
