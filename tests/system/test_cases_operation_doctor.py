"""A reported fault of operation, played through a real daemon: what became of each file, and that all are counted."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tarsd.vault import MAX_BYTES, kind_of
from tests.conftest import Daemon
from tests.support.doubles.embedder import Ollama
from tests.support.doubles.server import Reply
from tests.support.engine import write

Start = Callable[..., Daemon]


def on_disk(vault: Path) -> int:
    """The notes that a person counts: also those that are only stubs of a cloud, but nothing in hidden folders."""
    count = 0
    for _, folders, names in os.walk(vault):
        folders[:] = [name for name in folders if not name.startswith(".")]
        shown = (name[1:-7] if name.endswith(".icloud") else name for name in names)
        count += sum(kind_of(name) is not None and not name.startswith(".") for name in shown)
    return count


def added_up(counts: dict[str, int]) -> int:
    return sum(counts[name] for name in ("notes", "pending", "skipped", "failed", "excluded"))


@pytest.mark.report("https://github.com/khoj-ai/khoj/issues/1363")
def test_every_file_has_a_state_and_the_counts_add_up(daemon: Start, home: Path, vault: Path) -> None:
    began = time.time()
    write(vault, "Boiler.md", "# Boiler\n\nThe gauge should read 1.2 bar when cold.\n")
    write(vault, "Board.canvas", '{"nodes": [], "edges": []}')
    write(vault, "Huge.md", b"tea " * (MAX_BYTES // 4 + 1))
    write(vault, "Latin.md", b"Caf\xe9 au lait, d\xe9j\xe0 vu.\n")
    write(vault, "Left.excalidraw.md", "A drawing.\n")
    for name in ("a.md", "b.md", "deep/c.md", ".d.md.icloud"):
        write(vault, f"Templates/{name}", "A template.\n")
    write(vault, "Templates/picture.png", "no note")
    write(vault, "Poison.md", "# Fine\n\nA fine part.\n\n# Bad\n\n" + "poison ivy " * 60)
    write(vault, ".Away.md.icloud", b"bplist00")
    with (vault / "Dataless.md").open("wb") as file:
        file.truncate(5000)
    write(vault, "Boiler.sync-conflict-20260101-120000-ABCDEFG.md", "The other one.\n")
    os.mkfifo(vault / "Pipe.md")
    write(vault, ".hidden/Never.md", "nobody counts this")
    write(home, "config.toml", f'[vault]\npath = "{vault}"\nexclude = ["Templates/", "*.excalidraw.md"]\n')
    with Ollama() as server:
        said = {"error": "the input length exceeds the context length"}
        server.answer = lambda batch: Reply(said, 400) if any("poison" in text for text in batch) else None
        one = daemon(TARSD_EMBEDDING="ollama:nomic-embed-text", OLLAMA_HOST=server.url)
        status = one.wait(lambda status: status["behind"] == 0 and status["embedding"]["state"] == "complete")

        counts = status["counts"]
        assert {name: counts[name] for name in ("notes", "pending", "skipped", "failed", "excluded")} == {
            "notes": 4, "pending": 0, "skipped": 5, "failed": 0, "excluded": 5,
        }  # fmt: skip
        assert added_up(counts) == on_disk(vault) == 14

        left = {row["path"]: row for row in status["left_out"]}
        assert {path: row["state"] for path, row in left.items()} == {
            "Huge.md": "too_large",
            "Left.excalidraw.md": "excluded",
            "Templates": "excluded",
            "Away.md": "not_downloaded",
            "Dataless.md": "not_downloaded",
            "Pipe.md": "not_downloaded",
            "Boiler.sync-conflict-20260101-120000-ABCDEFG.md": "conflict",
        }
        told = {row["path"]: row for row in status["problems"]}
        assert {path: row["state"] for path, row in told.items() if path not in left} == {
            "Latin.md": "indexed", "Poison.md": "indexed",
        }  # fmt: skip
        assert "no vector" in told["Poison.md"]["reason"] and "not valid" in told["Latin.md"]["reason"]
        assert all(row["reason"] and began - 1 <= row["at"] <= time.time() for row in [*left.values(), *told.values()])
        assert {path for path in left if path not in told} == {"Left.excalidraw.md", "Templates"}

        later = time.time()
        write(vault, "Huge.md", "Split.\n")
        write(vault, "Board.base", "views: []\n")
        (vault / "Left.excalidraw.md").unlink()
        (vault / "Dataless.md").write_text("Here it is.\n")
        write(vault, "Latin.md", b"Caf\xe9 again.\n")
        one.client.post("/index")  # nobody watches what is left out: it is looked at with everything else
        status = one.wait(lambda status: status["behind"] == 0 and len(status["left_out"]) == 4)
        assert added_up(status["counts"]) == on_disk(vault) == 14
        assert {row["path"] for row in status["left_out"]} == {
            "Templates", "Away.md", "Pipe.md", "Boiler.sync-conflict-20260101-120000-ABCDEFG.md",
        }  # fmt: skip
        (latin,) = [row for row in status["problems"] if row["path"] == "Latin.md"]
        assert latin["at"] >= later > began


@pytest.mark.report("https://github.com/khoj-ai/khoj/issues/1363")
def test_notes_that_cannot_be_read_count_once(daemon: Start, vault: Path) -> None:
    write(vault, ".obsidian/app.json", "{broken")
    write(vault, "a.md", "Tea.\n")
    os.close(os.open(os.fsencode(vault) + b"/\xff.md", os.O_CREAT))
    status = daemon().wait(lambda status: status["behind"] == 0)
    assert (status["counts"]["notes"], status["counts"]["failed"]) == (1, 1)
    assert added_up(status["counts"]) == 2
    assert len([row for row in status["problems"] if row["state"] == "unreadable"]) == 2, (
        "the settings are told as well"
    )
