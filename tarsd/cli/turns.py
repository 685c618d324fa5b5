"""A turn as a client has it: started once, its events followed to the end whatever the connection does, or stopped."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tarsd.client import Client
from tarsd.errors import ClientError

TRIES = 3
BACK_S = 10.0
"""How long a daemon that went away in the middle of an answer is waited for."""
LOOK_S = 0.25
GONE = f"The daemon is gone. Waiting up to {BACK_S:.0f} s for it to come back…"


def fresh() -> str:
    """The id of a new conversation."""
    return f"cli-{os.urandom(6).hex()}"


@dataclass
class TerminalChat:
    """A conversation at the terminal: which one it is, the notes that go with each message, and its last turn.

    `said` is what the person said last in it; `begun` tells whether anything was said in it from here.
    """

    client: Client
    conversation: str = field(default_factory=fresh)
    notes: list[str] = field(default_factory=list)
    turn: str = ""
    said: str = ""
    begun: bool = False


class RunningTurn:
    """A turn that runs in the daemon; if the daemon is gone, it is looked for every `look_s` seconds."""

    def __init__(self, client: Client, id: str, conversation: str = "", look_s: float = LOOK_S) -> None:
        self.id = id
        self.conversation = conversation
        self._client = client
        self._look_s = look_s
        self._seen = 0
        self._ended = False

    @classmethod
    def start(
        cls,
        client: Client,
        conversation: str,
        message: str,
        notes: Sequence[str] = (),
        *,
        approvals: bool,
        save: bool = False,
    ) -> RunningTurn:
        """Asks; without `approvals` whatever needs a yes is refused. `save`: a note is made of it in any case."""
        body: dict[str, Any] = {
            "conversation": conversation,
            "message": message,
            "request_id": os.urandom(16).hex(),
            "stop_when_left": True,
            "writer": "daemon",
            "approvals": approvals,
        }
        more: dict[str, Any] = ({"notes": list(notes)} if notes else {}) | ({"save": True} if save else {})
        reply = client.post("/v1/turns", body | more)
        return cls(client, str(reply["turn"]), conversation)

    def events(self) -> Iterator[Mapping[str, Any]]:
        """The events that were not given out yet, in order, each once; a lost connection is taken up again.

        Where the daemon itself is gone, an event of ours says so: waiting, without a number.
        """
        tries, gone = 0, 0.0
        while not self._ended:
            try:
                for event in self._client.stream(f"/v1/turns/{self.id}/events?after={self._seen}"):
                    self._seen, tries, gone = int(event.get("seq", self._seen)), 0, 0.0
                    self._ended = event.get("type") in ("done", "failed")
                    yield event
                    if self._ended:
                        return
                raise ClientError("The daemon broke off the answer.", code="cut")
            except ClientError as error:
                if error.code == "no_daemon" and tries:  # it was there, and may be starting again
                    if not gone:
                        gone = time.monotonic()
                        yield {"type": "waiting", "text": GONE}
                    if time.monotonic() - gone > BACK_S:
                        raise
                    time.sleep(self._look_s)
                    continue
                tries += 1
                if error.code != "cut" or tries >= TRIES:
                    raise

    def stop(self) -> None:
        """Ends the answer; what it has said so far stays."""
        self._client.post(f"/v1/turns/{self.id}/stop")

    def answer(self, call: str, *, allow: bool, always: bool = False) -> None:
        """Answers a call that waits for a yes."""
        body = {"allow": allow} | ({"always": True} if always else {})
        self._client.post(f"/v1/turns/{self.id}/approvals/{call}", body)
