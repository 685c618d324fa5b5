"""A stand-in for the daemon that answers what it was told, and passages as a search finds them."""

from __future__ import annotations

import json
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Self

Run = Callable[..., tuple[int, str, str]]

HIT = {
    "path": "House/Boiler.md",
    "title": "Boiler",
    "heading": "Pressure",
    "start_line": 10,
    "end_line": 13,
    "text": "## Pressure\n\nThe gauge should read 1.2 bar when cold.\nTop it up with the silver key.",
    "score": 1.5,
    "relevance": 0.83,
    "why": ["heading", "words: gauge"],
    "collection": "",
    "memory_type": None,
}


class KeepsFaults(socketserver.BaseServer):
    """A stand-in whose faults are those of the test that it serves; printed, they would stand in another one's output.

    A client that went away before its answer is none.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self.faults: list[BaseException] = []
        super().__init__(*args, **options)

    def handle_error(self, request: object, client_address: object) -> None:
        fault = sys.exception()
        if fault is not None and not isinstance(fault, ConnectionError):
            self.faults.append(fault)

    def check(self) -> None:
        """Raises the first fault."""
        if self.faults:
            raise self.faults[0]


class Stub(KeepsFaults, socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """A daemon that answers what it was told for each route: an object, (status, object), or lines as a list.

    An iterator of lines is sent as it goes; a function is called for any of these.
    """

    daemon_threads = True

    def __init__(self, path: Path) -> None:
        self.replies: dict[str, Any] = {}
        self.asked: list[tuple[str, Any]] = []
        super().__init__(str(path), _Handler)

    @contextmanager
    def answering(self) -> Iterator[Self]:
        """Answer in a thread, until the end of the block."""
        thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            self.shutdown()
            thread.join()
            self.server_close()
        self.check()


class _Handler(BaseHTTPRequestHandler):
    def address_string(self) -> str:
        return ""

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        stub = self.server
        assert isinstance(stub, Stub)
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        route = f"{self.command} {self.path}"
        stub.asked.append((route, json.loads(raw) if raw else None))
        if route not in stub.replies:
            self.close_connection = True  # hangs up, as a daemon that dies does
            return
        reply = stub.replies[route]
        if callable(reply):
            reply = reply()
        status, value = reply if isinstance(reply, tuple) else (200, reply)
        if isinstance(value, Iterator):
            self._stream(value)
            return
        body = (
            b"".join(json.dumps(line).encode() + b"\n" for line in [*value, {"type": "end"}])
            if isinstance(value, list)
            else json.dumps(value).encode()
        )
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_PATCH = do_DELETE = do_GET

    def _stream(self, lines: Iterator[Any]) -> None:
        self.send_response(200)
        self.end_headers()
        for line in lines:
            self.wfile.write(json.dumps(line).encode() + b"\n")
        self.wfile.write(b'{"type": "end"}\n')
