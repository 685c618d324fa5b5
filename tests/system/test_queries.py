"""The commands notes, tasks and base against a daemon: tables, exit codes, and what is asked wrongly."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tarsd.errors import EXIT_NOTHING, EXIT_OK, EXIT_USAGE
from tests.conftest import Daemon
from tests.support.engine import write
from tests.support.stub import Run

Start = Callable[..., Daemon]

NOTES = {
    "Books/Dune.md": "---\nrating: 5\nprice: 12,90 €\n---\n- [ ] Give it back 📅 2020-01-02\n",
    "Books/Emma.md": "---\nrating: 4\nprice: 7 €\n---\n- [x] Buy it ✅ 2026-01-02\n",
    "Good.base": "filters: rating >= 4\nformulas:\n  twice: rating * 2\nviews:\n  - name: All\n"
    "    order: [file.name, formula.twice]\n  - name: Odd\n    filters: unknown(1)\n    order: [file.name, rating]\n",
}


def test_a_vault_is_asked_as_data_from_the_shell(run: Run, daemon: Start, vault: Path) -> None:
    for path, text in NOTES.items():
        write(vault, path, text)
    daemon().wait(lambda status: status["counts"]["notes"] >= 3 and status["behind"] == 0)

    code, out, _ = run("notes", "-w", "rating > 3", "-c", "rating,price", "-s", "-rating", "--sum", "price")
    rows = out.splitlines()
    assert code == EXIT_OK and rows[0].split() == ["note", "rating", "price"]
    assert rows[1].endswith("12,90 €") and "Dune.md" in rows[1] and "Emma.md" in rows[2]
    assert "sum of price: 19.9 (of 2 values)" in rows
    assert run("notes", "-w", "rating > 9")[:2] == (EXIT_NOTHING, "No matching notes.\n")
    code, _, err = run("notes", "-w", "rating >")
    assert code == EXIT_USAGE and "line 1, column 9" in err
    assert "column 8" in json.loads(run("notes", "-w", "rating = 3", "--json")[1])["error"]["message"]

    assert "Give it back" in run("tasks", "--overdue")[1]
    assert run("tasks", "--done", "buy", "--csv")[1].splitlines()[1].startswith("Books/Emma.md,5,x,Buy it,")
    assert run("tasks", "nothing of it")[0] == EXIT_NOTHING
    assert run("tasks", "--due", "soon")[0] == EXIT_USAGE

    code, out, _ = run("base", "Good.base", "--csv")
    assert (code, out) == (EXIT_OK, "path,file name,twice\nBooks/Dune.md,Dune,10\nBooks/Emma.md,Emma,8\n")
    code, out, err = run("base", "Good.base", "--view", "odd")
    assert code == EXIT_OK and "2 rows" in out and "no function unknown()" in err
    assert run("base", "Nothing.base")[0] == EXIT_NOTHING
    assert run("base", "Good.base", "--view", "Nothing")[0] == EXIT_USAGE
