"""What a soak run does to a daemon at once: hands that write notes, readers, talkers, and those who behave badly."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import random
import re
import shutil
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).parent.parent))  # the stand-in for a model is part of the tests

from tests.support.doubles import script
from tests.support.doubles.openai import OpenAIDouble
from tests.support.doubles.script import Cut, Fail, Raw, Say
from tests.support.doubles.server import Reply

WORDS = [
    "harbour", "ferry", "tide", "lantern", "rope", "kettle", "bread", "rye", "starter", "oven", "garden", "bean",
    "letter", "meeting", "budget", "sail", "keel", "plank", "rivet", "engine", "oil", "filter", "pump", "night",
    "shift", "sleep", "doctor", "knee", "walk", "rain", "wind", "map", "train", "ticket", "hotel", "museum", "book",
    "chapter", "author", "idea", "draft", "essay", "index", "search", "memory", "note", "link", "graph", "plan",
    "review", "week", "goal",
]  # fmt: skip
ODD = [
    '"unclosed', "-", "tag:", "[status:", "after:x", "after:2026-13-40", "*", "NEAR(a b", "AND OR NOT", "", "(((",
    "path:../../x", "a" * 9_000, '[x:y] tag:z -w "q"', "before:0000-00-00", "\uff46\uff55\uff4c\uff4c", "日本語", "🛶",
    "\u202ex",
]  # fmt: skip
OWN = ("tars/", "Written/")
"""Where the daemon writes: its own folder, and the one that the model's changes go to."""

MOST_SESSIONS = 8
CUT_S = 10.0
"""After new settings the daemon's parts are built anew, and so long nobody may listen on TCP."""

TOKEN = "a-token-of-the-soak-0123456789"


class Tally:
    """What was asked and answered; `wrong` is what should not have been."""

    def __init__(self) -> None:
        self.replies: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.cuts: list[tuple[float, bool, str]] = []
        self.yes: set[str] = set()
        self.no: set[str] = set()
        self._lock = threading.Lock()

    def count(self, what: str) -> None:
        with self._lock:
            self.done[what] += 1

    def reply(self, route: str, status: int, allowed: tuple[int, ...], text: bytes) -> None:
        with self._lock:
            self.replies[f"{status}"] += 1
            if status not in allowed:
                self.wrong.append(f"{route}: {status} {text[:200]!r}")

    def cut(self, route: str, error: Exception, tcp: bool) -> None:
        """A connection that broke, or none."""
        with self._lock:
            self.cuts.append((time.time(), tcp, f"{route}: {type(error).__name__} {error}"))

    def unexplained(self, renewals: list[float]) -> list[str]:
        """The connections that broke, but for those over TCP while new settings came into force (s since 1970)."""
        said = [(tcp and any(-1 < at - one < CUT_S for one in renewals), tcp, text) for at, tcp, text in self.cuts]
        return [f"{'TCP' if tcp else 'socket'} {text}" for explained, tcp, text in said if not explained]


class Asker:
    """Asks the daemon over its socket and over TCP."""

    def __init__(self, connect: Callable[[bool], http.client.HTTPConnection], tally: Tally, rng: random.Random) -> None:
        self.connect, self.tally, self.rng = connect, tally, rng

    def ask(self, method: str, route: str, body: object = None, *, allowed: tuple[int, ...] = (200,)) -> Any:
        """The reply's JSON, None when there was none or it was an error."""
        name = f"{method} {route.split('?')[0]}"
        tcp = self.rng.random() < 0.3
        connection = self.connect(tcp)
        try:
            headers = {"content-type": "application/json", "authorization": f"Bearer {TOKEN}"}
            connection.request(method, route, None if body is None else json.dumps(body).encode(), headers)
            reply = connection.getresponse()
            text = reply.read()
        except (OSError, http.client.HTTPException) as error:
            self.tally.cut(name, error, tcp)
            return None
        finally:
            connection.close()
        self.tally.reply(name, reply.status, allowed, text)
        if reply.status >= 400 or b"x-ndjson" in (reply.headers.get("content-type") or "").encode():
            return None
        return json.loads(text)


