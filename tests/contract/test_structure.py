"""The shape of the code: who imports whom, how long files are, and what a call from the shell loads."""

from __future__ import annotations

import ast
import functools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "tarsd"

ENGINE = (
    "errors", "files", "config", "foreign", "keys", "protocol", "vault", "watch", "children", "extract", "words",
    "parse", "dates", "kinds", "bases", "passage", "citation", "chunk", "upstream", "transport", "embed", "store",
    "index", "search", "query", "ask", "why", "providers", "usage", "writing", "memory", "notes", "tools", "session",
    "compact", "chat", "app", "server", "daemon",
)  # fmt: skip
CLIENTS = ("client", "mcp_stdio", "services", "doctor", "cli")
ORDER = ENGINE + CLIENTS
"""A module imports only modules before it; the clients reach the engine only through the socket."""

SHARED_WITH_CLIENTS = {"errors", "files", "config", "foreign", "keys", "protocol"}
LAZY = {("cli", "daemon"), ("cli", "mcp_stdio"), ("cli", "doctor"), ("server", "mcp_stdio")}
"""Who may be imported inside a function although the order forbids it."""

OWNERS = {
    "apsw": {"store"},
    "sqlite_vec": {"store"},
    "watchdog": {"watch"},
    "aiohttp": {"server"},
    "pypdfium2": {"extract"},
    "lxml": {"extract"},
    "PIL": {"extract"},
    "markdown_it": {"parse"},
    "yaml": {"parse", "bases"},
    "lark": {"bases"},
    "regex": {"bases"},
    "onnxruntime": {"embed"},
    "openai": {"embed", "providers"},
    "anthropic": {"providers"},
    "httpx": {"embed", "providers", "tools"},
    "httpx2": {"embed", "providers", "tools"},
    "msgspec": {"protocol", "mcp_stdio"},
    "anyio": {"tools", "mcp_stdio"},
    "mcp": {"tools", "mcp_stdio"},
    "todoist_api_python": {"tools"},
    "platformdirs": {"config"},
    "keyring": {"keys"},
    "dateutil": {"ask"},
    "click": {"cli"},
    "rich": {"cli"},
    "prompt_toolkit": {"cli"},
}
"""The dependencies that only some modules may know."""

RULE = "tarsd.parse.access"

HEAVY = (
    "aiohttp", "numpy", "onnxruntime", "apsw", "sqlite_vec", "tokenizers", "watchdog", "keyring", "rich", "asyncio",
    "prompt_toolkit", "pypdfium2",
)  # fmt: skip
LINES, TEST_LINES = 500, 800


def sources(folder: Path = PACKAGE) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "data" not in path.relative_to(folder).parts)


EVERY = [*sources(), *sources(ROOT / "tests"), *sources(ROOT / "scripts")]


