"""Requests over TCP as bytes, so that anything can be sent, and their answers."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TOKEN = "a-token-of-the-tests-0123456789"


@dataclass(frozen=True)
class Reply:
    """An answer as it came; status 0 when the connection ended without one."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.json["error"]["code"])


def exchange(port: int, raw: bytes) -> Reply:
    """Send bytes and read the answer, or until the other side closes."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        try:
            connection.sendall(raw)
            while not is_whole(received) and (block := connection.recv(1 << 16)):
                received += block
        except ConnectionError:
            pass
    head, _, body = received.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    if not head:
        return Reply(0, {}, b"")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    return Reply(int(lines[0].split()[1]), headers, body)


def is_whole(received: bytes) -> bool:
    """Whether an answer that tells its length is there."""
    head, found, body = received.lower().partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    return bool(found) and (b" 204 " in head or (length is not None and len(body) >= int(length[1])))


def message(
    port: int, method: str, path: str, body: bytes = b"", *, token: str | None = TOKEN, **headers: str
) -> bytes:
    """A request as bytes; `headers` may replace the Host."""
    given = {"Host": f"127.0.0.1:{port}", "Connection": "close", "Content-Length": str(len(body))}
    given |= {"Authorization": f"Bearer {token}"} if token is not None else {}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items() if value)]
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body
