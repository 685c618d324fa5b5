"""Reported faults as small vaults: each folder of fixtures/cases is indexed, and what its expect.json says must hold,
and what ALSO adds to it.

The cases that are sequences of steps stand in test_cases_watch.py, test_cases_engine.py, test_cases_chat.py and
test_cases_operation*.py; the last test here keeps the list complete.
"""

from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tarsd import chunk, parse, passage
from tarsd.config import ChunkSettings
from tarsd.search import MODES, Mode
from tarsd.session.markdown import as_note_text
from tarsd.vault import decode
from tests.conftest import Daemon
from tests.support.engine import Engine

CASES = Path(__file__).parents[1] / "fixtures" / "cases"
SETTINGS = ChunkSettings()
HARD_CAP = 512  # tokens; the builtin model reads 256, every model that embeds reads 512

REPORTS: dict[str, list[str]] = json.loads((CASES.parent / "reports.json").read_text(encoding="utf-8"))
"""Every case of the kinds parsing, watching, embedding, chat and operation, with the reports that it comes from."""

Check = Callable[["Case", Any], None]


class Case:
    """One case folder: its notes parsed and cut, its vault indexed."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        self.folder = folder
        self.engine = engine
        self.expect = json.loads((folder / "expect.json").read_text(encoding="utf-8"))

    def note(self, path: str) -> parse.Note:
        return parse.parse(decode((self.folder / "vault" / path).read_bytes()).text, path)

    def paths(self) -> list[str]:
        vault = self.folder / "vault"
        return [p.relative_to(vault).as_posix() for p in sorted(vault.rglob("*.md")) if not p.name.startswith(".")]

    def chunks(self, path: str) -> list[passage.Passage]:
        return chunk.chunk(self.note(path), SETTINGS)

    def all_chunks(self) -> list[passage.Passage]:
        return [one for path in self.paths() for one in self.chunks(path)]

    def found(self, query: str, mode: Mode = "hybrid") -> list[str]:
        return list(dict.fromkeys(hit.path for hit in self.engine.search(query, mode=mode)))


def must_find(case: Case, wanted: dict[str, str]) -> None:
    for query, path in wanted.items():
        assert case.found(query)[:1] == [path], query
        assert path in case.found(query, "fts"), query


def must_find_keyword_only(case: Case, wanted: dict[str, list[str]]) -> None:
    for query, paths in wanted.items():
        assert set(paths) <= set(case.found(query, "fts")), query


def warn(case: Case, paths: list[str]) -> None:
    assert {problem.path for problem in case.engine.problems()} == set(paths)


def warn_line(case: Case, line: int) -> None:
    assert [problem.line for problem in case.engine.problems()] == [line]


def title_any_of(case: Case, titles: list[str]) -> None:
    assert {case.note(path).title for path in case.paths()} <= set(titles)


def properties(case: Case, wanted: dict[str, dict[str, str]]) -> None:
    for path, values in wanted.items():
        note = case.note(path)
        assert {key: note.properties[key] for key in values} == values
        json.dumps(note.properties, allow_nan=False)
        assert all(isinstance(tag, str) for tag in note.tags)


def headings(case: Case, wanted: dict[str, list[str]]) -> None:
    for path, texts in wanted.items():
        assert [heading.text for heading in case.note(path).headings] == texts


def tags(case: Case, wanted: dict[str, list[str]]) -> None:
    for path, names in wanted.items():
        assert list(case.note(path).tags) == names


def tags_must_include(case: Case, names: list[str]) -> None:
    assert {tag for path in case.paths() for tag in case.note(path).tags} == set(names)


def tags_must_exclude(case: Case, names: list[str]) -> None:
    assert not {tag for path in case.paths() for tag in case.note(path).tags} & set(names)


def links(case: Case, wanted: dict[str, list[str]]) -> None:
    for path, targets in wanted.items():
        found = [link.target + (f"#{link.heading}" if link.heading else "") for link in case.note(path).links]
        assert set(targets) <= set(found), found
        if case.expect["id"] == "C16":  # the literal spellings reach three different files
            resolved = {link.target: link.target_path for link in case.engine.links(path)}
            assert {resolved[target] for target in targets} == {f"{target}.md" for target in targets}


def link_must_not_end_with(case: Case, ending: str) -> None:
    assert not [link for path in case.paths() for link in case.note(path).links if link.target.endswith(ending)]


def chunk_must_not_contain(case: Case, wanted: dict[str, list[str]]) -> None:
    for path, texts in wanted.items():
        note = case.note(path)
        for one in case.chunks(path):
            embedded = chunk.embed_text(note.title, note.aliases, one)
            for text in texts:
                assert text not in one.text and text not in embedded, (path, text)


def chunk_must_contain(case: Case, texts: list[str]) -> None:
    for text in texts:
        assert any(text in one.text for one in case.all_chunks()), text


def chunk_heading_path(case: Case, wanted: dict[str, list[str]]) -> None:
    for text, trail in wanted.items():
        (holder,) = (one for one in case.all_chunks() if text in one.text)
        assert list(holder.trail) == trail
        assert holder.heading == trail[-1]


def same_chunk(case: Case, pairs: list[list[str]]) -> None:
    for pair in pairs:
        assert any(all(text in one.text for text in pair) for one in case.all_chunks()), pair


def max_chunk_tokens(case: Case, _: bool) -> None:
    assert max(chunk.count_tokens(one.text) for one in case.all_chunks()) <= HARD_CAP
    assert max(len(one.text) for one in case.all_chunks()) <= SETTINGS.max_chars


def no_chunk_only(case: Case, texts: list[str]) -> None:
    assert not [one for one in case.all_chunks() if one.text.strip() in texts]
    for one in case.all_chunks():  # every piece of a cut fence is a whole fence
        assert len(re.findall(r"^```", one.text, re.M)) % 2 == 0, one


def no_blank_chunks(case: Case, _: bool) -> None:
    for one in case.all_chunks():
        assert one.text.strip()
        assert re.sub(r"^#+ .*$", "", one.text, flags=re.M).strip(), "a chunk that is only a heading"


def block_ids(case: Case, wanted: dict[str, list[str]]) -> None:
    for path, ids in wanted.items():
        assert [block.id for block in case.note(path).blocks] == ids


def citation_targets(case: Case, wanted: dict[str, str]) -> None:
    for text, target in wanted.items():
        (hit,) = (hit for hit in case.engine.search(text, limit=1))
        assert hit.link == target


def search_once(case: Case, wanted: dict[str, list[str]]) -> None:
    for query, paths in wanted.items():
        assert case.found(query, "fts") == paths


def status_lists_conflicts(case: Case, count: int) -> None:
    assert sum(row.state == "conflict" for row in case.engine.skipped()) == count


def never_raises(case: Case, name: str) -> None:
    for line in (case.folder / name).read_text(encoding="utf-8").split("\n"):
        for mode in MODES:
            hits = case.found(line, mode)
            if not line.strip():
                assert hits == []
        if any(word in line for word in ("kiln", "why")):
            assert "terms.md" in case.found(line), line


def rank_above(case: Case, wanted: dict[str, Any]) -> None:
    found = case.found(wanted["q"], "fts")
    assert max(found.index(path) for path in wanted["first"]) < min(found.index(path) for path in wanted["below"])


def saved_must_contain(case: Case, texts: list[str]) -> None:
    saved = as_note_text((case.folder / "reply.md").read_text(encoding="utf-8"))
    for text in texts:
        assert text in saved, text


CHECKS: dict[str, Check] = {
    "must_find": must_find,
    "must_find_keyword_only": must_find_keyword_only,
    "warn": warn,
    "warn_line": warn_line,
    "title_any_of": title_any_of,
    "property": properties,
    "headings": headings,
    "tags": tags,
    "tags_must_include": tags_must_include,
    "tags_must_exclude": tags_must_exclude,
    "links": links,
    "link_must_not_end_with": link_must_not_end_with,
    "chunk_must_not_contain": chunk_must_not_contain,
    "chunk_must_contain": chunk_must_contain,
    "chunk_heading_path": chunk_heading_path,
    "same_chunk": same_chunk,
    "max_chunk_tokens": max_chunk_tokens,
    "no_chunk_only": no_chunk_only,
    "no_blank_chunks": no_blank_chunks,
    "block_ids": block_ids,
    "citation_targets": citation_targets,
    "search_once": search_once,
    "status_lists_conflicts": status_lists_conflicts,
    "never_raises": never_raises,
    "rank_above": rank_above,
    "saved_must_contain": saved_must_contain,
}
NO_CHECK = {"id", "slug", "kind", "env", "verify_in"}
FOLDERS = sorted(folder for folder in CASES.iterdir() if (folder / "expect.json").exists())


def also_c01(case: Case) -> None:
    note = case.note("colon.md")
    assert (note.title, note.tags) == ("Sprint 14: what we cut", ("planning",))


def also_c03(case: Case) -> None:
    told = {problem["path"]: problem["reason"] for problem in case.engine.status()["problems"]}
    assert all(told[path] for path in ("a-path.md", "b-italic.md", "d-suffix.md"))
    assert "c-rule.md" not in told


def also_c04(case: Case) -> None:
    assert [problem.path for problem in case.engine.problems()] == case.paths()
    assert case.note(case.paths()[0]).properties == {"sources": ["草稿_v2.md"]}


def also_c05(case: Case) -> None:
    note = case.note("dated.md")
    assert note.properties["updated"] == "2026-03-10T08:15:00+09:00"
    assert note.tags == ("journal", "2026-03-09")
    for words, found in (("axolotl before:2026-03-10", 1), ("axolotl after:2026-03-09", 0), ("axolotl after:2026", 1)):
        assert len(case.found(words)) == found, words


def also_c07(case: Case) -> None:
    assert case.note("tpl-core.md").title == "tpl-core"
    assert case.note("tpl-templater.md").properties["created"] == '<% tp.date.now("YYYY-MM-DD") %>'
    assert case.engine.problems() == []


def also_c09(case: Case) -> None:
    blank = case.note("blank.md")
    assert (blank.tags, blank.aliases) == ((), ())
    assert case.note("scalar.md").tags == ("garden", "shed")
    assert case.note("mixed.md").tags == ("ok", "2024", "true")


def also_c11(case: Case) -> None:
    for path, line in (("bom.md", 7), ("bom-crlf.md", 4)):
        assert case.note(path).title == "From Notepad"
        assert case.chunks(path)[-1].end_line == line
        hit = next(hit for hit in case.engine.search("Pickled") if hit.path == path)
        assert hit.end_line == line


def also_c12(case: Case) -> None:
    assert [heading.text for heading in case.note("cr.md").headings] == ["One"]
    for path in case.paths():
        raw = (case.folder / "vault" / path).read_bytes()
        text = decode(raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")).text
        assert chunk.chunk(parse.parse(text, path), SETTINGS) == case.chunks(path)
    engine = case.engine
    engine.embed()
    asked = engine.model.texts
    engine.reconcile(full=True)
    assert (engine.embed(), engine.model.texts) == (0, asked)


def also_c14(case: Case) -> None:
    note = case.note("rules.md")
    assert note.properties == {"title": "Real"}
    assert note.headings == ()


def also_c15(case: Case) -> None:
    assert case.note("inline.md").properties == {"filename": "Day maths"}
    assert [problem.line for problem in case.engine.problems()] == [3, 4]


def also_c17(case: Case) -> None:
    (table,) = (one for one in case.all_chunks() if "Turbine" in one.text)
    assert "Pump" in table.text and "#Store" in table.text
    assert case.note("table.md").properties == {"icon": "[[icons/gear|Gear]]"}
    assert [link.text for link in case.note("table.md").links] == ["Gear", "the big one", "spare", "see below"]


def also_c18(case: Case) -> None:
    # what Obsidian (here: GFM's own rule) then sees is one cell a link
    saved = as_note_text((case.folder / "reply.md").read_text(encoding="utf-8"))
    note = parse.parse(saved, "reply.md")
    assert [link.target for link in note.links] == ["guides/rope", "guides/rope"]
    assert as_note_text(saved) == saved


def also_c21(case: Case) -> None:
    assert case.engine.problems() == []
    assert case.engine.indexer.background.status().remaining > 0
    case.engine.embed()
    assert case.engine.space().coverage == 1.0
    pieces = [one for one in case.chunks("giant.md") if "step_" in one.text]
    assert len(pieces) > 10
    for piece in pieces:
        assert re.fullmatch(r"(?:#.*?)?```c\n[^`]*\n```", piece.text, re.S), piece
        assert piece.trail == ("Import",)


def also_c22(case: Case) -> None:
    for text, heading in (("Alpha", "Start"), ("Gamma", "Setext One"), ("Delta", "Setext Two")):
        (holder,) = (one for one in case.chunks("sections.md") if text in one.text)
        assert holder.heading == heading


def also_c23(case: Case) -> None:
    (whole,) = (one for one in case.chunks("callouts.md") if "Before you start" in one.text)
    assert "brass key" in whole.text and "valve --close" in whole.text
    assert case.note("callouts.md").links == ()
    assert case.found("Not a section") == ["callouts.md"]


def also_c25(case: Case) -> None:
    (problem,) = case.engine.problems()
    assert (problem.path, problem.line) == ("comments.md", 17)
    case.engine.embed()
    words = ("ALPHA", "BETA", "GAMMA", "DELTA", "EPSILON")
    assert not [text for text in case.engine.model.seen if any(word in text for word in words)]
    assert not any(case.found(word, "fts") for word in words)
    case.engine.restart(include_comments=True)
    case.engine.reconcile()
    assert all(case.found(word, "fts") for word in words)


def also_c27(case: Case) -> None:
    cjk = [one.text for one in case.chunks("cjk.md")]
    assert len(cjk) > 10
    assert all(text[-1] in "。！？" for text in cjk)
    assert len(case.note("bigprops.md").property_text) <= 20_000
    case.engine.embed()
    assert case.engine.space().coverage == 1.0
    assert max(map(len, case.engine.model.seen)) < 2 * SETTINGS.max_chars


def also_c29(case: Case) -> None:
    text = (case.folder / "vault" / "oneline.md").read_text(encoding="utf-8")
    tracemalloc.start()
    try:
        chunk.chunk(parse.parse(text, "oneline.md"), SETTINGS)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50 * len(text)


def also_c31(case: Case) -> None:
    assert [one.text for one in case.chunks("sketch.excalidraw.md")] == ["sketch"]
    assert [one.text for one in case.chunks("plan.excalidraw.md")] == ["Canal bypass route\n\nPumping station"]
    assert case.note("plan.excalidraw.md").tags == ("excalidraw",)
    assert case.found("sketch")[0] == "sketch.excalidraw.md"


def also_c33(case: Case) -> None:
    """Each section's citation is a link that Obsidian's rule takes back to exactly this section."""
    note = case.note("anchors.md")
    links = {hit.heading: hit.link for hit in case.engine.search("text loft")}
    assert set(links) == {heading.text for heading in note.headings}
    for heading in note.headings:
        (link,) = parse.parse(f"[[{links[heading.text]}]]", "x.md").links
        assert (link.target, link.block) == ("anchors", "")
        assert not set(link.heading) & set("#|^[]:")
        assert [one for one in note.headings if passage.anchor(one.text) == passage.anchor(link.heading)] == [heading]


def also_c36(case: Case) -> None:
    (unit,) = case.note("money.md").units
    assert (unit.kind, unit.start_line, unit.end_line) == ("math", 5, 8)
    assert case.found("25,000") == ["money.md"]
    assert any("$25,000 to $34,000" in one.text and "$6 more" in one.text for one in case.all_chunks())


def also_c39(case: Case) -> None:
    blocks = {block.id: block for block in case.note("blocks.md").blocks}
    assert (blocks["tbl"].start_line, blocks["tbl"].end_line) == (6, 8)
    assert blocks["q1"].start_line == 12
    links = [(link.target_path, link.block, link.embed) for link in case.engine.links("embed.md")]
    assert links == [("blocks.md", "tbl", True), ("blocks.md", "para1", True), (None, "nope", True)]
    assert not [one for one in case.chunks("blocks.md") if re.search(r"\^(?!code1)", one.text)]


def also_c41(case: Case) -> None:
    assert {problem.path for problem in case.engine.problems()} == {"latin1.md", "nul.md"}
    assert "Caf\ufffd" in case.chunks("latin1.md")[0].text


def also_c47(case: Case) -> None:
    told = [problem for problem in case.engine.status()["problems"] if problem["state"] == "conflict"]
    assert len(told) == 3 and all(problem["hint"] for problem in told)


def also_c89(case: Case) -> None:
    for line in ("C#", ".NET 8.0", "50%", "grammar::fa"):
        assert case.found(line, "fts") == ["terms.md"], line


def also_c91(case: Case) -> None:
    assert case.found("runs", "fts") == ["words.md"]
    case.engine.embed()
    for query in ("gerannt", "queue"):
        assert "words.md" in case.found(query), query


ALSO: dict[str, Callable[[Case], None]] = {
    name.removeprefix("also_").upper(): check for name, check in list(globals().items()) if name.startswith("also_")
}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_case(folder: Path, short_tmp: Path) -> None:
    engine = Engine(short_tmp, copy_of=folder / "vault" if (folder / "vault").is_dir() else None)
    with engine:
        engine.reconcile()
        case = Case(folder, engine)
        keys = [key for key in case.expect if key not in NO_CHECK]
        assert keys, "a case that checks nothing"
        for key in keys:
            CHECKS[key](case, case.expect[key])
        if case.expect["id"] in ALSO:
            ALSO[case.expect["id"]](case)
        engine.assert_vault_unchanged()


@pytest.mark.report("https://github.com/HKUDS/DeepTutor/issues/922")
def test_notes_are_read_under_a_locale_without_letters(vault: Path, daemon: Callable[..., Daemon]) -> None:
    (folder,) = CASES.glob("C41-*")
    for path in (folder / "vault").iterdir():
        (vault / path.name).write_bytes(path.read_bytes())
    (vault / "fünf.md").write_text("Schoner", encoding="utf-8")
    one = daemon(LC_ALL="C")
    wanted = json.loads((folder / "expect.json").read_text(encoding="utf-8"))["must_find"] | {"Schoner": "fünf.md"}
    for query, path in wanted.items():
        hits = one.client.post("/v1/search", {"query": query, "mode": "fts"})["hits"]
        assert [hit["path"] for hit in hits] == [path], query


@pytest.mark.parametrize(
    ("reply", "saved"),
    [
        ("a\n```py\nx", "a\n```py\nx\n```"),
        ("~~~~\n```\nx", "~~~~\n```\nx\n~~~~"),
        ("- a\n  ```\n  x\n\nprose", "- a\n  ```\n  x\n  ```\n\nprose"),
        ("> ```\n> x\nb", "> ```\n> x\n> ```\nb"),
        ("````\n```\n`````", "````\n```\n`````"),
        ("> | a |\r\n> |---|\r\n> | [[x|y]] ![[p\\|9]] |", "> | a |\n> |---|\n> | [[x\\|y]] ![[p\\|9]] |"),
        ("- [[a|b]]\n# [[c|d]]\n[[k|l]] | no table", "- [[a|b]]\n# [[c|d]]\n[[k|l]] | no table"),
        ("---\nx: y\n---\n", "---\nx: y\n---\n"),
        ("", ""),
    ],
)  # fmt: skip
@pytest.mark.report("https://github.com/zosmaai/pi-llm-wiki/issues/156")
def test_what_else_a_reply_may_hold(reply: str, saved: str) -> None:
    assert as_note_text(reply) == saved
    assert as_note_text(saved) == saved


def test_every_case_has_a_test() -> None:
    """As a folder, or as a function that is marked with the first of its reports."""
    as_folder = {folder.name.split("-")[0] for folder in FOLDERS}
    sources = "\n".join(path.read_text(encoding="utf-8") for path in Path(__file__).parents[1].rglob("test_*.py"))
    marked = set(re.findall(r'^ *@pytest\.mark\.report\("([^"]+)"\)$', sources, re.M))
    missing = {case for case, links in REPORTS.items() if case not in as_folder and links[0] not in marked}
    assert missing == set()
    assert marked <= {link for links in REPORTS.values() for link in links}
