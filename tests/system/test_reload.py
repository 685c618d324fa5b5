"""New settings while the daemon runs: what is sound comes into force, what is not is said."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tarsd.app import Application
from tarsd.config import Config, load
from tarsd.daemon.lock import listen
from tarsd.daemon.reload import ConfigReloader
from tarsd.daemon.serve import SocketListener, _build, _serve
from tarsd.protocol import SearchRequest
from tarsd.server import Runner
from tests.conftest import Daemon
from tests.support.doubles.embedder import Ollama as Embedder
from tests.support.doubles.openai import OpenAIDouble
from tests.support.doubles.script import Say
from tests.support.engine import LONG, Engine, write

Start = Callable[..., Daemon]


def settle(home: Path, text: str) -> None:
    """A config is written as an editor does: whole, under its own name."""
    fresh = home / "config.new"
    fresh.write_text(text, encoding="utf-8")
    os.replace(fresh, home / "config.toml")


def found(one: Daemon, query: str) -> list[tuple[str, str]]:
    hits = one.client.post("/v1/search", {"query": query})["hits"]
    return [(hit["collection"], hit["path"]) for hit in hits if query in hit["text"]]


def until(what: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 60
    while not (value := what()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return value


@pytest.mark.report("https://github.com/basicmachines-co/basic-memory/issues/156")
def test_a_vault_that_is_added_is_watched(vault: Path, home: Path, tmp_path: Path, daemon: Start) -> None:
    """A folder that is added while the daemon runs is watched, one that is taken away is answered from no more."""
    second, third = tmp_path / "work", tmp_path / "home"
    write(vault, "Own.md", "The quorl is in my own vault.")
    write(second, "Plan.md", "The brandle is planned for May.")
    write(third, "Plan.md", "The snib is mended.")
    named = '[[collection]]\nname = "{0}"\npath = "{1}"\n'
    settle(home, named.format("home", third))
    one = daemon()
    process, at = one.client.get("/v1/status")["process"], time.monotonic()
    assert found(one, "snib") == [("home", "Plan.md")]
    assert found(one, "brandle") == []

    settle(home, named.format("work", second))
    until(lambda: found(one, "brandle") == [("work", "Plan.md")])
    write(second, "Plan.md", "The brandle is planned for June, with a fettle.")
    until(lambda: found(one, "fettle") == [("work", "Plan.md")])
    assert found(one, "snib") == [], "the folder was taken away"
    write(third, "Plan.md", "The snib is mended with a grommet.")
    one.wait()
    assert found(one, "grommet") == []
    assert found(one, "quorl") == [("", "Own.md")]
    now, passed_s = one.client.get("/v1/status")["process"], time.monotonic() - at
    assert now["pid"] == process["pid"], "nobody has to start it again"
    assert now["uptime_s"] >= process["uptime_s"] + passed_s - 0.2, "it has run since it was started"
    assert [each["name"] for each in one.client.get("/v1/hello")["collections"]] == ["work"]


def test_a_fault_leaves_the_settings_as_they_were_and_is_said_until_it_is_mended(
    vault: Path, home: Path, daemon: Start
) -> None:
    settle(home, '[chat]\nmodel = "extractive"\n')
    one = daemon(TARSD_CHAT="")
    settle(home, '[chat]\nmodel = "nonsense"\nrounds = "many"\n')
    status = one.wait(lambda status: "The config has errors" in json.dumps(status["problems"]))
    assert "config.toml:2" in json.dumps(status["problems"])
    assert "config.toml:3" in json.dumps(status["problems"])
    assert one.client.get("/v1/hello")["chat_model"] == "extractive"
    settle(home, '[chat]\nmodel = "fake"\n')
    until(lambda: one.client.get("/v1/hello")["chat_model"] == "fake")
    assert "The config has errors" not in json.dumps(one.client.get("/v1/status")["problems"])


def test_a_config_that_names_another_vault_moves_nothing(
    vault: Path, home: Path, tmp_path: Path, daemon: Start
) -> None:
    settle(home, f'[vault]\npath = "{tmp_path}"\nexclude = ["Old/"]\n')
    one = daemon()
    settle(home, f'[vault]\npath = "{tmp_path}"\nexclude = ["New/"]\n')
    write(vault, "New/Note.md", "The tangle is here.")
    write(vault, "Old/Note.md", "The mangle is here.")
    until(lambda: found(one, "mangle") and not found(one, "tangle"))
    assert one.client.get("/v1/hello")["vault"]["path"] == str(vault), "it was named at the start"


@contextlib.contextmanager
def settled_in_an_answer(home: Path, daemon: Start, text: str) -> Iterator[tuple[Daemon, str]]:
    """A daemon that is giving an answer, while new settings wait for its end; and the turn."""
    with OpenAIDouble() as model:
        settle(home, model.config())
        one = daemon(TARSD_CHAT="", **model.env())
        model.enqueue(Say(text, pause=0.5))
        turn = one.client.post("/v1/turns", {"conversation": "c", "message": "count", "request_id": "r"})["turn"]
        until(lambda: model.requests)
        settle(home, '[chat]\nmodel = "extractive"\n')
        one.wait(lambda status: "wait until the current answer" in json.dumps(status["problems"]))
        yield one, turn


def test_new_settings_wait_for_the_answer_that_is_being_given(vault: Path, home: Path, daemon: Start) -> None:
    with settled_in_an_answer(home, daemon, "one two three four five six seven eight nine ten") as (one, turn):
        (last,) = [e for e in one.client.stream(f"/v1/turns/{turn}/events") if e["type"] in ("done", "failed")]
        assert (last["type"], last.get("text")) == ("done", "one two three four five six seven eight nine ten")
        until(lambda: one.client.get("/v1/hello")["chat_model"] == "extractive")


def test_a_request_meanwhile_is_answered_and_a_signal_looks_at_once(vault: Path, home: Path, daemon: Start) -> None:
    write(vault, "Own.md", "The quorl is in my own vault.")
    one = daemon()
    for number in range(5):
        settle(home, f'[vault]\npath = "{vault}"\nexclude = ["Old {number}/"]\n')
        one.process.send_signal(signal.SIGHUP)
        for _ in range(20):
            assert one.client.get("/v1/hello")["name"] == "tarsd"
    until(lambda: found(one, "quorl"))
    assert one.stop() == 0


def test_a_second_save_while_the_first_one_waits_is_not_lost(vault: Path, home: Path, daemon: Start) -> None:
    with settled_in_an_answer(home, daemon, "one two three four five six seven") as (one, turn):
        settle(home, '[chat]\nmodel = "fake"\n')
        assert list(one.client.stream(f"/v1/turns/{turn}/events"))[-1]["type"] == "done"
        until(lambda: one.client.get("/v1/hello")["chat_model"] == "fake")


@pytest.mark.parametrize("gone", [True, False])
def test_a_config_that_is_gone_or_empty_opens_nothing_that_is_private(
    vault: Path, home: Path, daemon: Start, gone: bool
) -> None:
    def elsewhere() -> list[str]:
        hits = one.client.post("/v1/search", {"query": "quorl", "audience": "elsewhere"})["hits"]
        return [hit["path"] for hit in hits]

    write(vault, "Private/Diary.md", "The quorl is a secret of mine.")
    text = '[privacy]\nlocal_only = ["Private/"]\n'
    settle(home, text)
    one = daemon()
    assert found(one, "quorl") == [("", "Private/Diary.md")]
    if gone:
        (home / "config.toml").unlink()
    else:
        (home / "config.toml").write_text("\n")
    one.wait(lambda status: "missing or empty" in json.dumps(status["problems"]))
    assert elsewhere() == []
    settle(home, text + "\n")
    one.wait(lambda status: "missing or empty" not in json.dumps(status["problems"]))
    assert elsewhere() == []
    settle(home, "# nothing is private any more\n")
    until(lambda: elsewhere() == ["Private/Diary.md"])


def test_new_privacy_does_not_wait_for_an_answer(vault: Path, home: Path, daemon: Start) -> None:
    write(vault, "Private/Diary.md", "The quorl is a secret of mine.")
    with OpenAIDouble() as model:
        settle(home, model.config())
        one = daemon(TARSD_CHAT="", **model.env())
        model.enqueue(Say("one two three four five six seven eight nine ten " * 6, pause=0.5))
        one.client.post("/v1/turns", {"conversation": "c", "message": "count", "request_id": "r"})
        until(lambda: model.requests)
        settle(home, model.config() + '[privacy]\nlocal_only = ["Private/"]\n')
        ask = {"query": "quorl", "audience": "elsewhere"}
        until(lambda: one.client.post("/v1/search", ask)["hits"] == [])
        (turn,) = one.client.get("/v1/conversations/c")["turns"]
        assert turn["state"] == "interrupted"
        assert turn["text"].startswith("one two"), "what had come is kept"


@pytest.mark.parametrize(
    "other",
    ['[privacy]\nlocal_only = ["Private/"]\n', '[privacy]\nlocal_only = ["#mine"]\n', "[search]\nweight_vec = 1.1\n"],
    ids=["a private folder", "a private tag", "weights"],
)
def test_no_new_settings_cut_a_search(vault: Path, home: Path, daemon: Start, other: str) -> None:
    """A search may take long on a busy machine, or where the server of its model is slow."""
    asked, released = threading.Event(), threading.Event()

    def slow(batch: list[str]) -> None:
        if "quorl" in batch[0] and len(batch) == 1:
            asked.set()
            released.wait(LONG)

    write(vault, "Note.md", "The heron stands on the dock.")
    with Embedder() as model:
        settings = f'[embedding]\nmodel = "ollama:{model.model}"\n[ollama]\nhost = "{model.url}"\n'
        settle(home, settings)
        one = daemon(TARSD_EMBEDDING="")
        one.wait(lambda status: status["embedding"]["state"] == "complete")
        model.answer = slow
        with ThreadPoolExecutor(1) as pool:
            search = pool.submit(one.client.post, "/v1/search", {"query": "quorl heron"})
            assert asked.wait(LONG)
            settle(home, settings + other)
            time.sleep(4)  # longer than what is let in and what is let out wait for by themselves
            released.set()
            assert [hit["path"] for hit in search.result()["hits"]] == ["Note.md"]


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 5000,
        "a = " + "9" * 5000,
        '[openai]\nbase_url = "http://\\u0000"\n[chat]\nmodel = "openai:x"\n',
        '[http]\nenabled = true\nhost = "\\u0000"\n',
        '[[mcp]]\nname = "a"\ncommand = ["a\\u0000b"]\n',
    ],
    ids=["deep", "number", "url", "host", "command"],
)
def test_no_config_ends_the_daemon(vault: Path, home: Path, daemon: Start, text: str) -> None:
    settle(home, '[chat]\nmodel = "fake"\n')
    one = daemon(TARSD_CHAT="")
    settle(home, text)
    one.process.send_signal(signal.SIGHUP)
    time.sleep(1.5)  # some of it is no fault before it is used
    settle(home, '[chat]\nmodel = "extractive"\n')
    until(lambda: one.client.get("/v1/hello")["chat_model"] == "extractive")


def test_who_asks_all_the_time_is_answered_all_the_time(vault: Path, home: Path, daemon: Start) -> None:
    write(vault, "Own.md", "The quorl is in my own vault.")
    one = daemon()
    begun = time.monotonic()
    for number in range(40):
        if number % 10 == 0:
            settle(home, f'[vault]\npath = "{vault}"\nexclude = ["Old {number}/"]\n')
            one.process.send_signal(signal.SIGHUP)
        reply = one.client.post("/chat", {"conversation_id": f"c{number}", "message": "where is the quorl?"})
        assert "my own vault" in reply["reply"]
        assert found(one, "quorl")
    assert time.monotonic() - begun < 120


def test_a_signal_while_it_starts_is_no_end(vault: Path, daemon: Start) -> None:
    one = daemon(wait=False)
    until(lambda: one.config.paths.lock.exists())
    for _ in range(20):
        one.process.send_signal(signal.SIGHUP)
        time.sleep(0.05)
    one.wait()
    assert one.stop() == 0


@pytest.mark.parametrize("steps", range(6))
async def test_who_knocks_while_the_door_is_shut_is_answered(home: Path, steps: int) -> None:
    async def hello(request: web.Request) -> web.Response:
        return web.Response(text="here")

    def runner() -> Runner:
        app = web.Application()
        app.router.add_get("/", hello)
        return Runner(app)

    server = listen(home / "door.sock")
    door = SocketListener(load(vault=home / "v"), server)
    first, second = runner(), runner()
    await first.setup()
    await door.open(first)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(home / "door.sock"))
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        for _ in range(steps):  # so far has the loop come with letting it in
            await asyncio.sleep(0)
        await first.drain()
        await first.cleanup()
        await second.setup()
        await door.open(second)
        client.settimeout(30)
        assert (await asyncio.to_thread(client.recv, 1000)).startswith(b"HTTP/1.1 200")
    await second.cleanup()
    door.close()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="what a process holds is read from /proc")
def test_nothing_is_left_of_the_parts_before(vault: Path, home: Path, daemon: Start) -> None:
    write(vault, "Own.md", "The quorl is in my own vault.")
    one = daemon()

    def renewals() -> int:
        return (home / "logs" / f"tarsd-{one.config.vault_id}.log").read_text(encoding="utf-8").count("have changed")

    def tables() -> int:
        maps = Path(f"/proc/{one.process.pid}/maps").read_text(encoding="utf-8")
        return len([line for line in maps.splitlines() if line.endswith("table/vectors.npy")])

    assert found(one, "quorl")
    before = tables()
    assert before > 0
    for number in range(6):
        settle(home, f"[chat]\nrounds = {number + 2}\n")
        one.process.send_signal(signal.SIGHUP)
        until(lambda wanted=number + 1: renewals() >= wanted)  # type: ignore[misc]
        assert found(one, "quorl")
        one.client.get("/v1/status")
    until(lambda: tables() <= before + 2)


async def test_new_settings_wait_for_requests_but_not_for_ever(tmp_path: Path) -> None:
    """Also for those that wait for a thread themselves, as searches do on a busy machine."""
    with Engine(tmp_path) as engine:
        released = threading.Event()
        app = engine.app
        await app.requests_done(LONG)
        work = [asyncio.create_task(app.thread(released.wait)) for _ in range(20)]
        await asyncio.sleep(0)
        await app.requests_done(0.0)  # one that hangs is left alone after a while
        done = asyncio.create_task(app.requests_done(LONG))
        await asyncio.sleep(0.1)
        assert not done.done()
        released.set()
        await done
        assert all(await asyncio.gather(*work))


class AtOnce(ConfigReloader):
    """New settings as soon as `asked` was called with the running parts."""

    def __init__(self, config: Config, asked: Callable[[], object]) -> None:
        super().__init__(config, lambda: config)
        self._config_then, self._asked_first = config, asked

    async def wait(self, say: Callable[[str, str], None], busy: Callable[[], bool]) -> Config:
        await asyncio.to_thread(self._asked_first)
        return self._config_then


def ask_for_all(app: Application) -> None:
    until(lambda: app.indexing.behind() == 0)
    assert app.search(SearchRequest("quorl"))["hits"]
    app.status()


def held_by(app: Application) -> list[Any]:
    indexing, assistant = app.indexing, app.assistant
    of_index = [indexing, indexing.indexer, indexing.store, indexing.searcher(), *indexing.embedders]
    return [app, app.library, *of_index, assistant, assistant.chat, assistant.provider, assistant.mcp]


@pytest.mark.parametrize("embedding", ["table", "minilm", "ollama:e", "openai:e"])
async def test_no_object_of_the_parts_before_is_alive(
    vault: Path, home: Path, monkeypatch: pytest.MonkeyPatch, embedding: str
) -> None:
    """Sessions, tokenizers, tables, clients and databases go with the parts that hold them."""
    monkeypatch.setenv("TARSD_EMBEDDING", embedding)
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    write(vault, "Own.md", "The quorl is in my own vault.")
    config, stopping = load(vault=vault), asyncio.Event()
    config.paths.state.mkdir(parents=True)
    config.paths.cache.mkdir(parents=True)
    door = SocketListener(config, listen(config.paths.socket))
    parts = await _build(config, door, stopping)
    await _serve(parts, door, stopping, AtOnce(config, partial(ask_for_all, parts.app)))
    alive = [weakref.ref(part) for part in (parts.runner, parts.tcp, *held_by(parts.app))]
    del parts
    deadline = time.monotonic() + 20  # threads of the file watch end in their own time
    while left := [type(part).__name__ for ref in alive if (part := ref()) is not None]:
        part = None
        assert time.monotonic() < deadline, left
        gc.collect()
        await asyncio.sleep(0.05)
    door.close()
