"""Prompts with a real daemon and a scripted model: the same request from every client, and what narrows or stops it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tarsd.errors import ClientError
from tests.conftest import Daemon
from tests.support.conversation import Talk
from tests.support.doubles.openai import OpenAIDouble
from tests.support.doubles.script import Call, Say
from tests.support.engine import write
from tests.support.screen import Screen

Start = Callable[..., Daemon]

WEEKLY = """\
---
description: My week
tools: [note_read]
notes: ["[[Tides]]"]
where: status == "open"
---
Look back on {{arguments}} up to {{date}}.

{{query: file.name == "Boat"}}
"""


@pytest.fixture
def talk(daemon: Start, home: Path, vault: Path) -> Iterator[Talk]:
    write(vault, "tars/prompts/Weekly review.md", WEEKLY)
    write(vault, "Boat.md", "---\nstatus: open\n---\n# Boat\n\nVarnish it. See [[Quorl]].\n")
    write(vault, "Secret.md", "---\nstatus: open\nlocal_only: true\n---\n# Secret\n\nThe code is 0000.\n")
    with OpenAIDouble() as double:
        yield Talk(double, daemon, home, vault)


def asked(talk: Talk) -> dict[str, Any]:
    return [one for one in talk.double.requests if "/weekly-review" not in json.dumps(one["messages"])][-1]


def test_the_same_request_from_terminal_pane_and_page(talk: Talk) -> None:
    message = "/weekly-review the boat"
    requests = []
    for _ in range(4):
        talk.double.enqueue(Say("Well done."))
    talk.whole(talk.ask(message, conversation="pane", writer="client", approvals=True))
    requests.append(asked(talk))
    talk.whole(talk.ask(message, conversation="page", writer="daemon"))
    requests.append(asked(talk))
    env = {**os.environ, **{name: str(value) for name, value in talk.daemon.env.items()}}
    command = [sys.executable, "-c", "from tarsd.cli import tars; tars()", message, "--vault", str(talk.vault)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert "Well done." in done.stdout, done.stderr
    requests.append(asked(talk))
    chat = [sys.executable, "-c", "from tarsd.cli import main; main()", "chat", "--vault", str(talk.vault)]
    done = subprocess.run(chat, env=env, input=f"{message}\n", capture_output=True, text=True, timeout=120)
    assert "Well done." in done.stdout, done.stderr
    requests.append(asked(talk))
    assert len(requests) == 4
    for request in requests:
        assert request == requests[0]
    text = json.dumps(requests[0], ensure_ascii=False)
    assert "Look back on the boat up to 20" in text
    assert [tool["function"]["name"] for tool in requests[0]["tools"]] == ["note_read"]
    assert "06:12" in text  # the note that is attached
    assert text.count("Boat.md") >= 2  # a row of `where`, and one of the query
    assert "Weekly review.md" not in text


def test_private_rows_make_the_turn_private_and_tools_only_narrow(talk: Talk) -> None:
    talk.double.enqueue(Call("note_append", {"name": "Tides", "text": "x"}))
    talk.double.enqueue(Say("Done."))
    events = talk.whole(talk.ask("/weekly-review x"))
    assert "Secret.md" in talk.sent()  # the model is on this machine
    assert events[-1]["private"] is True
    assert [event["state"] for event in events if event["type"] == "tool"] == ["running", "failed"]
    assert not any(event["type"] == "approval" for event in events)
    retrieved = next(event for event in events if event["type"] == "retrieved")
    drawn = {one["path"] for one in retrieved["drew_on"]}
    assert {"tars/prompts/Weekly review.md", "Boat.md", "Secret.md", "Tides.md"} <= drawn


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ("tools: [no_such_tool]", "2: There is no tool named “no_such_tool”."),
        ("where: status ==", "2: "),
        ("model: anthropic:large", "2: A prompt cannot choose “anthropic:large”"),
        ("model: nothing", "2: A prompt cannot choose “nothing”"),
    ],
)
def test_what_is_wrong_reaches_no_model(talk: Talk, properties: str, said: str) -> None:
    write(talk.vault, "tars/prompts/bad.md", f"---\n{properties}\n---\nDo it.\n")
    before = len(talk.double.requests)
    events = talk.whole(talk.ask("/bad"))
    assert events[-1]["type"] == "failed"
    assert events[-1]["error"]["message"].startswith(f"tars/prompts/bad.md:{said}")
    assert len(talk.double.requests) == before


def test_another_model_of_the_same_server(talk: Talk) -> None:
    write(talk.vault, "tars/prompts/fast.md", "---\nmodel: openai:tiny\n---\nDo it.\n")
    talk.double.enqueue(Say("Done."))
    assert talk.whole(talk.ask("/fast"))[-1]["text"] == "Done."
    assert asked(talk)["model"] == "tiny"


def test_a_model_elsewhere_gets_nothing_private(daemon: Start, home: Path, vault: Path) -> None:
    write(vault, "tars/prompts/open.md", '---\nwhere: status == "open"\n---\nList them.\n')
    write(vault, "tars/prompts/mine.md", "---\nlocal_only: true\n---\nThe code is 0000.\n")
    write(vault, "tars/prompts/both.md", "![[mine]]\nList them.\n")
    write(vault, "Boat.md", "---\nstatus: open\n---\nVarnish.\n")
    write(vault, "Secret.md", "---\nstatus: open\nlocal_only: true\n---\nThe code is 0000.\n")
    with OpenAIDouble() as double:
        talk = Talk(double, daemon, home, vault)
        double.enqueue(Say("Done."))
        # whoever asks from elsewhere gets what a model elsewhere does
        events = talk.whole(talk.ask("/open", audience="elsewhere"))
        assert events[-1]["text"] == "Done."
        assert "Boat.md" in talk.sent()
        double.enqueue(Say("Done."))  # as if there were no such prompt
        assert talk.whole(talk.ask("/both", audience="elsewhere"))[-1]["text"] == "Done."
        double.enqueue(Say("What do you mean?"))
        assert talk.whole(talk.ask("/mine", audience="elsewhere"))[-1]["text"] == "What do you mean?"
        assert "Secret" not in talk.sent()
        assert "0000" not in talk.sent()


def test_without_a_model_a_prompt_is_a_question(daemon: Start, vault: Path) -> None:
    write(
        vault,
        "tars/prompts/ferry.md",
        '---\nwhere: file.name == "Quorl"\n---\nWhat holds the ferry ramp {{arguments}}?\n',
    )
    write(vault, "Quorl.md", "# Quorl\n\nA quorl is the brass wedge that holds the ferry ramp level.\n")
    client = daemon(vault).client
    turn = client.post("/v1/turns", {"conversation": "c", "message": "/ferry level", "request_id": "r1"})["turn"]
    events = list(client.stream(f"/v1/turns/{turn}/events"))
    assert "brass wedge" in events[-1]["text"]
    assert [one["path"] for one in events[-1]["citations"]] == ["Quorl.md"]


def test_a_command_of_tars_wins_and_says_so(talk: Talk) -> None:
    write(talk.vault, "tars/prompts/tasks.md", "Do it.\n")
    write(talk.vault, "tars/prompts/help.md", "Do it.\n")
    events = talk.whole(talk.ask("/tasks"))
    taken = "tars/prompts/tasks.md:1: It is not used, as /tasks is a command of tars."
    assert taken in events[-1]["notices"]
    failed = talk.whole(talk.ask("/help"))[-1]
    assert failed["error"]["message"] == "tars/prompts/help.md:1: It is not used, as /help is a command of tars."
    assert talk.double.requests == []


def test_prompts_are_offered_and_never_written_unasked(talk: Talk) -> None:
    reply = talk.client.get("/v1/prompts")
    assert [one["name"] for one in reply["prompts"]] == ["weekly-review"]
    assert {one["name"] for one in reply["offered"]} == {"improve", "questions", "summary", "weekly"}
    folder = talk.vault / "tars" / "prompts"
    assert [file.name for file in folder.iterdir()] == ["Weekly review.md"]
    for one in reply["offered"]:
        assert talk.client.post("/v1/prompts", {"name": one["name"]}) == {"path": one["path"]}
        assert (talk.vault / one["path"]).read_text(encoding="utf-8") == one["text"]
        with pytest.raises(ClientError, match="There is already a note at"):
            talk.client.post("/v1/prompts", {"name": one["name"]})
    reply = talk.client.get("/v1/prompts")
    assert reply["offered"] == []
    assert [one["problem"] for one in reply["prompts"]] == [""] * 5
    with pytest.raises(ClientError, match="is offered"):
        talk.client.post("/v1/prompts", {"name": "../weekly"})
    for _ in range(2):
        talk.double.enqueue(Say("Done."))
    assert talk.whole(talk.ask("/weekly"))[-1]["text"] == "Done."
    assert talk.whole(talk.ask("/summary", notes=["Tides.md"]))[-1]["text"] == "Done."


def test_the_terminal_completes_and_lists_prompts(talk: Talk) -> None:
    talk.double.enqueue(Say("Well done."))
    env = {name: str(value) for name, value in talk.daemon.env.items()}
    with Screen(["chat", "--vault", str(talk.vault)], **env) as screen:
        screen.see("›")
        screen.type("/help")
        screen.see("My week")
        screen.type("/wee\t", enter=False)
        screen.see("/weekly-review")
        screen.type("the boat")
        screen.see("Well done.")
        screen.type("/quit")
        screen.end()
    assert "Look back on the boat" in talk.sent()
