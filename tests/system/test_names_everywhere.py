"""Every command that takes a note takes its path, name, alias or link; what is not there is answered with what is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tarsd.errors import EXIT_NO_DAEMON, EXIT_NOTHING, EXIT_OK
from tests.conftest import Daemon
from tests.support.engine import write
from tests.support.stub import Run

Start = Callable[..., Daemon]
CAKE = "Küche/Pflaumenkuchen.md"


@pytest.fixture
def german(vault: Path, home: Path, daemon: Start) -> Daemon:
    """A small vault with a note of several names, one that is left out, and a collection."""
    write(vault, CAKE, "---\ntitle: Zwetschgendatschi\naliases: [Omas Kuchen]\n---\nAuf Hefeteig, wie [[Hefeteig]].\n")
    write(vault, "Küche/Hefeteig.md", "Mehl, Milch und Hefe für den Pflaumenkuchen.\n")
    write(vault, "Vorlagen/Rezept leer.md", "Zutaten, Zubereitung.\n")
    write(vault, "Küche/Kuchen/Obst.md", "Ein Ordner, der wie ein Name klingt.\n")
    write(vault.parent / "arbeit", "Bericht.md", "Der Quartalsbericht über Hefe.\n")
    settings = f'[vault]\nexclude = ["Vorlagen/"]\n[[collection]]\nname = "arbeit"\npath = "{vault.parent}/arbeit"\n'
    (home / "config.toml").write_text(settings)
    return daemon()


@pytest.mark.usefixtures("german")
def test_a_note_is_known_by_every_name_it_has(run: Run, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(vault / "Küche")
    names = ["Pflaumenkuchen", "pflaumenkuchen.md", "Omas Kuchen", "Zwetschgendatschi", "[[Omas Kuchen|der Kuchen]]"]
    names += [
        "[[Pflaumenkuchen#Teig]]",
        CAKE,
        str(vault / CAKE),
        "Pflaumenkuchen.md",
        "„Omas Kuchen“",
        "KÜCHE/pflaumenkuchen",
    ]
    for name in names:
        code, out, err = run("why", name, "Hefeteig", "--json")
        assert (code, err, json.loads(out)["path"]) == (EXIT_OK, "", CAKE), name
        code, out, err = run("related", name, "--json")
        assert (code, err) == (EXIT_OK, ""), name
        assert json.loads(out)["hits"][0]["path"] == "Küche/Hefeteig.md", name
        code, out, err = run("reindex", name)
        assert (code, out.startswith("1 unchanged")) == (EXIT_OK, True), (name, out, err)
        assert run("ask", "--note", name, "Was für ein Teig?", "--json")[0] == EXIT_OK, name
    # as a shell without quotes hands it over
    assert run("related", "[[Omas", "Kuchen]]", "--json")[0] == EXIT_OK
    assert json.loads(run("why", "[[Omas", "Kuchen]]", "Hefe", "--json")[1])["path"] == CAKE
    assert run("why", "Omas Kuchen", "Hefe")[1].splitlines()[0] == CAKE, "which note is meant is said"
    code, out, _ = run("why", "Bericht", "Hefe", "--json")
    assert json.loads(out)["verdict"].startswith("Found")


@pytest.mark.usefixtures("german")
def test_a_note_that_is_left_out_is_never_called_missing(run: Run) -> None:
    for name in ("Rezept leer", "[[Rezept leer]]", "Vorlagen/Rezept leer", "Vorlagen/Rezept leer.md"):
        code, out, _ = run("why", name, "Zutaten")
        assert (code, "no note" in out) == (EXIT_OK, False), out
        assert "Vorlagen" in out.splitlines()[-1]
        code, _, err = run("related", name)
        assert (code, "is not in the index" in err) == (EXIT_NOTHING, True)


@pytest.mark.usefixtures("german")
def test_a_name_that_no_note_has_is_answered_with_one_like_it(run: Run) -> None:
    for name, meant in (
        ("Pflaumenkucehn", "Pflaumenkuchen"),
        ("[[Oma Kuchen]]", "Omas Kuchen"),
        ("Befeteig", "Hefeteig"),
    ):
        assert f"There is no note “{name}” in the vault. Did you mean “{meant}”?" in run("why", name, "x")[1]
        for command in ("related", "reindex"):
            code, _, err = run(command, name)
            assert (code, "Did you mean" in err and meant in err) == (EXIT_NOTHING, True), err
    assert "tarsd search finds them" in run("related", "Xylophon")[2]


def test_whose_vault_is_meant_is_said(run: Run, home: Path, vault: Path, tmp_path: Path) -> None:
    for command in (["status"], ["search", "x"], ["related", "x"], ["stop"], ["reindex"], ["memory"]):
        code, _, err = run(*command, "--vault", str(vault))
        assert (code, err.splitlines()[0]) == (EXIT_NO_DAEMON, f"No daemon is running for {vault}."), command
        code, _, err = run(*command, "--vault", str(tmp_path / "nowhere"))
        assert (code, err.splitlines()[0]) == (EXIT_NO_DAEMON, f"There is no folder {tmp_path}/nowhere."), command
    (home / "config.toml").write_text(
        f'[vault]\npath = "{tmp_path}/away"\n[[collection]]\nname = "w"\npath = "/gone"\n'
    )
    assert f"There is no folder {tmp_path}/away." in run("search", "x")[2]
    code, out, _ = run("config", "check")
    assert f"# vault.path: There is no folder {tmp_path}/away." in out
    assert "# collection w: There is no folder /gone." in out
    assert len(json.loads(run("config", "check", "--json")[1])["warnings"]) == 2


def test_a_command_that_is_misspelled_is_answered_with_one_like_it(run: Run) -> None:
    for typed, meant in (("serach", "search"), ("statsu", "status"), ("memroy", "memory"), ("relatd", "related")):
        assert f"No such command '{typed}'. Did you mean '{meant}'?" in run(typed, "x")[2]
    assert "Did you mean 'check'?" in run("config", "chekc")[2]
    assert "No such command 'xylophone'.\n" in run("xylophone")[2]
