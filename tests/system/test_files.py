"""Files that are no notes beside the notes: read, found, cited with their page, and kept apart."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tarsd.errors import EXIT_OK, ClientError
from tests.conftest import Daemon
from tests.support.engine import until, write
from tests.support.pdfs import pdf
from tests.support.pdfs import write as write_bytes
from tests.support.stub import Run

Start = Callable[..., Daemon]

PAGES = [
    ["Introduction to the pump."],
    ["The filter is cleaned weekly."],
    ["The warranty of the kettle is seven years."],
]


def hits(run: Run, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("search", "--json", "--", *words)[1])["hits"]
    return found


def found(run: Run, words: str, link: str) -> bool:
    return any(hit["link"] == link and hit["relevance"] > 0.5 for hit in hits(run, words))


def test_a_pdf_that_is_dropped_into_the_vault_is_cited_with_its_page(run: Run, daemon: Start, vault: Path) -> None:
    write(vault, "Garden.md", "The tomatoes need water.\n")
    daemon()
    (vault / "Papers").mkdir()
    write_bytes(vault / "Papers" / "manual.pdf", pdf(PAGES))
    until(lambda: found(run, "warranty kettle", "Papers/manual.pdf#page=3"))

    code, out, _ = run("search", "kettle")
    assert code == EXIT_OK and "manual.pdf, page 3" in out
    code, out, _ = run("ask", "How long is the warranty of the kettle?")
    assert code == EXIT_OK and "seven years" in out and "[[Papers/manual.pdf#page=3]]" in out

    assert [hit["path"] for hit in hits(run, "kind:pdf", "tomatoes")] != ["Garden.md"]
    assert all(hit["path"] == "Garden.md" for hit in hits(run, "-kind:pdf", "kettle"))

    os.rename(vault / "Papers" / "manual.pdf", vault / "moved.pdf")
    until(lambda: found(run, "kettle", "moved.pdf#page=3"))
    assert not found(run, "kettle", "Papers/manual.pdf#page=3")
    assert run("why", "moved.pdf", "kettle")[0] == EXIT_OK
    assert "[[moved.pdf#page=2]]" in run("ask", "@moved.pdf what about the filter?")[1]
    (vault / "broken.pdf").write_bytes(b"%PDF-1.7 and nothing more")
    until(lambda: "broken.pdf" in run("status", "--all")[1])
    (vault / "moved.pdf").unlink()
    write_bytes(vault / "other.pdf", pdf([["The ferry is late."]]))
    until(lambda: found(run, "ferry", "other.pdf#page=1"))


def test_a_private_folder_holds_for_files_and_an_excluded_one_too(
    run: Run, daemon: Start, vault: Path, home: Path
) -> None:
    """Nothing of a private file is told to another program's model elsewhere; the person and a model here get it."""
    for folder in ("Private", "Left out", "Open"):
        (vault / folder).mkdir()
        write_bytes(vault / folder / f"{folder}.pdf", pdf([[f"The zeppelin of {folder} lands."]]))
    settings = f'[vault]\npath = "{vault}"\nexclude = ["Left out/"]\n[privacy]\nlocal_only = ["Private/"]\n'
    (home / "config.toml").write_text(settings)
    one = daemon()
    until(lambda: one.wait()["files"]["read"] == 2)

    def paths(audience: str) -> set[str]:
        reply = one.client.post("/v1/search", {"query": "zeppelin", "audience": audience})
        return {hit["path"] for hit in reply["hits"]}

    assert paths("person") == paths("here") == {"Private/Private.pdf", "Open/Open.pdf"}
    assert paths("elsewhere") == {"Open/Open.pdf"}


