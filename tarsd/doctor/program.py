"""The program: Python, this package, SQLite with its extensions, and everything that is imported."""

from __future__ import annotations

import os
import platform
import re
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Final

import tarsd
from tarsd.doctor.finding import Check, Finding, fault, ok, warning
from tarsd.doctor.subject import DoctorContext, quoted

IMPORT: Final = """
import importlib, sys
for name in sys.argv[1:]:
    print(name, flush=True)
    importlib.import_module(name)
"""
EMBED: Final = """
import sys
from tarsd import embed
from tarsd.config import EmbeddingSettings
from tarsd.embed.base import is_bad
for name in sys.argv[1:]:
    print(name, flush=True)
    if is_bad(embed.make(EmbeddingSettings(model=name)).embed(["The kettle stands on the stove."], "document")).any():
        sys.exit("it cannot embed a sentence")
"""
RUN_S: Final = 20.0
SLOW: Final = f"it takes longer than {RUN_S:.0f} s"
OLDEST: Final = (3, 11)
COMPILED: Final = {
    "anthropic": ["pydantic_core", "jiter"],
    "openai": ["pydantic_core", "jiter"],
    "mcp": ["pydantic_core", "rpds", "cryptography.hazmat.bindings._rust"],
    "todoist-api-python": ["httpx"],
}
"""Packages that take seconds to import and are Python alone: what is compiled of theirs is imported in their place."""


def python(subject: DoctorContext) -> Finding:
    """Which Python this is: the file behind all links is what macOS asks to allow."""
    real = os.path.realpath(sys.executable)
    about = f"Python {platform.python_version()}, {real}{_origin(real)}"
    if sys.version_info < OLDEST:
        return fault(f"{about}: too old.", f"Install tarsd with Python {OLDEST[0]}.{OLDEST[1]} or newer.")
    if "/shims/" in sys.executable:
        return warning(
            f"{about}; it was started through {sys.executable}, which may start a different Python later.",
            f"Start it by its own path: {quoted(real)} -m tarsd.cli",
        )
    return ok(f"{about}.")


def _origin(real: str) -> str:
    """Who looks after this Python, where its path tells."""
    known = {"/uv/": "uv", "/.pyenv/": "pyenv", "/homebrew/": "Homebrew", "/Cellar/": "Homebrew", "/conda": "conda"}
    return next((f" (of {name})" for part, name in known.items() if part in real), "")


def package(subject: DoctorContext) -> Finding:
    """Which tarsd this is."""
    version = f"tarsd {tarsd.__version__}"
    return ok(f"{version}, in {Path(tarsd.__file__).parent}.", public=f"{version}.")


def sqlite(subject: DoctorContext) -> Finding:
    """The database engine, with words and vectors."""
    from tarsd.store import examine

    engine = examine.engine()
    if not engine.fts5:
        return fault(f"SQLite {engine.sqlite} cannot search words: it has no FTS5.", _reinstall("apsw"))
    if not engine.vec:
        return warning(
            f"SQLite {engine.sqlite}; sqlite-vec does not work here, so vectors are compared in memory.",
            _reinstall("sqlite-vec"),
        )
    return ok(f"SQLite {engine.sqlite} with FTS5, sqlite-vec {engine.vec}: both answer.")


def packages(subject: DoctorContext) -> Finding:
    """Whether all that is needed can be imported, in another process: a wheel for another machine may kill it.

    What takes seconds is imported only by a thorough look; else it is looked for, and its compiled parts are imported.
    """
    try:
        wanted = [
            re.split(r"[^\w.-]", requirement)[0]
            for requirement in metadata.requires("tarsd") or []
            if "extra ==" not in requirement
        ]
    except metadata.PackageNotFoundError:
        return warning("tarsd runs from a folder; it is not installed.", "Install it: scripts/setup")
    modules: dict[str, list[str]] = {}
    for module, owners in metadata.packages_distributions().items():
        for owner in owners:
            if not module.startswith("_"):
                modules.setdefault(_folded(owner), []).append(module)
    missing = [package for package in wanted if _folded(package) not in modules]
    if missing:
        return fault(f"Not installed: {', '.join(missing)}.", _reinstall(*missing))
    owner_of = {
        module: package
        for package in wanted
        for module in (
            COMPILED.get(package, modules[_folded(package)]) if not subject.thorough else modules[_folded(package)]
        )
    }
    at, why = _run(subject, IMPORT, *owner_of)
    if why == SLOW:
        return warning(f"Importing everything takes longer than {RUN_S:.0f} s; it was at {at}.", "Try again.")
    if why:
        return fault(f"{owner_of.get(at, at)} cannot be imported: {why}.", _reinstall(owner_of.get(at, at)))
    slow = not subject.thorough and any(package in COMPILED for package in wanted)
    more = " (the large ones: their compiled parts; all with --all)" if slow else ""
    return ok(f"All {len(wanted)} packages can be imported{more}.")


def models(subject: DoctorContext) -> Finding:
    """The models that come with the package."""
    at, why = _run(subject, EMBED, "table", "minilm")
    if why:
        return fault(f"The built-in model {at} does not work: {why}.", _reinstall("tarsd"))
    return ok("The built-in models, table and minilm, work.")


def _folded(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _reinstall(*names: str) -> str:
    """The command that puts these packages in order, by how this Python was made."""
    if "/uv/tools/" in sys.prefix:
        return "uv tool install --reinstall tarsd"
    if "/pipx/" in sys.prefix:
        return "pipx reinstall tarsd"
    return f"{quoted(sys.executable)} -m pip install --force-reinstall {' '.join(names)}"


def _run(subject: DoctorContext, code: str, *arguments: str) -> tuple[str, str]:
    """The last thing that a Python of ours printed, and why it failed there ("" if it did not)."""
    command = [sys.executable, "-P", "-c", code, *arguments]
    try:
        timeout = RUN_S * subject.patience
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired as late:
        return _last(late.stdout), SLOW
    at = _last(done.stdout)
    if done.returncode < 0:
        return at, f"its process was killed by {signal.Signals(-done.returncode).name}"
    return at, _last(done.stderr).rstrip(".") or f"exit code {done.returncode}" if done.returncode else ""


def _last(raw: bytes | None) -> str:
    lines = (raw or b"").decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else ""


CHECKS: Final = (
    Check("Program", "Python", python),
    Check("Program", "tarsd", package),
    Check("Program", "SQLite", sqlite),
    Check("Program", "packages", packages, RUN_S + 2, ahead=True),
    Check("Program", "own models", models, RUN_S + 2, ahead=True),
)
