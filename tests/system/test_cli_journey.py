"""A first session with the commands alone, against a real daemon that quotes, and one with a scripted model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tarsd.doctor import embedding
from tarsd.errors import EXIT_NOTHING, EXIT_OK
from tests.conftest import Daemon
from tests.support.doubles.openai import OpenAIDouble
from tests.support.doubles.script import Call, Say, Think
from tests.support.screen import Screen
from tests.support.stub import Run

Start = Callable[..., Daemon]
GAUGE = "# Boiler\n\nThe gauge should read 1.2 bar when cold.\n"


def test_remember_ask_judge_review_and_find_again(run: Run, daemon: Start, vault: Path) -> None:
    (vault / "Boiler.md").write_text(GAUGE)
    one = daemon()
    assert "Remembered in tars/Memory.md." in run("memory", "remember", "My sister is Ann")[1]
    one.wait(lambda status: status["counts"]["notes"] == 2 and status["behind"] == 0)
    code, out, _ = run("ask", "--save", "who is my sister?")
    assert (code, "My sister is Ann" in out) == (EXIT_OK, True)

    said = "what should the gauge read?\n/save\n/w Say it in psi\n/remember My sister is Anna\n"
    code, out, err = run("chat", "-c", "boiler talk", stdin=said)
    assert code == EXIT_OK
    assert "The gauge should read 1.2 bar when cold." in out
    assert "Noted in tars/corrections.md." in out
    assert "That contradicts what is remembered: My sister is Ann." in err

    reply = json.loads(run("review", "--json")[1])
    assert [proposal["text"] for proposal in reply["proposals"]] == ["Say it in psi"]
    id = reply["proposals"][0]["id"]
    assert "not a rule yet" in run("review", "apply", reply["review"], "--apply", id)[2]
    code, out, _ = run("review", "apply", reply["review"], "--edit", id, "Give pressures in psi")
    assert (code, "Give pressures in psi" in out) == (EXIT_OK, True)
    assert "Give pressures in psi" in (vault / "tars" / "Procedural.md").read_text()
    assert run("review", "--json")[0] == EXIT_NOTHING

    assert run("reindex")[0] == EXIT_OK
    assert "boiler talk" in run("sessions")[1]
    assert json.loads(run("sessions", "--search", "cold", "--json")[1])["conversations"][0]["id"] == "boiler talk"
    assert run("sessions", "rename", "boiler talk", "Pressure")[0] == EXIT_OK
    assert "Pressure\ntars/sessions/" in run("sessions", "show", "boiler talk")[1]
    assert run("sessions", "delete", "boiler talk", "--yes")[0] == EXIT_OK
    assert len(list((vault / "tars" / "sessions").glob("*.md"))) == 2, "the notes of both conversations stay"

    assert "Undone: tars/" in run("memory", "undo")[1]
    assert run("memory", "forget", "sister", "--yes")[0] == EXIT_OK
    assert "sister" not in (vault / "tars" / "Memory.md").read_text()
    assert "extractive" in run("models")[1]


def test_the_embedding_models_are_told_with_what_a_change_costs_this_vault(
    run: Run, daemon: Start, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = [embedding.BuiltIn("minilm", "English best", 1, 10.0), embedding.BuiltIn("table", "single words", 1, 1e4)]
    monkeypatch.setattr(embedding, "built_in", lambda: known)
    for number in range(40):
        (vault / f"{number}.md").write_text(GAUGE)
    chunks = daemon().wait()["counts"]["chunks"]
    reply = json.loads(run("model", "list", "--json")[1])
    assert (reply["used"], reply["passages"]) == ("table", chunks)
    assert f"a change embeds all {chunks} passages in about 4 s" in run("model")[1]


def test_a_conversation_at_the_terminal_with_a_model(daemon: Start, vault: Path) -> None:
    (vault / "Boiler.md").write_text(GAUGE)
    daemon(TARSD_CHAT="fake")
    with Screen(["chat", "-c", "mine"]) as screen:
        screen.see("› ")
        screen.type("what should the gauge read?")
        screen.see("read, none cited.")
        screen.see("› ")
        screen.type("/remember My sister is Ann")
        screen.see("+ My sister is Ann")
        screen.see("› ")
        screen.type("/remember My sister is Anna")
        screen.see("Replace “My sister is Ann”? [y/N] ")
        screen.type("y")
        screen.see("+ My sister is Anna")
        screen.type("/forget sister")
        screen.see("- My sister is Anna\n")
        screen.type("y")
        screen.see("Forgotten")
        screen.type("/quit")
        screen.see("Saved in tars/sessions/")
        assert screen.end() == EXIT_OK
    with Screen(["chat", "--last"]) as screen:
        screen.see("Continuing: what should the gauge read? (1 turn)")
        screen.type("/quit")
        assert screen.end() == EXIT_OK


def test_a_model_asks_before_it_writes_and_can_be_stopped(daemon: Start, vault: Path, home: Path) -> None:
    shopping = vault / "Shopping.md"
    shopping.write_text("# Shopping\n\n- tea\n")
    with OpenAIDouble() as double:
        (home / "config.toml").write_text(double.config())
        daemon(TARSD_CHAT=f"openai:{double.model}", **double.env())
        with Screen(["chat", "-c", "mine"]) as screen:
            screen.see(f"tars · openai:{double.model} · /help")
            screen.see("› ")
            for text, typed in (("- milk", "n"), ("- bread", "a"), ("- salt", "")):
                call = Call("note_append", {"name": "Shopping", "text": text})
                double.enqueue(Think("They want it on the list."), call)
                double.enqueue(Say(f"That was {text}."))
                screen.type(f"put {text} on the list")
                screen.see("Thought: They want it on the list.")
                if typed:
                    screen.see(f"+{text}\n")
                    screen.see("Allow this? (a = always in this conversation) [y/N/a] ")
                    screen.type(typed)
                screen.see("✗ note_append" if typed == "n" else "✓ note_append")
                screen.see(f"That was {text}.")
                screen.see("› ")
            double.enqueue(Say("and so on " * 2000, pause=0.05))
            screen.type("tell me a story")
            screen.see("and so on")
            screen.interrupt("Stopped.")
            screen.see("› ")
            screen.type("/quit")
            screen.see("Continue with")
            assert screen.end() == EXIT_OK
    assert shopping.read_text() == "# Shopping\n\n- tea\n- bread\n- salt\n"
    (note,) = (vault / "tars" / "sessions").glob("*.md")
    assert "and so on" in note.read_text()
