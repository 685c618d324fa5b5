"""The command `doctor`, and the report that holds nothing private."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tarsd import doctor
from tarsd.doctor import CHECKS, DoctorContext
from tarsd.errors import EXIT_OK, EXIT_REFUSED, EXIT_USAGE
from tests.support.doubles.openai import OpenAIDouble
from tests.support.doubles.script import Say
from tests.support.engine import write
from tests.support.screen import CODES, Screen
from tests.support.stub import Run
from tests.system.doctor.conftest import Start

PATIENT = """
import functools
from tarsd import doctor
doctor.DoctorContext = functools.partial(doctor.DoctorContext, patience=50)
"""
"""In another process no check is late: a machine that does much else takes long for each."""

QUICK = tuple(check for check in CHECKS if check.name not in ("packages", "own models"))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the checks that start another Python."""
    monkeypatch.setattr(doctor.examine, "__defaults__", (QUICK,))


def test_json_and_exit_codes(run: Run, quick: None, daemon: Start, subject: DoctorContext, vault: Path) -> None:
    code, out, err = run("doctor", "--vault", str(vault), "--json")
    reply = json.loads(out)
    assert (code, reply["ok"], err, set(reply)) == (EXIT_REFUSED, False, "", {"ok", "checks"})
    assert {tuple(line) for line in reply["checks"]} == {("group", "name", "state", "text", "hint", "ms")}
    assert [line["name"] for line in reply["checks"] if line["state"] == "fault"] == ["answers"]
    daemon()
    code, out, _ = run("doctor", "--vault", str(vault), "--json", "--no-model")
    assert (code, json.loads(out)["ok"]) == (EXIT_OK, True)
    write(vault, "Bad.md", "---\na: [\n---\n")
    subject.client(10).post("/index")
    code, out, _ = run("doctor", "--vault", str(vault))
    assert (code, "1 warning." in out) == (EXIT_OK, True), "warnings are no fault"


def test_it_ends_with_four_wherever_nothing_is_right(run: Run, quick: None, home: Path) -> None:
    write(home, "config.toml", "[vault")
    code, out, err = run("doctor")
    assert (code, err) == (EXIT_REFUSED, "") and "Traceback" not in out and "1 fault." in out


@pytest.mark.parametrize("width", [60, 96])
def test_it_fits_the_terminal(home: Path, subject: DoctorContext, vault: Path, width: int) -> None:
    write(vault, "A note with quite a long name (conflicted copy 2026-01-01).md", "x")
    with Screen(["doctor", "--all", "--vault", str(vault)], before=PATIENT, COLUMNS=str(width)) as screen:
        assert screen.end() == EXIT_REFUSED
    rows = [CODES.sub("", row.rpartition("\x1b[K")[2]).rstrip() for row in screen.raw.split("\n")]
    assert [row for row in rows if len(row) > width and not row.strip().startswith("tarsd run")] == []
    assert max(map(len, rows)) > width - 20, "it uses the width that there is"
    assert re.search(r"\x1b\[31m✗\x1b\[0m answers", screen.raw) and "\x1b[32m✓" in screen.raw
    assert rows.count("Vault") == 1 and rows[-2:] == ["1 fault and 1 warning.", ""]
    assert not [row for row in rows if row.startswith("  …")], "what was waited for is gone"


def test_what_is_fine_is_counted_and_what_is_wrong_is_shown(
    run: Run, quick: None, daemon: Start, subject: DoctorContext, vault: Path
) -> None:
    code, out, _ = run("doctor", "--vault", str(vault))
    rows = out.splitlines()
    assert code == EXIT_REFUSED
    assert [row.split()[1] for row in rows if row.startswith("  ✗")] == ["answers"]
    assert "✓" not in out and "–" not in out and " ms" not in out
    assert re.fullmatch(r"\d+ checks are fine, \d+ skipped\. To see them: tarsd doctor --all", rows[-2])
    assert rows[-1].startswith("1 fault")
    daemon()
    out = run("doctor", "--vault", str(vault))[1]
    assert re.match(r"\d+ checks are fine", out) and out.endswith("\nAll is well.\n")
    fine = int(out.split()[0])
    every = run("doctor", "--all", "--vault", str(vault))[1]
    assert every.count("\n  ✓ ") == fine and " ms" in every.replace("\u00a0", " ")
    lines = json.loads(run("doctor", "--vault", str(vault), "--json")[1])["checks"]
    assert sum(line["state"] == "ok" for line in lines) == fine, "programs get all of it"


