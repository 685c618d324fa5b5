"""Notes as bases: which of their blocks and embedded bases is shown, and whose view."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tarsd.errors import BadRequest, NotFound
from tarsd.notes import Reader
from tarsd.protocol import Audience
from tarsd.query import VaultQuery
from tests.support.engine import Engine, write

FENCE = "```"
NOTES = {
    "Books/Dune.md": "---\nrating: 5\n---\n",
    "Books/Emma.md": "---\nrating: 3\n---\n",
    "All.base": "filters: file.inFolder('Books')\nviews:\n  - name: Both\n  - name: Good\n    filters: rating > 4\n",
    "Secret/Own.base": "views:\n  - name: Hidden\n",
    "Blocks.md": f"{FENCE}base\nfilters: rating > 4\nviews:\n  - name: First\n{FENCE}\n\n"
    f"> ~~~base\n> filters: rating < 4\n> views:\n>   - name: Second\n>   - name: Überblick\n> ~~~\n\n"
    f"{FENCE}base\nviews: [\n{FENCE}\n\n![[All.base]]\n",
    "Embeds.md": "Text about [[Blocks]].\n\n![[All.base#Good]]\n\n![[All.base]]\n",
    "Help.md": f"````markdown\n{FENCE}base\nfilters: rating > 4\n{FENCE}\n````\n\n`![[All.base]]` and [[All.base]]\n",
    "Lost.md": "![[Nothing.base]]\n",
    "Private.md": "![[Own.base]]\n",
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = Engine(tmp_path_factory.mktemp("bases"), model=None)
    for path, text in NOTES.items():
        write(engine.vault, path, text)
    with engine:
        config = engine.config
        engine.stop()
        engine.restart(privacy=replace(config.privacy, local_only=("Secret",)))
        engine.index()
        yield engine


def shown(engine: Engine, base: str, view: str = "", audience: Audience = "person") -> list[str]:
    reply: dict[str, Any] = Reader(engine.library, audience).query(VaultQuery(view=view), base)
    return [row["path"].removeprefix("Books/").removesuffix(".md") for row in reply["rows"]]


@pytest.mark.parametrize(
    ("base", "view", "found"),
    [
        ("Blocks", "", ["Dune"]),
        ("Blocks", "first", ["Dune"]),
        ("Blocks", "Second", ["Emma"]),
        ("Blocks", "ÜBERBLICK", ["Emma"]),
        ("Blocks", "Both", ["Dune", "Emma"]),
        ("Embeds", "", ["Dune"]),
        ("Embeds", "Both", ["Dune", "Emma"]),
        ("Embeds", "Good", ["Dune"]),
        ("All.base", "Good", ["Dune"]),
    ],
)
def test_a_view_is_found_in_any_block_and_embedded_base_of_a_note(
    engine: Engine, base: str, view: str, found: list[str]
) -> None:
    assert shown(engine, base, view) == found


def test_a_view_that_none_of_them_has_is_refused_with_the_names_of_all(engine: Engine) -> None:
    with pytest.raises(BadRequest, match=r"No base in Blocks\.md has a view 'Third'") as caught:
        shown(engine, "Blocks", "Third")
    assert caught.value.hint == "Their views are 'First', 'Second', 'Überblick', 'Both', 'Good'."


@pytest.mark.parametrize("view", ["", "Good"])
def test_what_a_note_quotes_or_only_links_to_is_no_base_of_it(engine: Engine, view: str) -> None:
    with pytest.raises(BadRequest, match=r"There is no base in Help\.md"):
        shown(engine, "Help", view)


def test_a_base_that_is_gone_is_named(engine: Engine) -> None:
    with pytest.raises(NotFound, match=r"Nothing\.base"):
        shown(engine, "Lost")


def test_a_private_base_that_is_embedded_is_none_to_a_model_elsewhere(engine: Engine) -> None:
    assert "Dune" in shown(engine, "Private")
    with pytest.raises(NotFound):
        shown(engine, "Private", audience="elsewhere")
