"""README and manual are true: every command, option, setting, route and exit code stands there, and examples run."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

import tarsd
from tarsd import config, errors
from tarsd.cli import manual
from tarsd.config.reader import SECTIONS
from tarsd.protocol import ROUTES
from tests.support.commands import commands

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = manual.pages()
TEXT = "\n\n".join((README, *PAGES.values()))
CODE = set(re.findall(r"`([^`\n]+)`", TEXT))
EXAMPLES = re.findall(r"^```console\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
COMMANDS = [line.removeprefix("$ ") for block in EXAMPLES for line in block.splitlines() if line.startswith("$ ")]

LINKED = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")]
LINKED += [ROOT / "scripts" / "README.md", ROOT / "obsidian-plugin" / "README.md", *sorted(manual.PAGES.glob("*.md"))]
LINK = re.compile(r"\]\((?!https?:)([^)\s]*)\)")
ROUTE = re.compile(r"(?:GET|POST|PATCH|DELETE) /[^?\s]*")
SHORT, README_LINES = 60, 200


@pytest.mark.parametrize(("name", "command"), list(commands()), ids=[name for name, _ in commands()])
def test_every_command_and_option_is_told_of(name: str, command: click.Command) -> None:
    assert f"`{name}" in PAGES["commands"], name
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert any(option in TEXT for option in parameter.opts if option.startswith("--")), parameter.name


def test_no_command_is_made_up() -> None:
    known = {name for name, _ in commands()} | {"tarsd --version", "tarsd --help"}
    known |= {name.rpartition(" ")[0] for name in known if name.count(" ") > 1}  # a group does something by itself
    for code in CODE:
        if code.startswith("tarsd ") and not code.startswith("tarsd --"):
            assert any(code.startswith(name) for name in known), code
    for command in COMMANDS:
        assert not command.startswith("tarsd ") or any(command.startswith(name) for name in known), command


def settings() -> dict[str, Any]:
    """Every setting by its full name with its default; None where the table may say what it likes."""
    tables = config.as_tables(config.load(vault=Path("/V"), env={"TARSD_HOME": "/H"}))
    found = {f"{section}.{key}": value for section, values in tables.items() for key, value in values.items()}
    found["vault.path"] = None
    tables = {"collection": config.Collection, "mcp": config.McpServer}
    listed = [f"{name}.{field.name}" for name, kind in tables.items() for field in dataclasses.fields(kind)]
    return found | dict.fromkeys(name.replace("collection.root", "collection.path") for name in listed)


def rows() -> dict[str, str]:
    """The settings in the manual with what stands in the column of defaults."""
    found = {}
    for names, default in re.findall(r"^\| ((?:`\w+\.\w+` ?)+)\| ([^|]*) ?\|", PAGES["settings"], re.MULTILINE):
        for name in re.findall(r"`(\w+\.\w+)`", names):
            found[name] = default.strip()
    return found


def test_every_setting_is_in_the_manual_and_no_other() -> None:
    assert set(rows()) == set(settings())
    assert {name.split(".")[0] for name in settings()} == set(SECTIONS)


@pytest.mark.parametrize("name", list(settings()))
def test_a_default_in_the_manual_is_the_real_one(name: str) -> None:
    shown, value = re.findall(r"`([^`]*)`", rows()[name]), settings()[name]
    if not shown:
        return
    if isinstance(value, dict):
        assert shown == ["{ " + ", ".join(f"{key} = {score}" for key, score in value.items()) + " }"]
    else:
        assert json.dumps(value) in shown


def test_every_route_is_in_the_manual_and_no_other() -> None:
    listed = {found for code in re.findall(r"`([^`\n]+)`", PAGES["routes"]) for found in ROUTE.findall(code)}
    assert listed == {f"{route.method} {route.path.replace(':.*', '')}" for route in ROUTES}


def test_every_exit_code_is_in_the_manual() -> None:
    codes = [value for name, value in vars(errors).items() if name.startswith("EXIT_")]
    assert len(codes) == 6
    for code in codes:
        assert re.search(rf"^\| {code} \| ", PAGES["commands"], re.MULTILINE), code


def test_every_variable_is_in_the_manual() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tarsd").rglob("*.py"))
    for name in set(re.findall(r"\bTARSD_[A-Z]+\b", text)) | {"TARSD_OPENAI_KEY", "TARSD_ANTHROPIC_KEY"}:
        assert f"`{name}`" in PAGES["settings"], name


def test_every_script_is_explained() -> None:
    about = (ROOT / "scripts" / "README.md").read_text(encoding="utf-8")
    for path in (ROOT / "scripts").iterdir():
        if os.access(path, os.X_OK) and path.is_file():
            assert f"| `{path.name}" in about, path.name


def test_every_module_is_in_the_architecture() -> None:
    about = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for path in (ROOT / "tarsd").iterdir():
        if path.suffix == ".py" or (path / "__init__.py").exists():
            assert path.stem == "__init__" or f"| `{path.stem}" in about, path.stem


def anchors(path: Path) -> set[str]:
    """What a link can name behind `#`: a file's headings, in the form that forges give them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", LINKED, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for link in LINK.findall(path.read_text(encoding="utf-8")):
        target, _, heading = link.partition("#")
        found = path.parent / target if target else path
        assert found.exists(), link
        assert not heading or heading in anchors(found), link


