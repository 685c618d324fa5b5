"""Help and completion: every command says what it is for, and Tab knows what can come next."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from tarsd import cli
from tarsd.cli import completion, manual
from tarsd.cli.common import Group
from tarsd.cli.terminal import columns
from tarsd.errors import EXIT_NOTHING, EXIT_OK, EXIT_USAGE
from tests.support.commands import commands
from tests.support.screen import Screen
from tests.support.stub import Run, Stub

ALL = list(commands(groups=True))
ONE_LINE = 110


@pytest.mark.parametrize(("name", "command"), ALL, ids=[name for name, _ in ALL])
def test_a_command_says_in_a_line_what_it_is_for(name: str, command: click.Command) -> None:
    first = (command.help or "").strip().splitlines()[0] if command.help else ""
    assert 8 < len(first) <= ONE_LINE, name
    assert re.match(r"[A-Z].*[.:]$", first), name


@pytest.mark.parametrize(("name", "command"), ALL, ids=[name for name, _ in ALL])
def test_every_option_and_argument_is_explained(name: str, command: click.Command) -> None:
    told = command.get_help(click.Context(command, info_name=name))
    prose = " ".join(f"{command.help or ''} {command.epilog or ''}".split())
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help and parameter.help.strip().endswith((".", "!")), f"{name} {parameter.opts}"
            assert parameter.opts[0] in told
        else:
            shown = str(parameter.name).upper() if parameter.metavar is None else parameter.metavar
            named = isinstance(parameter.type, click.Choice) or re.search(
                rf"\b{shown.rstrip('S')}", prose, re.IGNORECASE
            )
            assert named or not shown, f"{name}: {shown} is not explained"


@pytest.mark.parametrize("name", [name for name, _ in ALL])
def test_help_is_printed(run: Run, name: str) -> None:
    code, out, err = run(*name.split()[1:], "--help")
    assert (code, err) == (EXIT_OK, "")
    assert out.startswith(f"Usage: {name}")


# The manual

PAGES = manual.pages()


def test_the_topics_are_listed(run: Run) -> None:
    code, out, err = run("help")
    assert (code, err) == (EXIT_OK, "")
    listed = [row.split(None, 1) for row in out.splitlines() if row.startswith("  ")]
    assert listed == [[topic, page.split("\n\n")[1]] for topic, page in PAGES.items()]
    assert out.endswith(f"\n{manual.CLOSING}\n")


@pytest.mark.parametrize("topic", PAGES)
def test_through_a_pipe_a_page_comes_as_it_is_written(run: Run, topic: str) -> None:
    code, out, err = run("help", topic.upper())
    assert (code, err) == (EXIT_OK, "")
    assert out.splitlines()[0] == PAGES[topic].splitlines()[0]
    assert len(out.splitlines()) == len(PAGES[topic].splitlines())
    for linked in set(re.findall(r"\]\((\w+)\.md", PAGES[topic])):
        assert f"`tarsd help {linked}`" in out
    assert "\x1b" not in out and ".md)" not in out


def test_at_a_terminal_a_page_is_drawn_whole() -> None:
    with Screen(["help", "settings"]) as screen:
        assert screen.end() == EXIT_OK
        shown = screen.text
    assert "\x1b[36m" in screen.raw, "code stands out"
    assert max(map(columns, shown.splitlines())) <= 80
    assert not re.search(r"^\||`|\]\(", shown, re.MULTILINE), "the marks of Markdown are gone"
    assert "tarsd help models" in " ".join(shown.split())
    words = {part for code in re.findall(r"`([^`\n]+)`", PAGES["settings"]) for part in code.split()}
    letters = "".join(shown.split())
    assert {word for word in words if len(word) < 20 and word not in letters} == set()
    assert "…" not in shown.replace("QUERY…", "")


def test_at_a_terminal_without_colours_there_are_none() -> None:
    with Screen(["help", "phone"], NO_COLOR="1") as screen:
        assert screen.end() == EXIT_OK
        assert "host" in screen.text and not re.search(r"\x1b\[3\d", screen.raw)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("setings", "settings"), ("note", "notes"), ("raspberry", "pi"), ("Claude", "mcp"), ("sgrep", "search")],
)
def test_an_unknown_topic_gets_a_suggestion_and_the_list(run: Run, asked: str, meant: str) -> None:
    code, out, err = run("help", asked)
    assert (code, out) == (EXIT_NOTHING, "")
    assert err.startswith(f"The manual has no page “{asked}”.\nDid you mean tarsd help {meant}?\n")
    assert all(f"\n  {topic} " in err for topic in PAGES)


def test_a_topic_may_be_any_text(run: Run) -> None:
    code, _, err = run("help", "\x1b[2Jxyzzy\n")
    assert (code, err.splitlines()[0]) == (EXIT_NOTHING, "The manual has no page “␛[2Jxyzzy”.")
    assert "Did you mean" not in err and f"\n  {next(iter(PAGES))} " in err


# Completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_for_both_programs(run: Run, shell: str) -> None:
    code, out, _ = run("completion", shell)
    assert code == EXIT_OK
    for name, variable in completion.VARIABLES.items():
        assert f"{variable}={shell}_complete" in out and f"_{name}_completion" in out
    assert run("completion", "tcsh")[0] == EXIT_USAGE


def completed(*words: str, shell: str = "zsh", program: str = "tarsd", env: dict[str, str] | None = None) -> list[str]:
    """What is offered for the last of these words."""
    main = {"tarsd": "main", "tars": "tars"}[program]
    given = {
        completion.VARIABLES[program]: f"{shell}_complete",
        "COMP_WORDS": "\n".join([program, *words]),
        "COMP_CWORD": str(len(words)),
    }
    code = f"import sys; from tarsd.cli import {main}; {main}(); "
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **given, **(env or {})}, capture_output=True, text=True,
        timeout=60, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    return lines[1::3] if shell == "zsh" else [one.partition(",")[2] for one in lines]


def test_commands_and_options_are_completed_without_a_daemon() -> None:
    assert completed("") == list(cli.COMMANDS)
    assert completed("se") == ["search", "sessions", "service"]
    assert completed("sessions", "") == ["list", "show", "rename", "delete"]
    assert {"--vault", "--mode", "--limit"} <= set(completed("search", "--"))
    assert completed("search", "--mode", "") == ["hybrid", "fts", "vec"]
    assert completed("help", "") == list(PAGES)
    assert completed("help", "m") == ["mac", "mcp", "memory", "models"]
    assert completed("related", "") == completed("sessions", "show", "") == []
    assert "--conversation" in completed("--", program="tars")


def test_notes_and_conversations_are_those_of_the_daemon(stub: Stub) -> None:
    paths = ["Health/Night shift sleep.md", "Health/Ünï (a) 'b' $HOME `c`.md", "Tea.md", "bad\nname.md"]
    for name in ("Heal", "health/", "shift", ""):
        stub.replies[f"GET /v1/notes?name={name.replace('/', '%2F')}"] = {
            "notes": [{"path": path} for path in paths if name.lower() in path.lower()]
        }
    assert completed("related", "Heal") == completed("why", "health/") == paths[:2]
    assert completed("related", "shift") == paths[:1]
    assert completed("related", "") == completed("--note", "", program="tars") == paths[:3]
    escaped = [r"Health/Night\ shift\ sleep.md", r"Health/Ünï\ \(a\)\ \'b\'\ \$HOME\ \`c\`.md"]
    assert completed("related", "Heal", shell="bash") == escaped
    stub.replies["GET /v1/conversations"] = {
        "conversations": [{"id": "cli-1", "title": "Tea\x1b[2J"}, {"id": "cli-2", "title": ""}, {"id": "web-1"}]
    }
    assert completed("sessions", "show", "cli") == ["cli-1", "cli-2"]
    assert completed("ask", "--conversation", "web") == completed("-c", "web", program="tars") == ["web-1"]


def test_a_daemon_that_is_slow_or_wrong_offers_nothing(stub: Stub) -> None:
    def slow() -> object:
        time.sleep(3)
        return {"notes": [{"path": "Tea.md"}]}

    replies: list[object] = [slow, (500, {}), {}, {"notes": 3}, {"notes": [1, {}]}]
    for reply in replies:
        stub.replies["GET /v1/notes?name=T"] = reply
        assert completed("related", "T") in ([], [""])


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_bash_puts_whole_names_on_the_line(stub: Stub, tmp_path: Path, run: Run) -> None:
    stub.replies["GET /v1/notes?name=Night"] = {"notes": [{"path": "Night shift $(touch bad).md"}]}
    program = tmp_path / "tarsd"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from tarsd.cli import main; main()" "$@"\n')
    program.chmod(0o700)
    script = run("completion", "bash")[1]
    code = (
        f"{script}\nCOMP_WORDS=(tarsd related Night); COMP_CWORD=2\n_tarsd_completion tarsd\n"
        'eval "set -- ${COMPREPLY[0]}"; printf "%s|" "$#" "$1"'
    )
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout == "1|Night shift $(touch bad).md|", done.stderr
    assert not (tmp_path / "bad").exists()


def test_a_press_of_tab_imports_no_command() -> None:
    code = (
        "import sys; from tarsd.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(*[name for name in sys.modules if name.startswith('tarsd.')])"
    )
    env = {**os.environ, "_TARSD_COMPLETE": "zsh_complete", "COMP_WORDS": "tarsd ", "COMP_CWORD": "1"}
    prefix = "import sys; sys.argv = ['tarsd']\n"
    done = subprocess.run(
        [sys.executable, "-c", prefix + code], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert loaded and not loaded & {f"tarsd.cli.{module}" for module in cli.COMMANDS.values()}


def test_groups_list_their_commands() -> None:
    for name, command in ALL:
        if isinstance(command, click.Group):
            assert isinstance(command, Group), name