def test_the_whole_of_it_in_another_process(daemon: Start, vault: Path) -> None:
    write(vault, "a.md", "Tea.\n")
    one = daemon()
    code = f"{PATIENT}\nfrom tarsd.cli import main\nmain(['doctor', '--vault', {str(vault)!r}, '--json'])"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=one.env, capture_output=True, text=True, timeout=110, check=False)
    reply = json.loads(done.stdout)
    assert [line for line in reply["checks"] if line["state"] == "fault"] == [], done.stderr
    assert (done.returncode, done.stderr) == (EXIT_OK, "")
    assert {"Index", "Models", "Program"} <= {line["group"] for line in reply["checks"]}


def test_a_report_replaces_no_file(run: Run, quick: None, subject: DoctorContext, tmp_path: Path, vault: Path) -> None:
    mine = write(tmp_path, "mine.md", "mine")
    code, _, err = run("doctor", "--vault", str(vault), "--report", str(mine))
    assert (code, mine.read_text(), "was not changed" in err) == (EXIT_REFUSED, "mine", True)
    code, out, _ = run("doctor", "--vault", str(vault), "--report", str(tmp_path / "fresh.md"))
    assert code == EXIT_REFUSED and "Read it before you share it" in out
    assert stat.S_IMODE((tmp_path / "fresh.md").stat().st_mode) == 0o600
    assert (tmp_path / "fresh.md").read_text().startswith("# tarsd report\n")
    assert run("doctor", "--json", "--report", "-")[0] == EXIT_USAGE
    code, _, err = run("doctor", "--vault", str(vault), "--report", str(tmp_path / "no" / "such.md"))
    assert (code, "cannot be written" in err) == (EXIT_REFUSED, True)


# ------------------------------------------------------------------------------------------------ the report

TELLTALES = {
    "Zanzibar": "the vault", "Quetzal": "a folder", "Pemberton": "a note", "Xylophone": "a title",
    "Marzipan": "an alias", "kumquat": "a tag", "saffron": "a sub-tag", "Wolverine": "the text",
    "Ocelot": "a question", "Ptarmigan": "an answer", "Gnocchi": "a rule", "Tamarillo": "a private folder",
    "Cassowary": "a collection", "Jalapeno": "its folder", "Axolotl": "a note in it", "Mandrill": "a property",
    "Tarragon": "a conflict", "Narwhal": "a broken note", "Bandicoot": "an MCP server", "sk-double": "a key",
    "Okapi": "a place", "Umbrella": "the home",
}  # fmt: skip