def top(path: Path) -> str:
    """The module of the reading order that a file belongs to: tarsd/store/schema.py -> store."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(path: Path, tree: ast.AST | None = None, *, inside: bool = False) -> Iterator[tuple[str, bool]]:
    """Every imported module by its full name, and whether that happens inside a function."""
    tree = parsed(path) if tree is None else tree
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = path.relative_to(ROOT).with_suffix("").parts[: -node.level] if node.level else ()
            name = ".".join((*package, *((node.module or "").split(".") if node.module else ())))
            for alias in node.names:  # `from tarsd import store` means the module, `from tarsd.store import Store` too
                submodule = PACKAGE.parent.joinpath(*name.split("."), f"{alias.name}.py").exists()
                yield (f"{name}.{alias.name}" if name == "tarsd" or submodule else name, inside)
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from imports(path, node, inside=inside or function)


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def own_imports(path: Path) -> Iterator[tuple[str, bool]]:
    """The modules of the reading order that a file imports from outside its own, and whether inside a function."""
    for name, lazy in imports(path):
        parts = name.split(".")
        if parts[0] == "tarsd" and len(parts) > 1 and parts[1] not in (top(path), "__version__"):
            yield parts[1], lazy


def modules() -> list[Path]:
    return [path for path in sources() if top(path) != "__init__"]


def test_every_module_has_a_place_in_the_reading_order() -> None:
    assert {top(path) for path in modules()} == set(ORDER)


def test_a_module_imports_only_what_stands_above_it() -> None:
    offenders = [
        f"{path.relative_to(ROOT)} imports {other}, which stands below it"
        for path in modules()
        for other, lazy in own_imports(path)
        if not (lazy and (top(path), other) in LAZY) and ORDER.index(other) >= ORDER.index(top(path))
    ]
    assert offenders == []


def test_no_client_reaches_past_the_socket() -> None:
    offenders = [
        f"{path.relative_to(ROOT)} imports {other}"
        for path in modules()
        if top(path) in CLIENTS and top(path) != "doctor"
        for other, lazy in own_imports(path)
        if not (lazy and (top(path), other) in LAZY) and other not in SHARED_WITH_CLIENTS and other not in CLIENTS
    ]
    assert offenders == []


def test_a_dependency_is_known_to_few() -> None:
    offenders = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sources()
        for name, _ in imports(path)
        if (owners := OWNERS.get(name.split(".")[0])) is not None and top(path) not in owners
    ]
    assert offenders == []


ASK_THE_RULE = {"tarsd/index/prepare.py", "tarsd/memory/lines.py", "tarsd/notes/library.py"}
"""Those that ask whether text is private; all others hand the mark on."""
READ_FOR_AUDIENCES = {
    "tarsd/app/application.py", "tarsd/app/tasks.py", "tarsd/chat/answer.py", "tarsd/chat/attached.py",
    "tarsd/chat/commands.py", "tarsd/chat/prompt_folder.py", "tarsd/chat/services.py", "tarsd/tools/base.py",
}  # fmt: skip
"""Those outside of `notes` that get a `Reader` and pass it on."""


def test_what_is_private_and_who_may_read_it_is_decided_in_one_place() -> None:
    asks = {str(path.relative_to(ROOT)) for path in sources() for name, _ in imports(path) if name.startswith(RULE)}
    assert asks - {"tarsd/parse/access.py"} == ASK_THE_RULE
    gets = {
        str(path.relative_to(ROOT))
        for path in sources()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ImportFrom) and node.module == "tarsd.notes"
        if "Reader" in {alias.name for alias in node.names}
    }
    assert gets == READ_FOR_AUDIENCES


def test_no_two_classes_have_one_name() -> None:
    bearers: dict[str, list[str]] = {}
    for path in sources():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                bearers.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in bearers.items() if len(paths) > 1} == {}


def test_no_modules_import_each_other() -> None:
    names = {".".join(("tarsd", *path.relative_to(PACKAGE).with_suffix("").parts)): path for path in sources()}
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    graph = {
        name: {one for one, lazy in imports(path, _runtime(parsed(path))) if one in names and not lazy and one != name}
        for name, path in names.items()
    }
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, f"a circle: {' -> '.join((*trail, name))}"
        if name not in done:
            for other in sorted(graph[name]):
                visit(other, (*trail, name))
            done.add(name)

    for name in sorted(graph):
        visit(name, ())


def _runtime(tree: ast.Module) -> ast.Module:
    """The module without what only a type checker sees."""
    body = [
        node
        for node in tree.body
        if not (isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING")
    ]
    return ast.Module(body=body, type_ignores=[])


def test_a_file_is_short() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in EVERY}
    longer = {path.relative_to(ROOT): count for path, count in lines.items() if count > limit(path)}
    assert longer == {}


def limit(path: Path) -> int:
    return TEST_LINES if path.is_relative_to(ROOT / "tests") else LINES


def test_a_file_says_what_it_is() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in EVERY}
    silent = [path.relative_to(ROOT) for path, text in texts.items() if text.strip() and not said(text)]
    assert silent == []


def said(text: str) -> str | None:
    return ast.get_docstring(ast.parse(text))


@pytest.mark.parametrize(
    "command",
    [
        ["search", "tea"],
        ["sgrep", "tea"],
        ["svec", "tea"],
        ["related", "a.md"],
        ["why", "a.md", "tea"],
        ["ask", "tea"],
        ["status"],
        ["reindex"],
        ["stop"],
        ["config", "path"],
        ["chat"],
        ["sessions"],
        ["memory"],
        ["review", "--json"],
        ["models"],
        ["index", "export", "x"],
        ["completion", "bash"],
        ["help"],
        ["help", "settings"],
        ["--version"],
        ["--help"],
    ],
    ids=" ".join,
)
def test_a_call_from_the_shell_loads_nothing_heavy(command: list[str]) -> None:
    code = f"""
import sys
from tarsd.cli import main
try:
    main({command!r})
except SystemExit:
    pass
loaded = [name for name in {HEAVY!r} if name in sys.modules]
loaded += [name for name in sys.modules if name.startswith("tarsd.") and name.split(".")[1] in {ENGINE!r}]
print(*loaded, file=sys.__stderr__)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ}, timeout=60
    )
    last = done.stderr.splitlines()[-1].split()
    assert {name.split(".")[-1] for name in last if "." not in name} == set()
    engine = {name.split(".")[1] for name in last if "." in name}
    assert engine <= SHARED_WITH_CLIENTS
