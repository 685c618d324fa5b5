"""The command `plugin`: three files get into a vault and nothing else, and those that come with tarsd are whole."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import tarsd
from tarsd.cli import plugin
from tarsd.errors import EXIT_CONFIG, EXIT_NOTHING, EXIT_OK, EXIT_REFUSED
from tests.support.engine import contents, write
from tests.support.stub import Run, Stub

Spoil = Callable[[Path, str], None]


@pytest.fixture
def built(tmp_path: Path) -> Path:
    folder = tmp_path / "built"
    write(folder, "main.js", "new code")
    write(folder, "styles.css", "new style")
    write(folder, "manifest.json", json.dumps({"id": "tarsd", "version": "1.2.3"}))
    write(folder, "data.json", "not for others")
    return folder


def test_the_three_files_are_copied_and_nothing_else(run: Run, vault: Path, built: Path) -> None:
    folder = vault / ".obsidian" / "plugins" / "tarsd"
    code, out, _ = run("plugin", "install", "--vault", str(vault), "--from", str(built))
    assert code == EXIT_OK
    assert out == f"Tarsd 1.2.3 is in {folder}.\n{plugin.ENABLE}\n"
    assert sorted(contents(vault)) == sorted(f".obsidian/plugins/tarsd/{name}" for name in plugin.FILES)
    assert (folder / "main.js").read_text() == "new code"


def test_an_older_one_is_brought_up_to_date_and_keeps_its_settings(run: Run, vault: Path, built: Path) -> None:
    folder = vault / ".obsidian" / "plugins" / "tarsd"
    for name in ("main.js", "styles.css", "data.json"):
        write(folder, name, "old")
    write(folder, "manifest.json", json.dumps({"id": "tarsd", "version": "0.9.0"}))
    write(vault, ".obsidian/community-plugins.json", '["dataview", "tarsd"]')
    code, out, _ = run("plugin", "status", "--vault", str(vault))
    assert (code, out) == (EXIT_OK, f"Tarsd 0.9.0 is in {folder}, enabled.\n")
    code, out, _ = run("plugin", "install", "--vault", str(vault), "--from", str(built))
    assert (code, out) == (EXIT_OK, f"Tarsd 1.2.3 is in {folder} (before: 0.9.0).\n{plugin.AGAIN}\n")
    assert {path.name: path.read_text() for path in folder.iterdir() if path.name != "manifest.json"} == {
        "main.js": "new code",
        "styles.css": "new style",
        "data.json": "old",
    }
    again = json.loads(run("plugin", "install", "--vault", str(vault), "--from", str(built), "--json")[1])
    assert again == {
        "installed": "1.2.3",
        "before": "1.2.3",
        "copied": True,
        "enabled": True,
        "folder": str(folder),
    }


def test_where_it_is_not_installed(run: Run, vault: Path) -> None:
    code, out, err = run("plugin", "--vault", str(vault))
    assert (code, out) == (EXIT_NOTHING, f"The plugin is not installed in {vault}.\n")
    assert "tarsd plugin install" in err
    code, out, _ = run("plugin", "status", "--vault", str(vault), "--json")
    assert code == EXIT_NOTHING
    assert json.loads(out)["installed"] is None


def test_the_configured_vault_or_the_one_of_the_daemon(
    run: Run, stub: Stub, vault: Path, built: Path, home: Path
) -> None:
    assert run("plugin", "install", "--from", str(built))[0] == EXIT_OK
    assert (vault / ".obsidian/plugins/tarsd/main.js").exists()
    other = home / "other"
    (other / ".obsidian").mkdir(parents=True)
    write(home, "config.toml", f'[vault]\npath = "{other}"\n')
    assert run("plugin", "install", "--from", str(built))[0] == EXIT_OK
    assert (other / ".obsidian/plugins/tarsd/main.js").exists()


def test_without_any_vault_it_says_so(run: Run, built: Path) -> None:
    assert run("plugin", "install", "--from", str(built))[0] == EXIT_CONFIG


@pytest.mark.parametrize(
    ("breaks", "said"),
    [
        (lambda vault, built: shutil.rmtree(vault), "There is no folder"),
        (lambda vault, built: (vault / ".obsidian").rmdir(), "is not an Obsidian vault yet"),
        (lambda vault, built: (built / "main.js").unlink(), "does not contain the plugin"),
        (lambda vault, built: write(built, "manifest.json", '{"id": "other", "version": "1"}'), "does not contain"),
        (lambda vault, built: write(built, "manifest.json", "{"), "does not contain the plugin"),
        (lambda vault, built: write(vault, ".obsidian/plugins", "a file"), "cannot be written"),
        (
            lambda vault, built: ((built / "main.js").unlink(), write(built, "package.json", "{}")),
            "is not built.\nRun: cd",
        ),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence(
    run: Run, vault: Path, built: Path, breaks: object, said: str
) -> None:
    assert callable(breaks)
    breaks(vault, built)
    before = contents(vault)
    code, out, err = run("plugin", "install", "--vault", str(vault), "--from", str(built))
    assert (code, out) in ((EXIT_REFUSED, ""), (EXIT_NOTHING, ""))
    assert said in err.replace(f"{os.linesep}", "\n")
    assert contents(vault) == before


def test_a_folder_that_is_linked_to_the_source_is_left_alone(run: Run, vault: Path, built: Path) -> None:
    (vault / ".obsidian" / "plugins").mkdir()
    (vault / ".obsidian" / "plugins" / "tarsd").symlink_to(built)
    before = contents(built)
    code, out, _ = run("plugin", "install", "--vault", str(vault), "--from", str(built))
    assert (code, "nothing to copy" in out) == (EXIT_OK, True)
    assert contents(built) == before


def test_without_a_name_those_are_taken_that_came_with_tarsd(
    run: Run, vault: Path, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tarsd, "__file__", str(tmp_path / "site" / "tarsd" / "__init__.py"))
    code, _, err = run("plugin", "install", "--vault", str(vault))
    assert (code, "came without the plugin's files" in err) == (EXIT_NOTHING, True)
    shutil.copytree(built, tmp_path / "site" / "tarsd" / "data" / "plugin")
    assert run("plugin", "install", "--vault", str(vault))[1].startswith("Tarsd 1.2.3 is in")


@pytest.mark.parametrize(
    ("here", "newer"),
    [("1.2.2", True), ("1.2.3", False), ("1.2.3-beta", False), ("1.10.0", False), ("", True), (5, True), ("1.2", True)],
)
def test_it_says_when_a_newer_one_came_with_tarsd(
    run: Run, vault: Path, built: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, here: object, newer: bool
) -> None:
    monkeypatch.setattr(tarsd, "__file__", str(tmp_path / "site" / "tarsd" / "__init__.py"))
    shutil.copytree(built, tmp_path / "site" / "tarsd" / "data" / "plugin")
    folder = vault / ".obsidian" / "plugins" / "tarsd"
    shutil.copytree(built, folder)
    write(folder, "manifest.json", json.dumps({"id": "tarsd", "version": here}))
    code, out, err = run("plugin", "status", "--vault", str(vault))
    assert (code, out.endswith(f" is in {folder}, not enabled.\n")) == (EXIT_OK, True)
    assert err == ("Version 1.2.3 came with tarsd: tarsd plugin install\n" if newer else "")


@pytest.mark.parametrize(
    "version",
    [None, 5, {"a": 1}, "", "1", "1.2", "1.2.3.4", "v1.2.3", "1.2.3\n", "\x1b[31m1.2.3", "१.२.३", "9" * 99 + ".0.0"],
)
def test_a_version_that_is_none(run: Run, vault: Path, built: Path, version: object) -> None:
    write(built, "manifest.json", json.dumps({"id": "tarsd", "version": version}))
    code, out, err = run("plugin", "install", "--vault", str(vault), "--from", str(built))
    assert (code, out) == (EXIT_REFUSED, "")
    assert err == f"{built}/manifest.json has no version such as 1.2.3.\nGet the plugin's files again.\n"
    assert contents(vault) == {}
    folder = vault / ".obsidian" / "plugins" / "tarsd"
    shutil.copytree(built, folder)
    code, out, _ = run("plugin", "status", "--vault", str(vault))
    assert (code, out) == (EXIT_OK, f"Tarsd, unknown version is in {folder}, not enabled.\n")
    write(built, "manifest.json", json.dumps({"id": "tarsd", "version": "1.2.3"}))
    assert "(before: unknown)" in run("plugin", "install", "--vault", str(vault), "--from", str(built))[1]


def pipe(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)


def endless(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")


def huge(folder: Path, name: str) -> None:
    os.truncate(folder / name, 1 << 40)  # a hole, that takes no space


@pytest.mark.parametrize("name", plugin.FILES)
@pytest.mark.parametrize("spoil", [pipe, endless, huge])
def test_what_would_never_end_is_not_read(run: Run, vault: Path, built: Path, name: str, spoil: Spoil) -> None:
    spoil(built, name)
    code, out, err = run("plugin", "install", "--vault", str(vault), "--from", str(built))
    assert (code in (EXIT_REFUSED, EXIT_NOTHING), out) == (True, "")
    assert err in (
        f"{built} does not contain the plugin.\nIt should contain main.js, styles.css, manifest.json.\n",
        f"{built}/{name} cannot be read: File too large.\n"
        "Check its owner and permissions, or get the plugin's files again.\n",
    )
    assert contents(vault) == {}


@pytest.mark.parametrize("spoil", [pipe, endless, huge])
def test_what_lies_in_the_vault_may_be_anything(run: Run, vault: Path, built: Path, spoil: Spoil) -> None:
    folder = vault / ".obsidian" / "plugins" / "tarsd"
    shutil.copytree(built, folder)
    write(vault, ".obsidian/community-plugins.json", "[]")
    spoil(vault / ".obsidian", "community-plugins.json")
    spoil(folder, "manifest.json")
    code, out, _ = run("plugin", "status", "--vault", str(vault))
    assert (code, out) == (EXIT_NOTHING, f"The plugin is not installed in {vault}.\n")
    code, out, _ = run("plugin", "install", "--vault", str(vault), "--from", str(built))
    assert (code, out) == (EXIT_OK, f"Tarsd 1.2.3 is in {folder}.\n{plugin.ENABLE}\n")
    assert json.loads((folder / "manifest.json").read_text())["version"] == "1.2.3"


def test_what_comes_with_tarsd_is_whole(run: Run, vault: Path) -> None:
    own = Path(tarsd.__file__).parent / "data" / "plugin"
    assert sorted(path.name for path in own.iterdir()) == sorted(plugin.FILES)
    code, out, _ = run("plugin", "install", "--vault", str(vault), "--json")
    assert (code, json.loads(out)["installed"]) == (EXIT_OK, tarsd.__version__)
    folder = vault / ".obsidian" / "plugins" / "tarsd"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        path.name: path.read_bytes() for path in own.iterdir()
    }
    code, out, err = run("plugin", "status", "--vault", str(vault))
    assert (code, out, err) == (EXIT_OK, f"Tarsd {tarsd.__version__} is in {folder}, not enabled.\n", "")
