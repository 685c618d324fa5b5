"""The commands notes, tasks and base against a daemon: tables, exit codes, and what is asked wrongly."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tarsd.errors import EXIT_NOTHING, EXIT_OK, EXIT_USAGE
from tests.conftest import Daemon
from tests.support.conversation import Talk
from tests.support.doubles.ollama import OllamaDouble
from tests.support.doubles.script import Call, Say
from tests.support.engine import write
from tests.support.screen import Screen
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
    assert "sum of price: 19.9 € (of 2 values)" in rows
    assert run("notes", "-w", "rating > 9")[:2] == (EXIT_NOTHING, "No matching notes.\n")
    code, _, err = run("notes", "-w", "rating >")
    assert code == EXIT_USAGE and "line 1, column 9" in err
    assert "column 8" in json.loads(run("notes", "-w", "rating = 3", "--json")[1])["error"]["message"]

    assert "Give it back" in run("tasks", "--overdue")[1]
    assert run("tasks", "--done", "buy", "--csv")[1].splitlines()[1].startswith("Books/Emma.md,5,x,Buy it,")
    assert run("tasks", "nothing of it")[0] == EXIT_NOTHING
    assert run("tasks", "--due", "soon")[0] == EXIT_USAGE

    code, out, _ = run("digest")
    lines = [line.strip() for line in out.splitlines()]
    assert code == EXIT_OK and "Due today: none" in lines and "1 task" in lines
    assert "Give it back" in out.partition("Overdue\n")[2]
    parts = json.loads(run("digest", "--json", "--limit", "1")[1])["parts"]
    assert [part["name"] for part in parts] == ["changed", "due", "overdue", "done", "other_years"]
    assert [len(part["rows"]) for part in parts[:3]] == [1, 0, 1] and parts[0]["total"] > 1

    code, out, _ = run("base", "Good.base", "--csv")
    assert (code, out) == (EXIT_OK, "path,file name,twice\nBooks/Dune.md,Dune,10\nBooks/Emma.md,Emma,8\n")
    code, out, err = run("base", "Good.base", "--view", "odd")
    assert code == EXIT_OK and "2 rows" in out and "no function unknown()" in err
    assert run("base", "Nothing.base")[0] == EXIT_NOTHING
    assert run("base", "Good.base", "--view", "Nothing")[0] == EXIT_USAGE


def test_messages_that_are_commands_are_answered_by_rows_and_ask_no_model(
    daemon: Start, home: Path, vault: Path
) -> None:
    for path, text in NOTES.items():
        write(vault, path, text)
    write(vault, "Cites.md", "- [ ] Read [1] and [^1]\n- [ ] Read 【2】\n")
    with OllamaDouble() as double:
        talk = Talk(double, daemon, home, vault)
        talk.daemon.wait(lambda status: status["counts"]["notes"] >= 4 and status["behind"] == 0)
        retrieved, *_, done = talk.whole(talk.ask("/notes rating > 3 --sort -rating --sum price"))
        assert done["text"].startswith("2 notes.  \nSum of price: 19.9 € (of 2 values).\n\n| Note | rating | price |")
        assert [(one["path"], one["start_line"]) for one in done["citations"]] == [
            ("Books/Dune.md", 2),
            ("Books/Emma.md", 2),
        ]
        assert retrieved["model"] == "" and retrieved["local"] and {"path": "Books/Dune.md"} in retrieved["drew_on"]

        done = talk.whole(talk.ask("/tasks read"))[-1]
        assert r"- [ ] Read \[1] and [^1] — [[Cites]] [1]" in done["text"] and "【2】 — [[Cites]] [2]" in done["text"]
        assert [one["start_line"] for one in done["citations"]] == [1, 2]

        done = talk.whole(talk.ask("/tasks --overdue"))[-1]
        assert done["text"] == "1 task.\n\n- [ ] Give it back 📅 2020-01-02 — [[Books/Dune]] [1]"
        assert done["citations"][0]["start_line"] == 5
        assert "| [[Books/Dune]] [1] | 10 |" in talk.whole(talk.ask("/base Good.base"))[-1]["text"]

        done = talk.whole(talk.ask("/digest"))[-1]
        assert "**Changed since yesterday**\n\n5 notes." in done["text"]
        assert "None: Due today, done since yesterday, on this day in other years." in done["text"]
        assert "**Overdue**\n\n1 task.\n\n- [ ] Give it back 📅 2020-01-02 — [[Books/Dune]] [6]" in done["text"]
        assert [one["n"] for one in done["citations"]] == [1, 2, 3, 4, 5, 6]

        failed = talk.whole(talk.ask("/notes rating >"))[-1]
        assert failed["type"] == "failed" and "column 9" in failed["error"]["message"]
        assert "no base" in talk.whole(talk.ask("/base Books/Dune"))[-1]["error"]["message"].casefold()
        assert not [one for one in double.requests if "messages" in one]

        double.enqueue(Say("Two."))
        talk.whole(talk.ask("how many were that?"))
        assert "Sum of price: 19.9" in talk.sent()


def test_a_task_is_done_and_added_by_messages_after_a_yes(daemon: Start, home: Path, vault: Path) -> None:
    for path, text in NOTES.items():
        write(vault, path, text)
    with OllamaDouble() as double:
        talk = Talk(double, daemon, home, vault)
        talk.daemon.wait(lambda status: status["counts"]["notes"] >= 3 and status["behind"] == 0)

        def told(message: str, allow: bool, **more: bool) -> tuple[str, list[str]]:
            turn, asked = talk.ask(message, **more), []
            for event in talk.follow(turn):
                if event["type"] == "approval":
                    asked.append(event["diff"])
                    talk.client.post(f"/v1/turns/{turn}/approvals/{event['call']}", {"allow": allow})
            return event.get("text") or event["error"]["message"], asked

        message = "/tasks done Books/Dune.md:5"
        said, (diff,) = told(message, False)
        assert said == "Nothing changed." and "+- [x] Give it back 📅 2020-01-02 ✅" in diff
        assert "[ ]" in (vault / "Books/Dune.md").read_text()
        assert told(message, True, approvals=False) == ("Nothing changed.", [])
        assert told(message, True)[0] == "Done: “Give it back” in Books/Dune.md."
        assert "- [x] Give it back 📅 2020-01-02 ✅" in (vault / "Books/Dune.md").read_text()
        said, asked_again = told(message, True)
        assert "no such open task" in said and not asked_again
        assert told("/tasks add Read it again --to [[Dune]] --due 2026-12-24", True)[0] == "Added to Books/Dune.md."
        assert (vault / "Books/Dune.md").read_text().endswith("\n- [ ] Read it again 📅 2026-12-24\n")
        assert not [one for one in double.requests if "messages" in one]


def test_a_model_asks_for_rows_and_answers_from_their_total(daemon: Start, home: Path, vault: Path) -> None:
    for path, text in NOTES.items():
        write(vault, path, text.replace("rating: ", "finished: 2026-01-02\nrating: "))
    write(vault, "Secret/Diary.md", "---\nrating: 5\nfinished: 2026-01-03\nhidden_name: 1\n---\n")
    with OllamaDouble() as double:
        talk = Talk(double, daemon, home, vault, settings='\n[privacy]\nlocal_only = ["Secret"]\n')
        talk.daemon.wait(lambda status: status["counts"]["notes"] >= 4 and status["behind"] == 0)
        where = 'file.inFolder("Books") && finished >= date("2026-01-01")'
        double.enqueue(Call("query_notes", {"where": where, "columns": "rating", "sort": "-rating"}))
        numbers = "".join(f"[{number}]" for number in range(1, 10))
        double.enqueue(Say(f"You finished 2 books in 2026: {numbers}"))
        *events, done = talk.whole(talk.ask("how many books did I finish in 2026"))
        [asked] = [one for one in events if one["type"] == "tool" and one["state"] == "done"]
        assert asked["text"].startswith("2 notes.\nColumns: path | rating")
        assert {one["path"] for one in asked["sources"]} == {"Books/Dune.md", "Books/Emma.md"}
        told = next(one["content"] for one in double.requests[-1]["messages"] if one["role"] == "tool")
        numbered = dict(line.split(" ", 1)[::-1] for line in told.splitlines() if line.startswith("["))
        assert set(numbered) == {"Books/Dune.md | 5", "Books/Emma.md | 4"}
        cited = {f"[{one['n']}]": (one["path"], one["start_line"], one["end_line"]) for one in done["citations"]}
        assert cited[numbered["Books/Dune.md | 5"]] == ("Books/Dune.md", 3, 3)
        assert "[[Books/Dune" in talk.note() and "Secret" not in talk.note()
        system = str(double.requests[-1]["messages"][0]["content"])
        block = system[system.index("<vault>\n") : system.rindex("</vault>")]
        assert "rating number 2+" in block and '"Books" 2+' in block and "hidden_name" not in system


def test_a_search_keeps_to_a_condition(run: Run, daemon: Start, vault: Path) -> None:
    for path, text in NOTES.items():
        write(vault, path, f"{text}\nThe heron waits.\n")
    daemon().wait(lambda status: status["counts"]["notes"] >= 3 and status["behind"] == 0)

    def found(*more: str) -> set[str]:
        return {hit["path"] for hit in json.loads(run("search", "heron", "--json", *more)[1])["hits"]}

    assert found() >= {"Books/Dune.md", "Books/Emma.md"} and found("--where", "rating > 4") == {"Books/Dune.md"}
    assert run("sgrep", "heron", "--where", "rating > 9")[0] == EXIT_NOTHING
    code, _, err = run("search", "heron", "--where", "rating >")
    assert code == EXIT_USAGE and "column 9" in err


def test_a_task_is_done_in_the_conversation_at_the_terminal(daemon: Start, vault: Path) -> None:
    for path, text in NOTES.items():
        write(vault, path, text)
    daemon().wait(lambda status: status["counts"]["notes"] >= 3 and status["behind"] == 0)
    with Screen(["chat", "-c", "mine"]) as screen:
        screen.see("› ")
        screen.type("/tasks --overdue")
        screen.see("- [ ] Give it back 📅 2020-01-02 — [[Books/Dune]] [1]")
        screen.see("Dune.md:5\n")
        for typed, end in (("n", "Nothing changed."), ("y", "Done:")):
            screen.type("/tasks done Books/Dune.md:5")
            screen.see("+- [x] Give it back")
            screen.see("Allow this?")
            screen.type(typed)
            screen.see(end)
            assert ("[x]" in (vault / "Books/Dune.md").read_text()) == (typed == "y")
        screen.type("/notes rating > 3 --sort -rating")
        assert screen.see("Books/Emma [2]").split()[-5:] == ["Note", "rating", "Books/Dune", "[1]", "5"]
        screen.type("/quit")
        assert screen.end() == EXIT_OK
