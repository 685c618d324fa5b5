"""The bytes of an answer and the chunks in them: found by what they are, whatever the server calls them. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from tarsd.providers.ollama_server import LineBuffer

_FIELD = re.compile(r"(event|id|retry)\s*:\s*(.*)")
_MARK = re.compile(r"\[?DONE\]?", re.IGNORECASE)
_JSON = json.JSONDecoder(strict=False)


class ChunkReader:
    """Fed with the bytes of one answer; gives what of it is JSON.

    That may be events (`data:` lines), an object on each line, or one object or list in all, on one line or on many.
    A chunk is whole when its JSON is. `done` once the mark of the end has come; `page` when it is a web page.
    """

    def __init__(self, where: str) -> None:
        self.done = self.page = False
        self._lines = LineBuffer(where)
        self._begun = ""  # of a chunk that is not whole
        self._failed = False  # the event calls itself an error
        self._found = self._strange = False

    def feed(self, piece: bytes) -> Iterator[object]:
        """The chunks that are whole by now. Raises ValueError for one that is none."""
        for line in self._lines.feed(piece):
            for text in line.decode("utf-8", "replace").lstrip("\ufeff").split("\r"):
                if not self.done and text.strip():
                    yield from self._read(text.strip())

    def end(self) -> Iterator[object]:
        """What a last line without an end holds. Raises ValueError when there was something else than an answer."""
        yield from self.feed(b"\n")
        if self._begun or (self._strange and not (self._found or self.done)):
            raise ValueError("no answer")

    def _read(self, text: str) -> Iterator[object]:
        """A line: a field of an event, or JSON as it is."""
        event = text.startswith("data:")
        text = text.removeprefix("data:").strip()
        if _MARK.fullmatch(text):
            self.done = True
        elif self._begun or text[:1] in ("{", "["):
            yield from self._grow(text, event)
        elif event and text:
            raise ValueError("a chunk that is no JSON")
        elif field := _FIELD.match(text):
            self._failed = field[2] == "error" if field[1] == "event" else self._failed
        elif text.startswith("<") and not self._found:
            self.page = True
        elif text and not text.startswith(":"):
            self._strange = True

    def _grow(self, text: str, event: bool) -> Iterator[object]:
        """More of a chunk; what stands behind it on the same line is read, too."""
        if self._begun and event and text.startswith('{"') and re.match(r'\{"(?:id|object|choices|error)"', text):
            raise ValueError("a chunk that was not whole")
        self._begun = f"{self._begun}\n{text}".strip()
        while self._begun[:1] in ("{", "[") and not _MARK.fullmatch(self._begun):
            if not self._begun.endswith(("}", "]")):
                return
            try:
                value, end = _JSON.raw_decode(self._begun)
            except ValueError:
                return  # it goes on
            rest, self._begun = self._begun[end:].strip().removeprefix("data:").strip(), ""
            for chunk in value if isinstance(value, list) and value else [value]:
                failed = self._failed and isinstance(chunk, dict) and not chunk.get("error")
                yield {"error": chunk} if failed else chunk
            self._found, self._failed = True, False
            self._begun = rest
        rest, self._begun = self._begun, ""
        if rest:
            yield from self._read(rest)
