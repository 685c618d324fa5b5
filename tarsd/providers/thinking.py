"""Reasoning that a model writes into its answer, between tags, told apart from the answer as it streams."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tarsd.parse.spans import Span, spans
from tarsd.providers.base import Retract, Text, Thinking

_THINK = ("</think>", "</thinking>")
_HARMONY = ("<|end|>", "<|start|>assistant", "<|channel|>final<|message|>")

# What opens reasoning, and what closes that form of it; all in lower case.
FORMS: Mapping[str, tuple[str, ...]] = {
    "<think>": _THINK,
    "<thinking>": _THINK,
    "[think]": ("[/think]",),
    "<thought>": ("</thought>",),
    "<seed:think>": ("</seed:think>",),
    "<|channel|>analysis<|message|>": _HARMONY,
    "<|channel|>commentary<|message|>": _HARMONY,
    "<|channel>thought\n": ("<channel|>",),
}
# These close reasoning that a template opened outside the stream; others are too likely to be an answer's own words.
_LONE = (*_THINK, "[/think]", "</seed:think>")
# What stands between the parts of a harmony message, and is for nobody's eyes.
_SILENT = ("<|start|>assistant", "<|channel|>final<|message|>")
# A call of harmony: an answer, for it may be made, until a final message shows that it was none.
_CALLS = ("<|channel|>commentary to=", "<|channel|>analysis to=", "to=functions.")
_FINAL = ("<|channel|>final<|message|>",)
# What a model ends its turn with; some servers let it through. At the end alone, for elsewhere it is a word.
_ENDS = (
    "<|return|>", "<|end|>", "<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|im_end|>", "<|endoftext|>", "<|end_of_text|>",
    "<|end_of_turn|>", "<|end_of_turn_token|>", "<end_of_turn>", "<turn|>", "<eos>", "<｜end▁of▁sentence｜>", "</s>",
)  # fmt: skip
_TAIL = re.compile(rf"\s*(?:(?:{'|'.join(map(re.escape, _ENDS))})\s*)+\Z", re.IGNORECASE)
_TAIL_LENGTH = 200

Piece = Text | Thinking | Retract


class Splitter:
    """Fed with the text of one stream, in pieces of any size; gives back what of it is answer and what is reasoning.

    An opening tag counts only before any answer, a closing one only outside code. A closing tag without an opening
    one makes reasoning of all that stands before it. A block that is never closed is reasoning to its end.
    """

    def __init__(self) -> None:
        self._rest = ""  # what is not decided yet
        self._mode = "start"
        self._closing: Sequence[str] = _LONE
        self._apart = False  # reasoning was seen as such, so a lone closing tag is only a word
        self._block = ""  # what is decided of this block of reasoning, or of the answer
        self._answer = ""

    @property
    def said(self) -> str:
        """The answer so far."""
        return self._answer

    def apart(self) -> None:
        """The server itself tells reasoning apart: from now on a closing tag in the answer is text."""
        self._apart = True

    def feed(self, text: str) -> list[Piece]:
        """The pieces that are certain by now."""
        self._rest += text
        return self._run(last=False)

    def end(self) -> list[Piece]:
        """What was held back, when nothing follows any more."""
        pieces = self._run(last=True)
        fence = _open_fence(self._block) if self._mode == "thinking" else None
        if fence and (tag := _any_of(self._closing).search(self._block, fence.start)):
            # A fence that nobody closed hid the end of the reasoning: better said late than never.
            self._answer = self._block[tag.end() :].lstrip()
            pieces += [Text(self._answer)] if self._answer else []
        return pieces

    def _run(self, *, last: bool) -> list[Piece]:
        pieces: list[Piece] = []
        while True:
            before = len(self._rest)
            if self._mode == "start":
                self._start(last)
            if self._mode != "start":
                self._scan(pieces, last)
            if len(self._rest) in (0, before):
                return pieces

    def _start(self, last: bool) -> None:
        """Nothing was said yet: is this an opening tag?"""
        bare = self._rest.lstrip()
        low = bare[:_LONGEST].lower()
        tag = next((tag for tag in (*FORMS, *_SILENT) if low.startswith(tag)), None)
        if tag is not None and tag in _SILENT:
            self._rest, self._apart = bare[len(tag) :], True
        elif tag:
            self._closing = FORMS[tag]
            self._mode, self._rest, self._apart, self._block = "thinking", bare[len(tag) :], True, ""
        elif not last and any(tag.startswith(low) for tag in (*FORMS, *_SILENT, *_CALLS)):
            return
        elif bare:
            call = low.startswith(_CALLS)
            self._mode, self._block, self._closing = "answer", "", _FINAL if call else _LONE
            self._rest = bare if self._apart else self._rest
            self._apart = self._apart and not call
        elif last:
            self._rest = ""

    def _scan(self, pieces: list[Piece], last: bool) -> None:
        """Say what is certain of the rest, up to a tag that counts or to what the next piece has to decide."""
        stop = len(self._rest) - (0 if last else _half(self._rest, self._closing))
        may_close = self._mode == "thinking" or not self._apart
        for tag in _any_of(self._closing).finditer(self._rest, 0, stop) if may_close else ():
            counts = _counts(self._block + self._rest, len(self._block) + tag.start(), last)
            if counts is None:
                stop = tag.start()
                break
            if counts:
                self._say(pieces, tag.start())
                self._rest = self._rest[len(tag[0]) :]
                if self._answer:
                    pieces += [Retract(), Thinking(self._answer)]
                self._mode, self._apart, self._answer = "start", True, ""
                return
        self._say(pieces, min(stop, len(self._rest) - self._tail(last)))
        if last and self._mode == "answer":
            self._rest = ""

    def _tail(self, last: bool) -> int:
        """How many characters at the end of the rest of an answer may be the end of a turn."""
        if self._mode != "answer":
            return 0
        end = len(self._rest) - (0 if last else _half(self._rest, _ENDS))
        tail = _TAIL.search(self._rest, max(0, end - _TAIL_LENGTH), end)
        struck = tail is not None and "</s>" in tail[0].lower() and "<s>" in self._answer + self._rest
        return len(self._rest) - (tail.start() if tail and not struck else end)

    def _say(self, pieces: list[Piece], end: int) -> None:
        text, self._rest = self._rest[:end], self._rest[end:]
        self._block += text
        if self._mode == "answer":
            self._answer += text
        if text:
            pieces.append(Thinking(text) if self._mode == "thinking" else Text(text))


_LONGEST = max(map(len, (*FORMS, *_SILENT, *_CALLS)))


def _any_of(tags: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, tags)), re.IGNORECASE)


def _half(text: str, tags: Sequence[str]) -> int:
    """How many characters at the end of `text` may be the beginning of a tag."""
    low = text[-_LONGEST:].lower()
    starts = {tag[:size] for tag in tags for size in range(1, len(tag))}
    return next((size for size in range(len(low), 0, -1) if low[-size:] in starts), 0)


def _counts(text: str, at: int, last: bool) -> bool | None:
    """Whether a closing tag at `at` is more than code; None when the rest of its line has to tell."""
    start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
    ticks = "`" in text[start:at]
    if ticks and end < 0 and not last:
        return None
    if _open_fence(text[:at]):
        return False
    line = text if end < 0 else text[:end]
    return not ticks or not any(
        span.start < at < span.end for span in spans(line, only_code=True) if span.kind == "code"
    )


def _open_fence(text: str) -> Span | None:
    """The code fence that is still open at the end of `text`."""
    *_, span = [None, *spans(f"{text}\n.", only_code=True)]
    return span if span and span.kind == "fence" and span.end > len(text) + 1 else None
