"""The runner of the checks, and the checks of the program and its settings."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tarsd import doctor
from tarsd.doctor import CHECKS, DoctorContext, examine, program
from tarsd.doctor.finding import Check, Finding, Skip, fault, ok
from tarsd.errors import NotFound
from tests.support.engine import write
from tests.support.stub import Stub
from tests.system.doctor.conftest import ROOT, Start, checks, keyed, look, one, well


def test_whatever_a_check_does_it_is_a_line() -> None:
    def skips(subject: DoctorContext) -> Any:
        raise Skip("There is nothing.")

    def fails(subject: DoctorContext) -> Any:
        yield ok("So far.")
        raise NotFound("It is gone.", "Look for it.")

    def breaks(subject: DoctorContext) -> Any:
        raise ZeroDivisionError("of a note's text")

    def leaves(subject: DoctorContext) -> Any:
        sys.exit(3)

    lines = list(examine(DoctorContext(), checks(skips, fails, breaks, leaves, lambda subject: fault("No.", "Yes."))))
    assert [(line.name, line.state, line.text, line.hint) for line in lines] == [
        ("check 0", "skipped", "There is nothing.", ""),
        ("check 1", "ok", "So far.", ""),
        ("check 1", "fault", "It is gone.", "Look for it."),
        ("check 2", "fault", "This check failed by itself (ZeroDivisionError).", lines[3].hint),
        ("check 3", "fault", "This check failed by itself (SystemExit).", lines[3].hint),
        ("check 4", "fault", "No.", "Yes."),
    ]
    assert "--report" in lines[3].hint and all((line.ms or 0) >= 0 for line in lines)


def test_what_hangs_is_left_behind_and_all_of_it_ends() -> None:
    def hangs(subject: DoctorContext) -> Any:
        time.sleep(3600)

    started = time.monotonic()
    lines = list(
        examine(DoctorContext(), checks(hangs, seconds=0.1) + checks(lambda subject: ok("Here."), hangs), seconds=0.5)
    )
    assert [line.state for line in lines] == ["fault", "ok", "fault"]
    assert "did not finish within 0 s" in lines[0].text
    assert [line.state for line in examine(DoctorContext(), checks(hangs), seconds=-1.0)] == ["skipped"]
    assert time.monotonic() - started < 60


def test_all_checks_together_cannot_take_longer_than_a_minute() -> None:
    assert doctor.TOTAL_S < 60
    names = [(check.group, check.name) for check in CHECKS]
    assert len(set(names)) == len(names)
    groups = list(dict.fromkeys(group for group, _ in names))
    assert groups == [group for index, group in enumerate(groups) if group not in groups[:index]]


# ------------------------------------------------------------------------------------------------ the program


def test_python_is_told_by_its_real_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    line = one(DoctorContext(), "Program", "Python")
    assert well(line) and os.path.realpath(sys.executable) in line.text
    shim = tmp_path / ".pyenv" / "shims" / "python"
    shim.parent.mkdir(parents=True)
    shim.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(shim))
    line = one(DoctorContext(), "Program", "Python")
    assert line.state == "warning" and str(shim) in line.text and os.path.realpath(shim) in line.hint
    monkeypatch.setattr(program, "OLDEST", (99, 0))
    assert one(DoctorContext(), "Program", "Python").state == "fault"
    assert program._origin("/home/ada/.local/share/uv/python/cpython-3.12/bin/python3.12") == " (of uv)"


def test_sqlite_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    assert well(one(DoctorContext(), "Program", "SQLite"))
    import sqlite_vec

    from tarsd.store import examine as store

    monkeypatch.setattr(sqlite_vec, "loadable_path", lambda: "/nowhere/vec0")
    line = one(DoctorContext(), "Program", "SQLite")
    assert (line.state, "in memory" in line.text, "sqlite-vec" in line.hint) == ("warning", True, True)
    monkeypatch.setattr(store, "_keywords", lambda db: "")
    assert one(DoctorContext(), "Program", "SQLite").state == "fault"


def test_every_package_is_imported_elsewhere(
    packages: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    packages("quorl", "")
    assert one(DoctorContext(), "Program", "packages").text == "All 2 packages can be imported."
    packages("quorl", "raise ImportError('made for another machine')")
    line = one(DoctorContext(), "Program", "packages")
    assert line.state == "fault" and "quorl cannot be imported: ImportError: made for another machine" in line.text
    assert line.hint.endswith("quorl")
    packages("quorl", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    assert "killed by SIGILL" in one(DoctorContext(), "Program", "packages").text
    packages("quorl", "import time; time.sleep(3600)")
    line = program.packages(DoctorContext(patience=0.2))
    assert line.state == "warning" and "it was at quorl" in line.text
    monkeypatch.setattr(metadata, "requires", lambda package: ["nonesuch-thing>=1"])
    assert one(DoctorContext(), "Program", "packages").text == "Not installed: nonesuch-thing."


def test_large_packages_are_imported_by_a_thorough_look_alone(
    packages: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    packages("quorl", "raise ImportError('broken')")
    monkeypatch.setitem(program.COMPILED, "quorl", ["json"])
    line = one(DoctorContext(), "Program", "packages")
    assert well(line) and "--all" in line.text
    assert "quorl cannot be imported" in one(DoctorContext(thorough=True), "Program", "packages").text
    monkeypatch.setitem(program.COMPILED, "quorl", ["nonesuch_part"])
    assert "quorl cannot be imported" in one(DoctorContext(), "Program", "packages").text
    monkeypatch.undo()
    wanted = {re.split(r"[^\w.-]", requirement)[0] for requirement in metadata.requires("tarsd") or []}
    assert set(program.COMPILED) <= wanted


def test_what_takes_long_runs_beside_the_others() -> None:
    met = threading.Event()
    early = Check("A", "early", lambda subject: ok("yes" if met.wait(30) else "no"), 60, ahead=True)

    def let_go(subject: DoctorContext) -> Finding:
        met.set()
        return ok("early was not waited for")

    last = Check("A", "last", let_go)
    found = list(examine(DoctorContext(), (last, early)))
    assert [(line.name, line.text) for line in found] == [("last", "early was not waited for"), ("early", "yes")]
    begun: list[str] = []

    def note(name: str) -> Callable[[DoctorContext], Finding]:
        def look(subject: DoctorContext) -> Finding:
            begun.append(name)
            return ok(name)

        return look

    found = list(examine(DoctorContext(), (Check("A", "one", note("one")), Check("A", "two", note("two"), ahead=True))))
    assert [line.name for line in found] == ["one", "two"], "in the order of the list"
    assert sorted(begun) == ["one", "two"], "each once"


def test_how_it_is_installed_says_how_it_is_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    assert program._reinstall("apsw").endswith("-m pip install --force-reinstall apsw")
    monkeypatch.setattr(sys, "prefix", "/home/ada/.local/share/uv/tools/tarsd")
    assert program._reinstall("apsw") == "uv tool install --reinstall tarsd"
    monkeypatch.setattr(sys, "prefix", "/home/ada/.local/share/pipx/venvs/tarsd")
    assert program._reinstall("apsw") == "pipx reinstall tarsd"


def test_the_models_in_the_package_are_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert well(one(DoctorContext(), "Program", "own models"))
    write(tmp_path / "site", "onnxruntime.py", "raise ImportError('no such instruction')")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'site'}:{ROOT}")
    line = one(DoctorContext(), "Program", "own models")
    assert line.state == "fault" and "minilm" in line.text and "no such instruction" in line.text


# ------------------------------------------------------------------------------------------------ the settings


def test_settings_without_a_fault(home: Path, vault: Path) -> None:
    assert "does not exist" in one(DoctorContext(vault), "Settings", "file").text
    write(home, "config.toml", f'[vault]\npath = "{vault}"\n')
    assert well(one(DoctorContext(), "Settings", "file"))


def test_every_fault_of_the_settings_is_a_line(home: Path, vault: Path) -> None:
    write(home, "config.toml", f'[vault]\npath = "{vault}"\nfolder = "x"\n[chat]\nmodel = "gpt"\n')
    subject = DoctorContext()
    lines = look(subject, "Settings", "file")
    assert [line.state for line in lines] == ["fault", "fault"]
    assert "vault.folder" in lines[0].text and "chat.model" in lines[1].text
    assert [line.public for line in lines] == ["An error on line 3.", "An error on line 5."]
    assert subject.config.vault == vault, "the vault is known all the same"


@pytest.mark.parametrize("what", ["no TOML", "a pipe", "bytes"])
def test_a_config_that_cannot_be_read_keeps_nobody_waiting(home: Path, vault: Path, what: str) -> None:
    if what == "a pipe":
        os.mkfifo(home / "config.toml")
    else:
        write(home, "config.toml", b"[vault" if what == "no TOML" else b"\xff\xfe\x00")
    line = one(DoctorContext(), "Settings", "file")
    assert line.state == "fault" and str(home) in line.text
    assert look(DoctorContext(vault), "Settings", "file")[0].state == "fault"


def test_without_any_vault_it_says_how_to_name_one(home: Path) -> None:
    subject = DoctorContext()
    assert "tarsd init" in one(subject, "Settings", "file").text
    assert one(subject, "Vault", "folder").state == "skipped"
    assert one(subject, "Daemon", "answers").state == "skipped"


def test_the_only_daemon_says_which_vault_is_meant(daemon: Start, vault: Path) -> None:
    daemon()
    subject = DoctorContext()
    assert well(one(subject, "Settings", "file")) and subject.config.vault == vault
    assert well(one(subject, "Daemon", "answers"))


def test_places_that_others_may_open_are_faults(subject: DoctorContext, home: Path) -> None:
    paths = subject.config.paths
    for folder in (paths.state.parent, paths.state, paths.logs):
        folder.mkdir(mode=0o700)
    for file in (paths.lock, home / "keys.json", paths.config_file):
        file.touch(mode=0o600)
    assert well(one(subject, "Settings", "access"))
    paths.logs.chmod(0o750)
    (home / "keys.json").chmod(0o644)
    paths.config_file.chmod(0o666)
    lines = {line.hint: line for line in look(subject, "Settings", "access")}
    assert set(lines) == {
        f"chmod 700 {paths.logs}",
        f"chmod 600 {home / 'keys.json'}",
        f"chmod 644 {paths.config_file}",
    }
    assert {line.state for line in lines.values()} == {"fault"}
    assert "write to" in lines[f"chmod 644 {paths.config_file}"].text
    for command in lines:
        subprocess.run(command, shell=True, check=True)
    assert well(one(subject, "Settings", "access"))


def test_a_home_that_cannot_be_written_to_is_named(
    vault: Path, short_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for made in ((), (".cache",), (".cache/tarsd", ".local/state")):
        home = short_tmp / f"home{len(made)}"
        for name in made:
            (home / name).mkdir(parents=True)
            (home / name).chmod(0o700)
        home.mkdir(exist_ok=True)
        env = {"HOME": str(home)}
        for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "TARSD_HOME"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", str(home))
        context = DoctorContext(vault, env)
        context.settle()
        assert well(one(context, "Settings", "access"))
        with monkeypatch.context() as patch:  # whoever runs this may be root, who can write everywhere
            patch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
            lines = look(context, "Settings", "access")
        assert {line.state for line in lines} == {"fault"}
        (of_home,) = [line for line in lines if line.text.startswith(f"{home} is read-only.")]
        assert "TARSD_HOME" in of_home.hint
        assert str(home) not in str(of_home.public)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_places_of_another_user_are_faults(subject: DoctorContext) -> None:
    logs = subject.config.paths.logs
    logs.mkdir(mode=0o700)
    os.chown(logs, 12345, -1)
    assert "belongs to another user" in one(subject, "Settings", "access").text


def test_keys_are_asked_for_and_never_shown(home: Path, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert one(keyed(home, vault, ""), "Settings", "keys").text == "The settings need none."
    settings = '[chat]\nmodel = "anthropic:claude"\nfallback = "openai:gpt"\n[http]\nenabled = true\n'
    lines = look(keyed(home, vault, settings), "Settings", "keys")
    assert [line.hint for line in lines] == ["tarsd key set anthropic", "tarsd key set openai", "tarsd token"]
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret-1")
    write(home, "keys.json", json.dumps({"openai": "sk-secret-2", "tcp": "sk-secret-3"})).chmod(0o600)
    lines = look(keyed(home, vault, settings), "Settings", "keys")
    assert [line.state for line in lines] == ["ok"] * 3
    assert "a service does not see it" in lines[0].text and str(home / "keys.json") in lines[1].text
    assert "sk-secret" not in "".join(str(line) for line in lines)
    (home / "keys.json").chmod(0o644)
    assert look(keyed(home, vault, settings), "Settings", "keys")[-1].hint.startswith("Run: chmod 600")


def test_a_server_of_ones_own_needs_no_key(home: Path, vault: Path) -> None:
    settings = '[chat]\nmodel = "openai:qwen"\n[openai]\nbase_url = "http://127.0.0.1:8080/v1"\n'
    assert well(one(keyed(home, vault, settings), "Settings", "keys"))


@pytest.mark.parametrize(
    ("reply", "state", "words"),
    [
        ({"state": "ready", "models": [{"id": "ollama:qwen3:4b"}]}, "ok", "chat ollama:qwen3:4b"),
        ({"state": "ready", "models": []}, "ok", "chat ollama:qwen3:4b"),
        ({"state": "ready", "models": [{"id": "ollama:other"}]}, "warning", "is not among the 1 model"),
        ({"state": "unreachable", "reason": "Ollama does not answer.", "hint": "Start it."}, "warning", "not answer"),
    ],
)
def test_models_that_are_named_are_looked_for(
    home: Path, stand_in: Stub, vault: Path, reply: dict[str, Any], state: str, words: str
) -> None:
    subject = keyed(home, vault, '[chat]\nmodel = "ollama:qwen3:4b"\n')
    stand_in.replies["GET /v1/models"] = {"providers": [{"provider": "ollama", **reply}]}
    line = one(subject, "Models", "names")
    assert (line.state, words in line.text) == (state, True)
    subject.model = False
    assert one(subject, "Models", "names").state == "skipped"
