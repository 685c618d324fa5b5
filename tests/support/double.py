"""A stand-in for an Ollama server on loopback that counts, and misbehaves as told."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Reply = tuple[int, Any, dict[str, str]]


class Ollama:
    """`with Ollama() as server`: embeds by hashing words, of each text only the first `reads` ones.

    `answer` may replace the reply to a batch. `batches` and `times` tell what came and when.
    """

    def __init__(self, port: int = 0, *, model: str = "nomic-embed-text:latest", reads: int = 2048) -> None:
        self.model, self.reads, self.dim = model, reads, 32
        self.context = 8192
        self.batches: list[list[str]] = []
        self.times: list[float] = []
        self.answer: Callable[[list[str]], Reply | None] = lambda batch: None
        double = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("content-length") or 0))
                status, body, headers = double.reply(self.path, json.loads(raw) if raw else {})
                content = json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"content-type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST

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

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def reply(self, path: str, body: dict[str, Any]) -> Reply:
        if path == "/api/tags":
            return 200, {"models": [{"name": self.model, "digest": "d1"}]}, {}
        if body.get("model") not in (self.model, self.model.removesuffix(":latest")):
            return 404, {"error": f"model '{body.get('model')}' not found"}, {}
        if path == "/api/show":
            info = {"general.architecture": "b", "b.context_length": self.context, "b.embedding_length": self.dim}
            return 200, {"model_info": info}, {}
        self.batches.append(body["input"])
        self.times.append(time.monotonic())
        special = self.answer(body["input"])
        return special or (200, {"embeddings": [self.vector(text) for text in body["input"]]}, {})

    def vector(self, text: str) -> list[float]:
        row = [0.0] * self.dim
        for word in re.findall(r"\w+", text.lower())[: self.reads]:
            digest = hashlib.md5(word.encode()).digest()
            row[digest[0] % self.dim] += 1.0 if digest[1] & 1 else -1.0
        return row if any(row) else [1.0] + [0.0] * (self.dim - 1)

    @property
    def texts(self) -> list[str]:
        """All texts that came, in order."""
        return [text for batch in self.batches for text in batch]
