"""The plan of a pass, and what must not leave this machine: pure, without a vault."""

from __future__ import annotations

import pytest

from tarsd.index.plan import in_scope, lost_too_much, main_folders, plan, trusted_stamp
from tarsd.parse import parse
from tarsd.parse.access import is_local_only
from tarsd.vault import FileInfo, Scan
from tests.unit.index.conftest import info, row


def scan_of(*files: FileInfo) -> Scan:
    return Scan({file.key: file for file in files}, (), True, frozenset())


def test_the_plan_names_what_differs_newest_first() -> None:
    rows = {r.key: r for r in (row("same"), row("longer", 9), row("touched", mtime=99), row("gone", 7), row("was", 5))}
    todo = plan(
        scan_of(info("same"), info("longer"), info("touched", mtime=101), info("new", mtime=300), info("was", 0)),
        rows,
        "c",
    )
    assert [one.path for one in todo.read] == ["new", "touched", "longer"]
    assert (todo.vanished, todo.unchanged, [one.path for one in todo.empty]) == ((("", "gone"),), 1, ["was"])


def test_another_chunker_or_a_full_pass_reads_everything() -> None:
    rows = {r.key: r for r in (row("a"), row("b"))}
    assert len(plan(scan_of(info("a"), info("b")), rows, "other").read) == 2
    assert len(plan(scan_of(info("a"), info("b")), rows, "c", full=True).read) == 2


def test_only_the_wanted_paths_can_vanish() -> None:
    rows = {r.key: r for r in (row("a/x"), row("a/b/y"), row("ab"), row("c"))}
    assert plan(scan_of(), rows, "c", scope={"a"}).vanished == (("", "a/x"), ("", "a/b/y"))
    assert in_scope("a", {"a"}) and in_scope("x", {""}) and in_scope("x", None) and not in_scope("ab", {"a"})


@pytest.mark.parametrize(
    ("known", "lost", "expected"),
    [(0, 0, False), (1, 1, True), (100, 100, True), (100, 60, True), (100, 50, False), (20, 19, False), (30, 21, True)],
)
def test_when_a_scan_is_not_believed(known: int, lost: int, expected: bool) -> None:
    assert lost_too_much(known, lost) == expected


def test_folders_that_hold_most_of_the_notes_are_known_at_any_depth() -> None:
    paths = [f"a/b/{n}.md" for n in range(6)] + ["a/x.md", "a/c/y.md", "z.md", "ab/z.md"]
    assert main_folders(paths) == {"": 10, "a/": 8, "a/b/": 6}
    assert main_folders(["a.md", "b/c.md"]) == {"": 2} and main_folders([]) == {"": 0}


def test_a_file_that_may_change_within_its_time_stamp_is_looked_at_again() -> None:
    now = 5_000_000_000_123
    at = {mtime: trusted_stamp(info("a", mtime=mtime)._replace(stamp=7), now) for mtime in (
        now - 1_000_000, now - 60_000_000, 4_999_000_000_000, now + 10**12
    )}  # fmt: skip
    assert list(at.values()) == [-1, 7, -1, 7]


@pytest.mark.parametrize(
    ("path", "tags", "expected"),
    [
        ("Private/a.md", (), True),
        ("private/deep/a.md", (), True),
        ("Privately.md", (), False),
        ("x/Private/a.md", (), True),
        ("x/Privately/a.md", (), False),
        ("a.md", ("Secret",), True),
        ("a.md", ("secret/deep",), True),
        ("a.md", ("secrets",), False),
    ],
)
def test_what_must_not_leave_this_machine(path: str, tags: tuple[str, ...], expected: bool) -> None:
    note = parse("".join(f"#{tag} " for tag in tags), path)
    assert is_local_only(path, note, ("Private/", "#secret")) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *(
            (yes, True)
            for yes in ("true", "True", "tRuE", '"true"', "'yes'", "yes", "1", '"1"', "on", "y", "yes please")
        ),
        *((yes, True) for yes in ("[true]", "\n  - true", "{{private}}", "true # always")),
        *((no, False) for no in ("false", "FALSE", '"false"', "no", "No", "off", "0", '"0"', "", "null", "~", '""')),
        *((no, False) for no in ("[]", "false # true one day", "{}")),
    ],
)
@pytest.mark.parametrize("key", ["local_only", "local-only", "Local_Only", '"local only"', "localOnly"])
def test_a_note_may_say_itself_that_it_must_not_leave(key: str, value: str, expected: bool) -> None:
    text = f"---\ntitle: x\n{key}: {value}\n---\ntext"
    assert is_local_only("a.md", parse(text, "a.md"), (), text) == expected


def test_of_a_mark_that_stands_twice_the_closed_one_counts() -> None:
    for text in ("local_only: true\nlocal_only: false", "local_only: no\nlocal-only: yes"):
        text = f"---\n{text}\n---\n"
        assert is_local_only("a.md", parse(text, "a.md"), (), text)
    text = "---\nnote: |\n  local_only: true\n---\nlocal_only: true\n"
    assert not is_local_only("a.md", parse(text, "a.md"), (), text)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("tags: [work, private", True),
        ("tags: [work, Private/health\nx: y", True),
        ("tags: private: x", True),
        ("\ttags: [private]", True),
        ("title: a: b\ntags: private", True),
        ("title: 'open\ntags:\n  - private", True),
        ("tags: #private", True),
        ("tags: {private}", True),
        ("tags: {private: yes}", True),
        ("tags:\n  - work # private", True),
        ('x: "\nlocal_only: true', True),
        ("x: [\n  local_only: 'true", True),
        ("tags: [work, privately", False),
        ("tags: [work/private", False),
        ("tags: [non-private", False),
        ("title: [open\nlocal_only: false", False),
        ("title: a private matter", False),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("closed", [True, False])
def test_a_mark_in_properties_that_cannot_be_read_counts(block: str, expected: bool, end: str, closed: bool) -> None:
    rows = ["---", *block.split("\n"), *(["---"] if closed else []), "", "a private life"]
    text = end.join(rows)
    assert is_local_only("a.md", parse(text, "a.md"), ("#private", "#secret/"), text) == expected
    assert not is_local_only("a.md", parse(text, "a.md"), ("#other", "#"), text) or "local_only" in block


def test_words_that_are_no_tags_are_no_mark() -> None:
    for block in ("Some private prose", "tags: [work]\ntitle: a private matter\nabout: private", "tags: non-private"):
        text = f"---\n{block}\n---\n\nmore of it"
        assert not is_local_only("a.md", parse(text, "a.md"), ("#private",), text)


def test_a_private_line_of_our_own_lists_keeps_the_list_here() -> None:
    ours = "---\ntars: memory\n---\n- a %% 2026-11-28 · c-1 · private %%\n- b %% 2026-11-28 %%\n"
    theirs = "# Mine\n- a %% private %%\n"
    assert is_local_only("tars/Memory.md", parse(ours, "tars/Memory.md"), (), ours)
    assert not is_local_only("tars/Memory.md", parse(ours, "tars/Memory.md"), (), ours.replace("· private", ""))
    for mark in ("%% Private · c-1 · 2026-11-28 %%", "<!-- c-1, PRIVATE -->", "%%\n2026-11-28\nprivate\n%%"):
        marked = ours.replace("%% 2026-11-28 · c-1 · private %%", mark)
        assert is_local_only("tars/Memory.md", parse(marked, "tars/Memory.md"), (), marked), mark
    assert not is_local_only("a.md", parse(theirs, "a.md"), (), theirs)