def test_a_reindex_reaches_files_and_a_full_one_reads_them_again(run: Run, daemon: Start, vault: Path) -> None:
    write(vault, "Garden.md", "The tomatoes need water.\n")
    (vault / "Papers").mkdir()
    for name in ("one.pdf", "copy.pdf"):
        write_bytes(vault / "Papers" / name, pdf(PAGES))
    one = daemon()
    until(lambda: one.wait()["files"]["read"] == 2)

    def report(*words: str) -> tuple[dict[str, int], dict[str, int]]:
        told = json.loads(run("reindex", "--json", *words)[1])
        return told, told.get("files", {})

    notes, files = report()
    assert (notes["unchanged"], files["unchanged"], files["changed"]) == (1, 2, 0)
    notes, files = report("Papers/one.pdf")
    assert (notes["unchanged"], files["unchanged"]) == (0, 1)
    assert report("Garden.md")[1] == {}, "what is asked of notes waits for no file"
    code, out, _ = run("reindex", "--full")
    assert code == EXIT_OK and "\nFiles: 2 changed" in out, out
    assert found(run, "warranty kettle", "Papers/one.pdf#page=3") or found(run, "kettle", "Papers/copy.pdf#page=3")


def test_notes_that_answer_come_before_files_and_notes_that_do_not_hide_none(
    run: Run, daemon: Start, vault: Path
) -> None:
    write(vault, "Kettle.md", "# Kettle\n\nThe kettle is descaled with vinegar every month.\n")
    for number in range(12):
        write(vault, f"Garden {number}.md", f"Bed {number}: the seeds of the garden are ordered in spring.\n")
        name = f"descaled kettle {number}.pdf"
        write_bytes(vault / name, pdf([[f"The kettle of type {number} is descaled with vinegar every month."]]))
    write_bytes(vault / "lease.pdf", pdf([["The lease of the garage ends in October, with three months of notice."]]))
    one = daemon()
    until(lambda: one.wait()["files"]["read"] == 13)
    for words in ("kettle descaled vinegar", "How is the kettle descaled?"):
        assert hits(run, words)[0]["path"] == "Kettle.md", words
        assert len({hit["path"] for hit in hits(run, words)}) > 1, words
    for words in ("garage lease notice months", "When does the lease of the garage end?"):
        assert hits(run, words)[0]["path"] == "lease.pdf", words


def test_the_text_of_a_file_is_read_with_its_pages(run: Run, daemon: Start, vault: Path, home: Path) -> None:
    for folder in ("Private", "Büro"):
        (vault / folder).mkdir()
        write_bytes(vault / folder / "manual 1.pdf", pdf(PAGES))
    write_bytes(vault / "Private" / "secret.pdf", pdf(PAGES))
    (home / "config.toml").write_text(f'[vault]\npath = "{vault}"\n[privacy]\nlocal_only = ["Private/"]\n')
    one = daemon()
    until(lambda: one.wait()["files"]["read"] == 3)

    def note(name: str, audience: str = "person") -> dict[str, Any]:
        reply: dict[str, Any] = one.client.get(f"/v1/notes/{quote(name)}?audience={audience}")
        return reply

    reply = note("Büro/manual 1.pdf")
    assert reply["path"] == "Büro/manual 1.pdf" and reply["modified"] > 0
    lines = reply["text"].split("\n")
    hit = next(hit for hit in hits(run, "warranty kettle") if hit["path"] == reply["path"])
    assert lines[hit["start_line"] - 1 : hit["end_line"]] == hit["text"].split("\n") == PAGES[2]
    assert [line for line in lines if line.startswith("#")] == ["# page 1", "# page 2", "# page 3"]

    for audience in ("here", "elsewhere"):
        for name in ("Büro/manual 1.pdf", "[[Büro/manual 1.pdf#page=3]]"):
            assert note(name, audience)["text"] == reply["text"]
    assert note("manual 1.pdf", "elsewhere")["path"] == "Büro/manual 1.pdf"
    assert note("Private/secret.pdf")["text"] == note("secret.pdf", "here")["text"]
    missing = set()
    for name in ("Private/secret.pdf", "secret.pdf", "Private/none.pdf"):
        with pytest.raises(ClientError) as refused:
            note(name, "elsewhere")
        missing.add((refused.value.code, refused.value.message.replace(name, "…")))
    assert len(missing) == 1, "no error tells a private file from none"
    with pytest.raises(ClientError):
        note("manual 1.pdf")  # a person names a path