@pytest.mark.parametrize("topic", PAGES)
def test_a_page_begins_with_what_it_is_about(topic: str) -> None:
    title, about, _ = PAGES[topic].split("\n\n", 2)
    assert re.fullmatch(r"# \S.*", title)
    assert re.fullmatch(r"[A-Z][^\n]*\.", about) and len(about) <= SHORT
    assert f"| [{topic}](tarsd/data/manual/{topic}.md) | {about} |" in README


@pytest.mark.parametrize("topic", PAGES)
def test_a_page_links_only_to_pages(topic: str) -> None:
    """The command that shows it knows no other files."""
    assert not LINK.findall(manual.PAGE_LINK.sub("", PAGES[topic]))


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= README_LINES


def test_there_is_one_release_number() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[(\d\S*)\] - \d{4}-\d\d-\d\d$", changes, re.MULTILINE)[0] == project == tarsd.__version__
    for name in ("manifest.json", "package.json", "package-lock.json"):
        assert json.loads((ROOT / "obsidian-plugin" / name).read_text(encoding="utf-8"))["version"] == project, name


@pytest.mark.skipif(not shutil.which("bash"), reason="the examples are for bash")
def test_the_examples_run(daemon: Callable[..., Any], tmp_path: Path, home: Path) -> None:
    notes = tmp_path / "Notes"
    shutil.copytree(ROOT / "tarsd" / "data" / "sample-vault", notes)
    (notes / ".obsidian").mkdir(exist_ok=True)
    daemon(notes, TARSD_EMBEDDING="table")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, function in (("tarsd", "main"), ("tars", "tars")):
        program = programs / name
        code = f"from tarsd.cli import {function}; {function}()"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{code}" "$@"\n')
        program.chmod(0o700)
    env = {**os.environ, "HOME": str(tmp_path), "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    assert len(COMMANDS) > 15
    every = dict.fromkeys(("tarsd init --vault ~/Notes", *COMMANDS))
    for command in sorted(every, key=lambda command: command == "tarsd stop"):
        if command.startswith("curl") and not shutil.which("curl"):
            continue
        done = subprocess.run(
            ["bash", "-c", command], env=env, cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL,
            timeout=60,
        )  # fmt: skip
        # which passages are relevant is no business of this test, and what the model says of one example may change
        assert done.returncode in (0, 1), f"{command}\n{done.stdout}{done.stderr}"
        assert done.stdout, command
        assert not re.search("Traceback|Error:", done.stderr), done.stderr
    assert (home / "config.toml").exists()
