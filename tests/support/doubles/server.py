"""The frame of every stand-in: an HTTP server in a thread that records requests and streams what it is given."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Call:
    """A request as it came; `query` has the first value of each parameter, `body` is {} when there is none."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Reply:
    """What is answered: JSON, or a stream whose items are bytes, pauses in seconds, or ABORT."""

    json: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: Iterable[bytes | float | object] | None = None
    content_type: str = "application/json"


ABORT = object()
"""In a stream: tear the connection."""


class Double:
    """`with Double() as server`: subclasses override `reply`.

    `calls` has every request in order. `gone` counts streams whose reader closed the connection before their end.
    """

    protocol = "HTTP/1.1"
    """With 1.0 no connection is kept, and none outlives the server."""

    def __init__(self, port: int = 0) -> None:
        self.calls: list[Call] = []
        self.gone = 0
        self.open = 0
        self._lock = threading.Lock()
        double = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = double.protocol

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("content-length") or 0))
                url = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(url.query).items()}
                headers = {name.lower(): value for name, value in self.headers.items()}
                call = Call(self.command, url.path, query, headers, json.loads(raw) if raw else {})
                with double._lock:
                    double.calls.append(call)
                with contextlib.suppress(ConnectionError):
                    double._answer(self, double.reply(call))

            do_GET = do_DELETE = do_HEAD = do_PUT = do_POST

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, request: object, client_address: object) -> None:
                pass  # a client that was killed

        self._server = Server(("127.0.0.1", port), Handler)
        self.port = int(self._server.server_port)
        self.url = f"http://127.0.0.1:{self.port}"

    def secure(self, context: ssl.SSLContext, host: str = "127.0.0.1") -> Self:
        """Speak HTTPS from now on, as `host`."""
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )  # the handshake is made by the thread that reads
        self.url = f"https://{host}:{self.port}"
        return self

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def reply(self, call: Call) -> Reply:
        """What is answered to a request."""
        raise NotImplementedError

    def _answer(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        body = b"" if reply.stream is not None else json.dumps(reply.json).encode()
        handler.send_response(reply.status)
        for name, value in {"content-type": reply.content_type, **reply.headers}.items():
            handler.send_header(name, value)
        if reply.stream is None:
            handler.send_header("content-length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)
            return
        handler.send_header("connection", "close")  # the end of the connection is the end of the stream
        handler.end_headers()
        handler.wfile.flush()
        handler.close_connection = True
        with self._lock:
            self.open += 1
        try:
            self._stream(handler, reply.stream)
        except ConnectionError:
            with self._lock:
                self.gone += 1
        finally:
            with self._lock:
                self.open -= 1

    def _stream(self, handler: BaseHTTPRequestHandler, items: Iterable[bytes | float | object]) -> None:
        for item in items:
            if item is ABORT:
                handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                handler.connection.close()
                return
            if isinstance(item, int | float):
                self._pause(handler.connection, float(item))
            elif isinstance(item, bytes):
                handler.wfile.write(item)
                handler.wfile.flush()

    def _pause(self, connection: socket.socket, seconds: float) -> None:
        """Wait, and notice at once when the reader goes."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            readable, _, _ = select.select([connection], [], [], min(left, 0.05))
            if readable and not connection.recv(1, socket.MSG_PEEK):
                raise ConnectionResetError
