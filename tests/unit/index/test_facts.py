"""Passes over a vault keep what notes say as data, but of templates and of our own notes."""

from __future__ import annotations

from tests.unit.index.conftest import Bench


def data(bench: Bench) -> dict[str, tuple[list[object], list[str]]]:
    """By path the values and the tasks of the notes that have any."""
    paths = {row.id: row.path for row in bench.store.notes.titles()}
    facts, tasks = bench.store.facts.of(), bench.store.facts.tasks()
    return {
        paths[note]: ([fact.value for fact in facts.get(note, ())], [task.text for task in tasks.get(note, ())])
        for note in sorted({*facts, *tasks})
    }


def test_data_follows_its_note(bench: Bench) -> None:
    bench.write("a.md", "---\nrating: 5\n---\n- [ ] one\n")
    bench.write("b.md", "mood:: 4\n")
    bench.run()
    assert data(bench) == {"a.md": ([5], ["one"]), "b.md": (["4"], [])}
    bench.write("a.md", "---\nrating: 4\n---\n- [x] one\n- [ ] two\n", age=5)
    (bench.root / "b.md").rename(bench.root / "c.md")
    bench.run()
    assert data(bench) == {"a.md": ([4], ["one", "two"]), "c.md": (["4"], [])}
    (bench.root / "a.md").unlink()
    bench.run()
    assert data(bench) == {"c.md": (["4"], [])}


def test_templates_hold_no_data_and_are_read_again_when_their_folder_is_another(bench: Bench) -> None:
    text = "---\nrating: 5\n---\n- [ ] a 📅 {{date}}\n\nwhen:: 2026-02-30\n"
    for path in ("Templates/Book.md", "Forms/Day.md", "n.md"):
        bench.write(path, text)
    settings = bench.root / ".obsidian"
    settings.mkdir(exist_ok=True)
    (settings / "templates.json").write_text('{"folder": "Templates"}')
    (settings / "daily-notes.json").write_text('{"template": "Forms/Day"}')
    bench.run()
    assert list(data(bench)) == ["n.md"]
    assert [(problem.path, problem.line) for problem in bench.store.problems()] == [("n.md", 4), ("n.md", 6)]
    (settings / "templates.json").write_text('{"folder": "Elsewhere"}')
    bench.run()
    assert sorted(data(bench)) == ["Templates/Book.md", "n.md"]


def test_a_value_that_looks_like_a_date_and_is_none_is_a_problem_of_its_note_once(bench: Bench) -> None:
    bench.write("a.md", "---\nborn: 1991-13-40\nseen: '31.02.2026'\n---\nmet:: 0000-01-01\nok:: 2026-01-01\n")
    bench.run()
    found = [(problem.line, problem.reason) for problem in bench.store.problems()]
    assert [line for line, _ in found] == [2, 3, 5]
    assert "'seen'" in found[1][1] and "'met'" in found[2][1]


def test_notes_that_the_daemon_wrote_hold_no_data(bench: Bench) -> None:
    bench.write("tars/m.md", "---\ntars: memory\nrating: 5\n---\n- [ ] a\n")
    bench.run()
    assert data(bench) == {}
