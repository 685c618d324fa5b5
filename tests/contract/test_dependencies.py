"""What the code imports is what pyproject.toml asks for, and the other way round."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[2]
while not (ROOT / "pyproject.toml").exists():
    ROOT = ROOT.parent

OURS = {"tarsd", "tests"}
RUN_BY_NAME = {
    "mypy", "pytest-randomly", "pytest-timeout", "pytest-xdist", "ruff", "types-lxml",
    "types-python-dateutil", "types-pyyaml", "types-regex",
}  # fmt: skip
"""Tools and plugins that nobody imports."""

LOADED_WHERE_INSTALLED = ("files", "ocr")
"""The extras whose packages tarsd itself imports, where they are installed."""

SDKS = ("anthropic", "openai", "ollama", "httpx", "httpx2", "_client", "client")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(lines: Iterable[str]) -> set[str]:
    return {normal(re.split(r"[^\w.-]", line.strip())[0]) for line in lines}


def project() -> tuple[set[str], set[str], set[str]]:
    """What tarsd needs, what it uses where it is installed, and what only its tests and scripts need."""
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = about["optional-dependencies"]
    optional = declared(line for name in LOADED_WHERE_INSTALLED for line in extras[name])
    # an extra that names another one of ours asks for no further package
    others = declared(line for lines in extras.values() for line in lines) - {"tarsd"}
    return declared(about["dependencies"]), optional, others - optional


def programs(folder: str) -> Iterator[Path]:
    """The Python files below a folder, those without an ending included."""
    for path in sorted((ROOT / folder).rglob("*")):
        if path.suffix == ".py" or (
            not path.suffix and path.is_file() and path.read_bytes().startswith(b"#!/usr/bin/env python3")
        ):
            yield path


def imported(*folders: str) -> set[str]:
    """The distributions that the files import, by their normal names."""
    own = OURS | {path.stem for path in programs("scripts")}
    known = packages_distributions()
    tops = set()
    for path in (path for folder in folders for path in programs(folder)):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                tops |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                tops.add(node.module.partition(".")[0])
    return {normal(known.get(top, [top])[0]) for top in tops - own - sys.stdlib_module_names}


def test_tarsd_imports_what_it_declares_and_nothing_else() -> None:
    needed, optional, _ = project()
    assert imported("tarsd") == needed | optional


def test_tests_and_scripts_import_what_is_declared_for_them() -> None:
    needed, optional, extras = project()
    used = imported("tests", "scripts")
    assert used - needed - optional - extras == set()
    assert extras - used - RUN_BY_NAME == set()


def test_no_private_member_of_a_vendors_package_is_used() -> None:
    """Neither a private module, nor a private attribute of what was imported or is called a client."""
    private = []
    for path in programs("tarsd"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Attribute):
                names = [ast.unparse(node).removeprefix("self.")]
            for name in names:
                first, *rest = name.split(".")
                if first in SDKS and any(part.startswith("_") and not part.startswith("__") for part in rest):
                    private.append(f"{path.name}: {name}")
    assert private == []
