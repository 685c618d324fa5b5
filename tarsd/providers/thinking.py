"""Reasoning that a model writes into its answer, between `<think>` tags, told apart from the answer as it streams."""

from __future__ import annotations

import re

from tarsd.providers.base import Retract, Text, Thinking

_OPENING = ("<think>", "<thinking>")
_CLOSING = ("</think>", "</thinking>")
_TOKEN = re.compile(r"(?P<tag></think(?:ing)?>)|(?P<ticks>`+)|(?P<tildes>~{3,})|(?P<line>\n)", re.IGNORECASE)
_SPAN_END = re.compile(r"`+|\n")
_HALF_TAG = re.compile(r"<[/a-z]{0,9}\Z", re.IGNORECASE)

Piece = Text | Thinking | Retract


class Splitter:
    """Fed with the text of one stream, in pieces of any size; gives back what of it is answer and what is reasoning.

    An opening tag counts only before any answer, a closing one only outside code. A closing tag without an opening
    one makes reasoning of all that stands before it. A block that is never closed is reasoning to its end.
    """

    def __init__(self) -> None:
        self._rest = ""  # what is not decided yet
        self._mode = "start"
        self._apart = False  # reasoning was seen as such, so a lone closing tag is only a word
        self._said: list[str] = []
        self._code = _Code()
        self._after: list[str] | None = None  # what stands behind a closing tag in an open fence of the reasoning

    @property
    def said(self) -> str:
        """The answer so far."""
        return "".join(self._said)

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
        if self._mode == "thinking" and self._after is not None and self._code.fence:
            # A fence that nobody closed hid the end of the reasoning: better said late than never.
            answer = "".join(self._after).lstrip()
            self._said.append(answer)
            pieces += [Text(answer)] if answer else []
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
                return _merged(pieces)

    def _start(self, last: bool) -> None:
        """Nothing was said yet: is this an opening tag?"""
        bare = self._rest.lstrip()
        low = bare[:12].lower()
        tag = next((tag for tag in _OPENING if low.startswith(tag)), None)
        if tag:
            self._mode, self._rest, self._apart, self._after = "thinking", bare[len(tag) :], True, None
            self._code = _Code()
        elif not last and any(tag.startswith(low) for tag in _OPENING):
            return
        elif bare:
            self._mode, self._code = "answer", _Code()
            self._rest = bare if self._apart else self._rest
        elif last:
            self._rest = ""

    def _scan(self, pieces: list[Piece], last: bool) -> None:
        """Say what is certain of the rest, up to a tag that counts or to what the next piece has to decide."""
        text, at = self._rest, 0
        stop = len(text) if last else _certain(text)
        while match := _TOKEN.search(text, at, stop):
            tag = match["tag"]
            if tag and self._counts(text, match.end(), last) is None:
                stop = match.start()
                break
            if tag and self._mode == "answer" and self._apart:
                tag = None
            if tag and self._counts(text, match.end(), last):
                self._say(pieces, text[: match.start()], text[at : match.start()])
                self._turn(pieces)
                self._rest = text[match.end() :]
                return
            self._code.see(text[at : match.start()], match)
            self._keep(text[at : match.end()])
            if match["tag"] and self._code.fence and self._after is None:
                self._after = []
            at = match.end()
        self._code.pass_over(text[at:stop])
        self._say(pieces, text[:stop], text[at:stop])
        self._rest = text[stop:]

    def _counts(self, text: str, end: int, last: bool) -> bool | None:
        """Whether a closing tag that ends there is more than code; None when what follows has to tell."""
        if self._code.fence:
            return False
        if not self._code.ticks:
            return True
        for match in _SPAN_END.finditer(text, end):
            if match[0] == "\n":
                return True
            if not last and match.end() == len(text):
                return None
            if len(match[0]) == self._code.ticks:
                return False
        return True if last else None

    def _say(self, pieces: list[Piece], text: str, new: str) -> None:
        self._keep(new)
        if not text:
            return
        if self._mode == "thinking":
            pieces.append(Thinking(text))
        else:
            self._said.append(text)
            pieces.append(Text(text))

    def _keep(self, text: str) -> None:
        if not self._code.fence:
            self._after = None
        elif self._after is not None:
            self._after.append(text)

    def _turn(self, pieces: list[Piece]) -> None:
        """A closing tag that counts: what follows is the answer."""
        if self._mode == "answer" and self._said:
            pieces += [Retract(), Thinking("".join(self._said))]
            self._said.clear()
        self._mode, self._apart, self._code, self._after = "start", True, _Code(), None


class _Code:
    """Whether the text so far ends inside code: a fence, or a span of so many `ticks` on this line."""

    def __init__(self) -> None:
        self.fence = ""
        self.ticks = 0
        self._blank = True  # nothing on this line yet
        self._opened = False  # the fence was opened on this line

    def pass_over(self, text: str) -> None:
        if text.strip():
            self._blank = False

    def see(self, before: str, match: re.Match[str]) -> None:
        """A line's end or a run of marks, and the text before it."""
        self.pass_over(before)
        if match["line"]:
            self.ticks, self._blank, self._opened = 0, True, False
            return
        if match["tag"]:
            self._blank = False
            return
        run, first = match[0], self._blank
        self._blank = False
        if self.fence:
            if first and run.startswith(self.fence):
                self.fence = ""
            elif self._opened and run == self.fence and run[0] == "`":
                self.fence = ""  # ```a span of three ticks```
        elif first and len(run) >= 3:
            self.fence, self._opened = run, True
        elif run[0] == "`":
            self.ticks = 0 if self.ticks == len(run) else (self.ticks or len(run))


def _certain(text: str) -> int:
    """Up to where a text means the same whatever follows: its last tag or run of marks may go on."""
    if text.endswith(("`", "~")):
        return len(text.rstrip(text[-1]))
    half = _HALF_TAG.search(text, max(0, len(text) - 10))
    return half.start() if half else len(text)


def _merged(pieces: list[Piece]) -> list[Piece]:
    """Neighbours of one kind as one piece."""
    out: list[Piece] = []
    for piece in pieces:
        if out and isinstance(piece, Text) and isinstance(out[-1], Text):
            out[-1] = Text(out[-1].text + piece.text)
        elif out and isinstance(piece, Thinking) and isinstance(out[-1], Thinking):
            out[-1] = Thinking(out[-1].text + piece.text)
        else:
            out.append(piece)
    return out
