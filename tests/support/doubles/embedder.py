"""A stand-in for an Ollama server that embeds; it counts, and misbehaves as told."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable

from tests.support.doubles.server import Call, Double, Reply


class Ollama(Double):
    """`with Ollama() as server`: embeds by hashing words, of each text only the first `reads` ones.

    `answer` may replace the reply to a batch. `batches` and `times` tell what came and when. `others` are further names
    and the digests of their weights.
    """

    protocol = "HTTP/1.0"

    def __init__(self, port: int = 0, *, model: str = "nomic-embed-text:latest", reads: int = 2048) -> None:
        super().__init__(port)
        self.model, self.reads, self.dim = model, reads, 32
        self.context = 8192
        self.digest = "d1"
        self.others: dict[str, str] = {}
        self.batches: list[list[str]] = []
        self.times: list[float] = []
        self.answer: Callable[[list[str]], Reply | None] = lambda batch: None

    def reply(self, call: Call) -> Reply:
        if call.path == "/api/tags":
            listed = {self.model: self.digest, **self.others}.items()
            return Reply({"models": [{"name": name, "digest": digest} for name, digest in listed]})
        names = [self.model, *self.others]
        if call.body.get("model") not in (*names, *(name.removesuffix(":latest") for name in names)):
            return Reply({"error": f"model '{call.body.get('model')}' not found"}, 404)
        if call.path == "/api/show":
            info = {"general.architecture": "b", "b.context_length": self.context, "b.embedding_length": self.dim}
            return Reply({"model_info": info})
        batch: list[str] = call.body["input"]
        self.batches.append(batch)
        self.times.append(time.monotonic())
        return self.answer(batch) or Reply({"embeddings": [self.vector(text) for text in batch]})

    def vector(self, text: str) -> list[float]:
        row = [0.0] * self.dim
        for word in re.findall(r"\w+", text.lower())[: self.reads]:
            digest = hashlib.md5((word + self.digest.removeprefix("d1")).encode()).digest()
            row[digest[0] % self.dim] += 1.0 if digest[1] & 1 else -1.0
        return row if any(row) else [1.0] + [0.0] * (self.dim - 1)

    @property
    def texts(self) -> list[str]:
        """All texts that came, in order."""
        return [text for batch in self.batches for text in batch]
