"""That `scripts/words` lists what people are told, wherever in the source it stands, and nothing else."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "words"


@pytest.fixture(scope="module")
def lister() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("words_script", str(SCRIPT))
    spec = importlib.util.spec_from_loader("words_script", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('raise Refused("It failed here.", f"Look at {path}.")', ["It failed here.", "Look at {path}."]),
        ('x = ("Half a sentence " "and the rest.")', ["Half a sentence and the rest."]),
        ('def f():\n    """What it does here."""\n    return "Told to people."', ["Told to people."]),
        ('@click.command()\ndef f():\n    """The help of it."""', ["The help of it."]),
        ('X = "one_word"\n"""What X is for."""', []),
        ('f"{name} {place:<10}"', []),
        ('f"{name}: {count:,} notes left"', ["{name}: {count} notes left"]),
        ('x = "SELECT id FROM notes WHERE x"', []),
        ('x = "Stopped."', ["Stopped."]),
    ],
)
def test_python(lister: ModuleType, source: str, said: list[str]) -> None:
    assert [text for _, text in lister.python(source)] == said


def test_typescript_and_html(lister: ModuleType) -> None:
    source = 'import { a } from "not this one";\n// "nor this"\n'
    source += 'const x = "Keep the note"; f(`${n} notes are left`, "key");'
    assert list(lister.script(source, all_of_it=False)) == [(3, "Keep the note"), (3, "${n} notes are left")]
    assert [text for _, text in lister.script("a: 'Keep',", all_of_it=True)] == ["Keep"]
    page = '<p title="Say it">Told here</p><script>"not this"</script><!-- nor <b>this</b> -->\n<b>\nBold</b>'
    assert [text.strip() for _, text in lister.page(page)] == ["Say it", "Told here", "Bold"]


def test_every_kind_of_place_is_listed(lister: ModuleType) -> None:
    """An error, its hint, a command's help, the pane and the page."""
    found = {path for path, _, _ in lister.everything([])}
    wanted = {"tarsd/memory/store.py", "tarsd/cli/memory.py", "obsidian-plugin/src/en.ts", "tarsd/data/web/index.html"}
    assert wanted <= found
    assert not [path for path in found if path.startswith("tarsd/words/")]