def test_a_report_holds_nothing_private(
    run: Run, quick: None, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, daemon: Start
) -> None:
    user = tmp_path / "Umbrella"
    user.mkdir()
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.setenv("USER", "Umbrella")
    monkeypatch.setattr(socket, "gethostname", lambda: "okapi-host.local")
    root, other = user / "Zanzibar", user / "Jalapeno"
    (root / ".obsidian").mkdir(parents=True)
    write(
        root,
        "Quetzal/Pemberton.md",
        "---\naliases: [Marzipan]\ntags: [kumquat/saffron]\nMandrill: Mandrill\n---\n# Xylophone\n\nWolverine.\n",
    )
    write(root, "Quetzal/Narwhal.md", "---\nMandrill: *Mandrill\n---\nWolverine\n")
    write(root, "Gnocchi/Left.md", "Wolverine")
    write(root, "Tarragon (conflicted copy 2026-01-01).md", "Wolverine")
    write(root, ".Narwhal 2.md.icloud", "x")
    os.close(os.open(os.fsencode(root) + b"/Narwhal\xff.md", os.O_CREAT))
    write(other, "Axolotl.md", "Wolverine")
    then = time.time() + 1e7
    os.utime(root / "Quetzal" / "Pemberton.md", (then, then))
    with OpenAIDouble() as double:
        own, _, rest = double.config().partition("\n\n")
        settings = f"""
[vault]
path = "{root}"
exclude = ["Gnocchi/"]
[[collection]]
name = "Cassowary"
path = "{other}"
[privacy]
local_only = ["Tamarillo/"]
[tools]
weather_place = "Okapi"
[[mcp]]
name = "Bandicoot"
command = ["/nowhere/Bandicoot"]
"""
        write(home, "config.toml", f"{own}\n{settings}\n{rest}")
        running = daemon(root, TARSD_CHAT="", **double.env())
        double.enqueue(Say("Ptarmigan"))
        running.client.post("/chat", {"message": "Where is the Ocelot?"})
        running.client.post("/v1/search", {"query": "Ocelot Wolverine"})
        running.wait()
        shutil.move(other, user / "away")  # the log now speaks of a path
        running.wait(lambda status: any("is missing" in one["reason"] for one in status["problems"]))
        log = running.config.paths.logs / f"tarsd-{running.config.vault_id}.log"
        until_logged(log, "cannot be watched")
        with log.open("a") as file:  # whatever may come to stand there one day
            file.write(json.dumps({"event": "reading Pemberton: Wolverine", "path": "x/Pemberton.md"}) + "\n")
            file.write("Wolverine\n")
        double.enqueue(Say("Ptarmigan"))
        _, out, _ = run("doctor", "--report", "-")
    assert out.startswith("# tarsd report\n")
    for word, what in TELLTALES.items():
        assert word.lower() not in out.lower(), (
            f"{what}: {[row for row in out.splitlines() if word.lower() in row.lower()]}"
        )
    assert not re.search(r"/tmp/pytest|/home/|/root", out)
    for wanted in (
        "cannot be watched",
        "note-",
        "`privacy.local_only` = 1 set",
        "`mcp` = 1 set",
        "A note: ",
        "✓ Index",
    ):
        assert wanted in out, wanted


def until_logged(log: Path, words: str) -> None:
    deadline = time.monotonic() + 60
    while words not in log.read_text():
        assert time.monotonic() < deadline, words
        time.sleep(0.05)


def test_a_report_without_anything_to_look_at(run: Run, quick: None, home: Path) -> None:
    code, out, _ = run("doctor", "--report", "-")
    assert code == EXIT_REFUSED and "It is unclear which vault is meant." in out and "There is no readable log." in out


def test_a_log_that_is_a_pipe_keeps_nobody_waiting(run: Run, quick: None, subject: DoctorContext, vault: Path) -> None:
    logs = subject.config.paths.logs
    logs.mkdir()
    os.mkfifo(logs / f"tarsd-{subject.config.vault_id}.log")
    assert "There is no readable log." in run("doctor", "--vault", str(vault), "--report", "-")[1]


def test_a_user_without_an_account_has_a_report(
    run: Run, quick: None, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pwd

    monkeypatch.setattr(pwd, "getpwuid", lambda number: {}[number])
    assert run("doctor", "--vault", str(vault), "--report", "-")[1].startswith("# tarsd report")


def test_a_report_keeps_its_own_words_whatever_notes_are_called(
    run: Run, quick: None, daemon: Start, vault: Path
) -> None:
    write(
        vault,
        "index/daemon.md",
        "---\naliases: [Every note is indexed, answers]\ntags: [vault, notes/file]\n---\n# Process\n",
    )
    write(vault, "socket.md", "---\na: *b\n---\nTea\n")  # a problem whose reason is told
    write(vault, "Pemberton.md", "Tea\n")
    running = daemon(vault)
    running.wait()
    _, out, _ = run("doctor", "--vault", str(vault), "--report", "-")
    checks, _, log = out.partition("## Settings")
    assert not re.search(r"\b(tag|folder|rule|note)-\d", checks), "no word of a check was taken for a name"
    assert (
        "answers." in checks and "Every note is indexed." in checks and "A note: This line of the properties" in checks
    )
    assert "the index is open" in log and "Pemberton" not in out


def test_names_are_hidden_as_whole_words() -> None:
    from tarsd.doctor.scrub import Redactor

    scrub = Redactor({"/home/ada": "~", "ada": "user"}, {"Tea": "note-1", "Tea/Pot.md": "note-2.md", "A": "note-3"})
    assert scrub.places("/home/ada/x of ada, not Canada") == "~/x of user, not Canada"
    assert scrub.names("A Team reads Tea/Pot.md and Tea in /home/ada") == "A Team reads note-2.md and note-1 in ~"