class Model(OpenAIDouble):
    """The chat model: answers, calls tools, and fails in the ways that servers fail."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.rng = random.Random(seed)
        self.number = 0

    def reply(self, call: Any) -> Reply:
        """As the stand-in, with something else each time."""
        with self._guard:
            self.calls.clear()
            if call.path == "/v1/chat/completions":
                last = (call.body.get("messages") or [{}])[-1]
                self._steps = [self.steps(last.get("role") == "tool" or not call.body.get("tools"))]
        return super().reply(call)

    def steps(self, plain: bool) -> tuple[script.Step, ...]:
        said = Say(" ".join(self.rng.choices(WORDS, k=self.rng.randrange(3, 60))) + " [1].")
        kind = self.rng.random()
        if kind < 0.18:
            return self.rng.choice([
                (Fail(500),), (Fail(429, headers={"retry-after": "1"}),), (Fail(503, "Loading model"),), (said, Cut()),
                (said, Cut(abort=True)), (Raw(b"\xff\x00garbage\n\n"), Cut()), (Raw(b"data: {no json}\n\n"), Cut()),
                (said, Fail(500, "late")), (Fail(400, "context size exceeded"),), (Cut(),),
            ])  # fmt: skip
        if kind < 0.28:
            return (Say(said.text, pause=0.05),)
        if kind < 0.6 and not plain:
            return (self.tool(),)
        return (said,)

    def tool(self) -> script.Call:
        self.number += 1
        mark = f"tok{self.number}x"
        text = f"# Soak\n\nA line of the model, {mark}.\n"
        return self.rng.choice([
            script.Call("note_create", {"path": f"Written/Note {self.number}", "text": text}),
            script.Call("note_append", {"name": f"Note {self.rng.randrange(1, 40)}", "text": f"Added {mark}."}),
            script.Call("note_create", {"path": f"Written/Other {self.number}", "text": text}),
            script.Call("memory_remember", {"text": f"The {self.rng.choice(WORDS)} has number {mark}"}),
            script.Call("memory_search", {"query": self.rng.choice(WORDS)}),
            script.Call("note_read", {"name": self.rng.choice(WORDS)}),
            script.Call("note_list", {"recent": True}),
            script.Call("no_such_tool", {"a": 1}),
            script.Call("note_create", {"path": "../../x", "text": 5}),
        ])  # fmt: skip


class Hands:
    """Writes notes as a person and a sync tool do. `texts` is what they must hold: what was written last."""

    def __init__(self, vault: Path, rng: random.Random, tally: Tally) -> None:
        self.vault, self.rng, self.tally = vault, rng, tally
        self.texts = {path: hashed((vault / path).read_bytes()) for path in self.paths()}
        self.size = len(self.texts)
        self.number = 0

    def paths(self) -> list[str]:
        """The person's notes that are there."""
        found = (str(path.relative_to(self.vault)) for path in self.vault.rglob("*.md") if path.is_file())
        return sorted(path for path in found if not path.startswith((*OWN, ".")))

    def step(self) -> None:
        """One change; the vault stays about as large as it was."""
        many, few = len(self.texts) > 1.05 * self.size, len(self.texts) < 0.95 * self.size
        kinds = {"append": 6, "rewrite": 3, "truncate": 2, "replace": 4, "property": 3, "rename": 2, "move": 0.4,
                 "conflict": 1, "delete": 0.2 if few else 6 if many else 1.5, "new": 0.2 if many else 1.5}  # fmt: skip
        kind = self.rng.choices(list(kinds), list(kinds.values()))[0]
        getattr(self, kind)(self.rng.choice(list(self.texts)))
        self.tidy()
        self.tally.count(f"note: {kind}")

    def tidy(self) -> None:
        """The notes of conversations would grow for ever; a person throws some away."""
        sessions = sorted(self.vault.glob("tars/*/*.md"))
        for path in sessions[:-MOST_SESSIONS]:
            path.unlink(missing_ok=True)
            self.tally.count("note: conversation deleted")

    def put(self, path: str, raw: bytes) -> None:
        target = self.vault / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(raw)
        self.texts[path] = hashed(raw)

    def read(self, path: str) -> bytes:
        return (self.vault / path).read_bytes()

    def text(self) -> str:
        self.number += 1
        return note(self.rng, self.number)

    def append(self, path: str) -> None:
        raw = self.read(path)
        self.put(path, (raw if len(raw) < 8_000 else raw[:2_000]) + f"\n{line(self.rng)}\n".encode())

    def rewrite(self, path: str) -> None:
        self.put(path, self.text().encode())

    def truncate(self, path: str) -> None:
        raw = self.read(path)
        self.put(path, raw[: self.rng.choice([0, len(raw) // 2, len(raw) - 3])])

    def replace(self, path: str) -> None:
        raw = self.text().encode()
        temporary = self.vault / f"{path}.tmp{self.number}"
        temporary.write_bytes(raw)
        os.replace(temporary, self.vault / path)
        self.texts[path] = hashed(raw)

    def property(self, path: str) -> None:
        body = re.sub(rb"\A---\n.*?\n---\n", b"", self.read(path), flags=re.DOTALL)
        head = f"---\nstatus: {self.rng.choice(WORDS)}\ntags: [{self.rng.choice(WORDS)}, soak/x]\n---\n"
        self.put(path, head.encode() + body)

    def rename(self, path: str) -> None:
        self.number += 1
        folder = path.rpartition("/")[0] if self.rng.random() < 0.5 else self.rng.choice(WORDS)
        self.move_to(path, f"{folder}/{self.rng.choice(WORDS)} {self.number}.md".lstrip("/"))

    def move_to(self, path: str, new: str) -> None:
        (self.vault / new).parent.mkdir(parents=True, exist_ok=True)
        (self.vault / path).rename(self.vault / new)
        self.texts[new] = self.texts.pop(path)

    def move(self, path: str) -> None:
        self.number += 1
        old = path.partition("/")[0]
        if old == path:
            return
        new = f"{self.rng.choice(WORDS)} {self.number}"
        (self.vault / old).rename(self.vault / new)
        for one in [one for one in self.texts if one.startswith(f"{old}/")]:
            self.texts[new + one[len(old) :]] = self.texts.pop(one)

    def conflict(self, path: str) -> None:
        self.number += 1
        mark = self.rng.choice(
            [f".sync-conflict-20260101-{self.number:06}-ABCDEFG", f" (conflicted copy {self.number})"]
        )
        self.put(f"{path[:-3]}{mark}.md", self.read(path) + b"\nfrom elsewhere\n")

    def delete(self, path: str) -> None:
        (self.vault / path).unlink()
        del self.texts[path]

    def new(self, path: str) -> None:
        self.put(f"{self.rng.choice(WORDS)}/New {self.number}.md", self.text().encode())

    def damaged(self) -> list[str]:
        """Notes that are not as they were written, are gone, or came from nowhere."""
        there = {path: hashed(self.read(path)) for path in self.paths()}
        return sorted(path for path in there.keys() | self.texts.keys() if there.get(path) != self.texts.get(path))


def hashed(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def line(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=12)).capitalize() + f" [[{rng.choice(WORDS)}]] #{rng.choice(WORDS)}."


def note(rng: random.Random, number: int) -> str:
    head = f"---\naliases: [n{number}]\ncreated: 2026-0{rng.randrange(1, 10)}-1{rng.randrange(10)}\n---\n"
    parts = [f"## {rng.choice(WORDS)}\n\n" + "\n".join(line(rng) for _ in range(rng.randrange(2, 9))) for _ in range(3)]
    return head * (rng.random() < 0.6) + f"# {rng.choice(WORDS)} {number}\n\n" + "\n\n".join(parts) + "\n"


def make_vault(vault: Path, sample: Path, rng: random.Random, notes: int) -> None:
    """A vault of generated notes and the sample vault."""
    shutil.copytree(sample, vault)
    (vault / ".obsidian").mkdir(exist_ok=True)
    for number in range(notes):
        path = vault / rng.choice(WORDS) / f"{rng.choice(WORDS)} {number}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(note(rng, number), encoding="utf-8")


def look(asker: Asker, hands: Hands) -> None:
    """One question of a reader."""
    rng = asker.rng
    paths = list(hands.texts)
    path = rng.choice(paths) if paths else "x.md"
    query = rng.choice(ODD) if rng.random() < 0.2 else " ".join(rng.choices(WORDS, k=rng.randrange(1, 6)))
    match rng.randrange(9):
        case 0 | 1 | 2 | 3:
            body: dict[str, Any] = {
                "query": query,
                "mode": rng.choice(["hybrid", "fts", "vec"]),
                "limit": rng.randrange(1, 60),
            }
            if rng.random() < 0.3:
                body["filters"] = rng.choice(
                    [{"tag": "soak"}, {"path": "harbour"}, {"after": "2026-01-01"}, {"status": "x"}]
                )
            body |= {"audience": rng.choice(["here", "elsewhere"])} if rng.random() < 0.2 else {}
            asker.ask("POST", "/v1/search", body, allowed=(200, 422))
        case 4:
            asker.ask("POST", "/v1/related", {"path": path, "limit": 5}, allowed=(200, 404))
        case 5:
            asker.ask("POST", "/v1/why", {"path": path, "query": query or "x"}, allowed=(200, 404, 422))
        case 6:
            asker.ask("GET", f"/v1/notes?{rng.choice(['recent=20', 'tag=soak', 'folder=harbour', ''])}")
        case 7:
            asker.ask("GET", f"/v1/notes/{quote(path)}", allowed=(200, 400, 404))  # 400: in a folder that is left out
        case _:
            asker.ask("GET", rng.choice(["/v1/status", "/v1/hello", "/v1/conversations", "/v1/memory"]))
    if rng.random() < 0.02:
        asker.ask("POST", rng.choice(["/v1/reindex", "/v1/check", "/index"]), {"model": False})


class Talker:
    """A person who talks to the daemon in conversations of their own."""

    def __init__(self, asker: Asker, name: str) -> None:
        self.asker, self.name = asker, name
        self.number = 0
        self.turns: list[str] = []
        self.writes: list[str] = []

    def step(self) -> None:
        """A turn, or something between turns."""
        rng, ask = self.asker.rng, self.asker.ask
        conversation = f"{self.name}-{rng.randrange(5)}"
        kind = rng.random()
        if kind < 0.7:
            self.turn(conversation)
        elif kind < 0.78:
            body = {"conversation_id": conversation, "message": line(rng)}
            ask("POST", "/chat", body, allowed=(200, 413, 500, 502, 503))
        elif kind < 0.84:
            ask("POST", "/v1/memory", {"text": f"The {rng.choice(WORDS)} is {rng.choice(WORDS)}"}, allowed=(200, 409))
        elif kind < 0.88:
            kept = (ask("GET", "/v1/memory") or {}).get("facts") or []
            if kept:
                ask("POST", "/v1/memory/forget", {"line": rng.choice(kept)["line"]}, allowed=(200, 404, 409, 422))
        elif kind < 0.91:
            ask("POST", "/v1/memory/undo", allowed=(200, 404, 409))
        elif kind < 0.94 and self.writes:
            ask("POST", f"/v1/writes/{self.writes.pop()}/undo", allowed=(200, 404, 409))
        elif kind < 0.96:
            ask("PATCH", f"/v1/conversations/{conversation}", {"title": line(rng)[:60]}, allowed=(200, 404))
        elif kind < 0.98:
            ask("POST", f"/v1/conversations/{conversation}/close", allowed=(200, 404))
        elif kind < 0.99:
            ask("DELETE", f"/v1/conversations/{conversation}", allowed=(200, 404))
        elif self.turns and self.number < 300:
            body = {"turn": self.turns[-1], "verdict": rng.choice(["good", "wrong"]), "note": line(rng)}
            ask("POST", "/v1/feedback", body, allowed=(200, 404, 409))

    def turn(self, conversation: str) -> None:
        rng, tally = self.asker.rng, self.asker.tally
        self.number += 1
        body: dict[str, Any] = {
            "conversation": conversation,
            "message": line(rng),
            "request_id": f"{self.name}{self.number}",
        }
        body |= {"approvals": False} if rng.random() < 0.1 else {}
        # the same request again starts nothing, so that one that was cut may be repeated
        for _ in range(10):
            if begun := self.asker.ask("POST", "/v1/turns", body, allowed=(202, 409)):
                break
            time.sleep(1)
        else:
            tally.wrong.append("a turn could not be begun")
            return
        turn = str(begun["turn"])
        self.turns = [*self.turns[-20:], turn]
        stop_at = rng.randrange(1, 12) if rng.random() < 0.15 else 0
        seen, ended, end = 0, False, time.monotonic() + 90
        while not ended:
            polled = self.asker.ask("GET", f"/v1/turns/{turn}/events?after={seen}&wait=5")
            if time.monotonic() > end:
                tally.wrong.append(f"turn {turn} did not end in 90 s, {seen} events")
                return
            if polled is None:
                time.sleep(0.2)
                continue
            for event in polled["events"]:
                seen = event["seq"]
                self.answer(turn, event)
            ended = polled["ended"]
            if stop_at and seen >= stop_at and not ended:
                stop_at = 0
                self.asker.ask("POST", f"/v1/turns/{turn}/stop")
                tally.count("turn: stopped")
            if ended:
                tally.count(
                    "turn: failed" if polled["events"] and polled["events"][-1]["type"] == "failed" else "turn: done"
                )

    def answer(self, turn: str, event: dict[str, Any]) -> None:
        """A yes or a no where one is asked for; what became of it is remembered."""
        added = "\n".join(one for one in str(event.get("diff", "")).splitlines() if one.startswith("+"))
        tally, marks = self.asker.tally, set(re.findall(r"tok\d+x", added))
        if event["type"] == "approval":
            allow = self.asker.rng.random() < 0.6
            (tally.yes if allow else tally.no).update(marks)
            answer = {"allow": allow}
            self.asker.ask("POST", f"/v1/turns/{turn}/approvals/{event['call']}", answer, allowed=(200, 404, 409))
            tally.count("change: allowed" if allow else "change: refused")
        elif event["type"] == "write":
            self.writes = [*self.writes[-20:], str(event["id"])]


def misbehave(door: Callable[[bool], socket.socket], rng: random.Random) -> None:
    """A connection that is dropped, or a request that is none; no answer is waited for long."""
    search = json.dumps({"query": rng.choice(WORDS)}).encode()
    head = (
        f"POST /v1/search HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {len(search)}\r\n\r\n"
    )
    whole = head.encode() + search
    raw = rng.choice([
        whole[: rng.randrange(1, len(whole))], whole, b"GET /v1/status HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00",
        whole.replace(b"POST", b"TRACE"), whole.replace(search, b"[" * len(search)), b"\x00" * 99, b"X" * 70_000,
        b"POST /v1/memory HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /v1/notes/..%2f..%2fetc%2fpasswd HTTP/1.1\r\nHost: x\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ])  # fmt: skip
    with contextlib.suppress(OSError), door(rng.random() < 0.5) as connection:
        connection.settimeout(0.2)
        connection.sendall(raw)
        if rng.random() < 0.5:
            connection.recv(rng.randrange(1, 500))
        if rng.random() < 0.4:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
