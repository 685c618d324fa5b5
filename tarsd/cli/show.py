"""Shows a turn while it happens: the answer on stdout, everything around it on stderr, one dim line each."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

import click

from tarsd.cli.asking import choose, coloured, forget_typed, somebody
from tarsd.cli.common import fail, print_json, sentence
from tarsd.cli.find import roots
from tarsd.cli.markdown import AnswerTables, MarkdownTable, TableFinder, unescaped
from tarsd.cli.passages import band, notes_below, place, trail_of
from tarsd.cli.terminal import Terminal, clean, columns, fit, line
from tarsd.cli.turns import RunningTurn
from tarsd.cli.wrapping import WordWrapper, wrapped
from tarsd.client import Client
from tarsd.errors import EXIT_NOTHING, EXIT_OK, EXIT_REFUSED, ClientError

SIGNS = {"done": "✓", "failed": "✗", "refused": "✗"}
CHOICES = {"y": "yes", "n": "no", "a": "always allow this tool in this conversation"}
QUESTION = "Allow this? (a = always in this conversation)"
UNKNOWN = re.compile(r"\[(\d+)\?\]")
"""How a citation stands in the finished text that leads to no passage."""


class TurnPrinter:
    """Prints a turn's events as they come, or keeps them for one JSON object at the end."""

    def __init__(self, client: Client, *, as_json: bool = False) -> None:
        self.client = client
        self.as_json = as_json
        self.out, self.err = Terminal(sys.stdout), Terminal(sys.stderr)
        self.sources: list[Mapping[str, Any]] = []
        self.last: Mapping[str, Any] = {}
        self.retrieved: Mapping[str, Any] = {}
        self.stopping = False
        self._flow = WordWrapper(self.out.edge if self.out.links else 0)
        self._finder = TableFinder()
        self._tables = AnswerTables(client, self.out)
        self._quotes = False  # the answer is quotes, and waits until it is whole
        self._text = ""  # as it came
        self._printed = False  # some of the answer stands there
        self._open = False  # and its last line has no end
        self._status = False  # the last line on stderr is to be overwritten
        self._thoughts = ""
        self._calls: dict[str, str] = {}

    def follow(self, turn: RunningTurn) -> None:
        """Shows the events that are still to come. Ctrl-C has the turn stopped, and is raised on."""
        try:
            for event in turn.events():
                self._event(event, turn)
        except KeyboardInterrupt:  # the person does not want more of it
            self.stopping = True
            self._end_line()
            self._clear()
            turn.stop()
            raise

    def _event(self, event: Mapping[str, Any], turn: RunningTurn) -> None:
        kind = event.get("type")
        if kind == "retrieved":
            self.retrieved = event
            self.sources = list(event.get("sources") or [])
            self._tables.learn(self.sources)
            self._quotes = self.out.live and event.get("model") == "extractive"
        elif kind in ("done", "failed"):
            self.last = event
        elif kind == "approval":
            self._approve(event, turn)
        elif not self.as_json:
            self._progress(str(kind), event)

    def _progress(self, kind: str, event: Mapping[str, Any]) -> None:
        if kind == "thinking":
            self._thoughts += str(event.get("text", ""))
            self._passing(f"Thinking: {_tail(self._thoughts, self.err.width - 12)}")
            return
        self._thought()
        if kind == "token":
            self._text += str(event.get("text", ""))
            if not self._quotes:
                self._token(clean(event.get("text", "")))
        elif kind == "retract":
            if self._open:
                click.echo()
            self._printed = self._open = False
            self._text, self._finder = "", TableFinder()
            self._flow.reset()
            self._say("The above was reasoning; the answer starts here.")
        elif kind == "waiting":
            self._say(sentence(line(event.get("text", ""))))
        elif kind == "queued":
            count = int(event.get("position") or 1)
            self._say(f"Waiting for {count} earlier answer{'s' * (count != 1)}.")
        elif kind == "tool":
            self._tool(event)
        elif kind == "written" and event.get("error"):
            error = event["error"] if isinstance(event["error"], dict) else {}
            self._say(f"{line(event.get('path', ''))} was not written. {sentence(line(error.get('message', '')))}")

    def _token(self, text: str) -> None:
        """Prints what has come; of a table, when it is whole, for somebody who looks at it."""
        for part in self._finder.feed(text) if self.out.live else [text]:
            self._print(part)

    def _print(self, part: str | MarkdownTable) -> None:
        if isinstance(part, MarkdownTable):
            text = self._flow.put(self._tables.lines(part))
        else:
            text = self._flow.feed(unescaped(part) if self.out.live else part)
        if not text:
            return
        self._clear()
        self._printed, self._open = True, True
        sys.stdout.write(text)
        sys.stdout.flush()

    def _tool(self, event: Mapping[str, Any]) -> None:
        self._tables.learn(event.get("sources") or [])
        call, state, name = str(event.get("call")), str(event.get("state")), line(event.get("name", ""))
        if state == "running":
            about = " ".join(line(value) for value in (event.get("arguments") or {}).values())
            self._calls[call] = f"{name} {fit(about, 50)}".rstrip()
            self._passing(f"… {self._calls[call]}")
            return
        what = self._calls.get(call, name)
        if state == "done":
            count = len(event.get("sources") or [])
            passages = f", {count} passage{'s' * (count != 1)}" if count else ""
            self._say(fit(f"{SIGNS['done']} {what}{passages}", self.err.width))
        else:
            self._say(f"{SIGNS.get(state, '✗')} {what}: {sentence(line(event.get('text') or state))}", 2)

    # Lines around the answer

    def _say(self, text: str, indent: int = 0) -> None:
        self._end_line()
        self._clear()
        click.echo(self.err.dim(wrapped(text, self.err, indent)), err=True)

    def _passing(self, text: str) -> None:
        """A line that the next one overwrites; only a terminal gets it."""
        if not self.err.links:  # a dumb one cannot take a line back
            return
        self._end_line()
        self._clear()
        sys.stderr.write(self.err.dim(fit(text, self.err.width - 1)))
        sys.stderr.flush()
        self._status = True

    def _thought(self) -> None:
        thoughts, self._thoughts = line(self._thoughts), ""
        if thoughts and self.err.live:
            self._say(fit(f"Thought: {thoughts}", self.err.width))

    def _clear(self) -> None:
        if self._status:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._status = False

    def _end_line(self) -> None:
        """Where answer and remarks share a screen, a remark begins on a line of its own."""
        for part in self._finder.finish():
            self._print(part)
        if self._open and self.out.live:
            click.echo()
            self._open = False
            self._flow.reset()

    # Approvals

    def _approve(self, event: Mapping[str, Any], turn: RunningTurn) -> None:
        """Asks for a yes where somebody sits at the terminal; otherwise it is a no."""
        call = str(event.get("call") or event.get("id"))
        given = "n"
        if not self.as_json and not self.stopping and somebody():
            self._thought()
            self._end_line()
            self._clear()
            title = line(event.get("title") or event.get("name") or "A change")
            click.echo(self.err.bold(wrapped(title, self.err)), err=True)
            shown = coloured(event.get("diff") or "", self.err, 2) or _arguments(event, self.err)
            for text in shown:
                click.echo(f"  {text}", err=True)
            forget_typed()
            given = choose(QUESTION, CHOICES, "n")
        try:
            turn.answer(call, allow=given != "n", always=given == "a")
        except ClientError as error:
            if error.code not in ("conflict", "not_found"):
                raise
            if not self.stopping:
                fail(error, as_json=False)

    # The end

    def end(self, turn: RunningTurn) -> int:
        """Prints what comes after the answer; the exit code."""
        failed = self.last.get("type") == "failed"
        text = str(self.last.get("text") or "")
        if self.as_json:
            keep = {key: value for key, value in self.last.items() if key not in ("seq", "type")}
            about = {key: self.retrieved.get(key) for key in ("sources", "relevance", "behind")}
            print_json({"turn": turn.id, "conversation": turn.conversation, **about, **keep})
        else:
            self._thought()
            self._clear()
            for part in self._finder.finish():
                self._print(part)
            if self._open:
                click.echo()
            if not self._printed and text.strip():
                shown = best_last(text) if self._quotes else text
                click.echo(self._tables.whole(clean(shown).strip("\n")))
            if failed:
                error = self.last.get("error") or {}
                fail(ClientError(str(error.get("message", "The answer failed.")), str(error.get("hint", ""))))
            self._print_sources()
            for remark in self._remarks(text):
                click.echo(remark, err=True)
        if failed:
            return EXIT_REFUSED
        return EXIT_OK if self.sources or self.last.get("citations") or not text.strip() else EXIT_NOTHING

    def _remarks(self, text: str) -> list[str]:
        """What is said about the answer, `text`, below it."""
        last, err = self.last, self.err
        notices = [sentence(notice) for notice in last.get("notices") or []]
        if last.get("type") == "done" and not (text.strip() or notices or last.get("stopped")):
            notices.append("The model gave no answer.")
        said = [*notes_below(self.retrieved, err), *(err.yellow(wrapped(notice, err)) for notice in notices)]
        dim = []
        unknown = list(dict.fromkeys(UNKNOWN.findall(text))) if self._printed and text != self._text else []
        if unknown:
            dim.append(f"Unknown sources: {', '.join(f'[{number}]' for number in unknown)}.")
        if self.sources and text.strip() and not last.get("citations"):
            count = len(self.sources)
            dim.append(f"{count} passage{'s' * (count != 1)} read, none cited.")
        if last.get("private"):
            dim.append("This answer used private notes, so the conversation is private and stays on this machine.")
        dim += ["Stopped."] * bool(last.get("stopped"))
        if used := " · ".join(line(last[name]) for name in ("usage", "month") if last.get(name)):
            dim.append(f"{used}.")
        return [*said, *(err.dim(wrapped(remark, err)) for remark in dim)]

    def _print_sources(self) -> None:
        """The numbered sources that the answer cites."""
        cited = [citation for citation in self.last.get("citations") or [] if isinstance(citation, dict)]
        if not cited:
            return
        shown = [one for one in cited if not (_is_exact(one) and one.get("n") in self._tables.linked)]
        places = roots(self.client) if shown else {}
        if shown:
            click.echo(self.out.dim("\nSources"))
        for citation in shown:
            number, at = f"  [{citation.get('n')}] ", int(citation.get("start_line") or 1)
            if _is_exact(citation):  # a row of an exact answer: the row says the rest
                click.echo(number + place(citation, at, places, self.out, columns(number)))
                continue
            relevance = citation.get("relevance")
            figure = f"{band(relevance)} {relevance:.2f}" if isinstance(relevance, float) else ""
            trail = trail_of(citation)
            if self.out.live:
                trail = fit(trail, self.out.width - columns(number) - columns(figure) - 2)
            where = place(citation, at, places, self.out, 6)
            click.echo(f"{number}{self.out.bold(trail)}  {self.out.dim(figure)}\n      {where}")


def _is_exact(citation: Mapping[str, Any]) -> bool:
    """Whether a source is a row of an exact answer and not a passage that was found: nothing of it was measured."""
    return citation.get("relevance") == 1.0 and not citation.get("attached")


def best_last(text: str) -> str:
    """An answer of several quotes from the least to the best, which a long one leaves in sight above the sources."""
    quotes, rows = list[str](), list[str]()
    for row in text.split("\n"):
        rows.append(row)
        if row.startswith("— [["):
            quotes.append("\n".join(rows).strip("\n"))
            rows = []
    return text if "".join(rows).strip() else "\n\n".join(reversed(quotes))


def _arguments(event: Mapping[str, Any], out: Terminal) -> list[str]:
    """What a call without a diff would send out."""
    given = event.get("arguments") or {}
    shown = (
        wrapped(f"{line(name)}: {fit(line(value), 200)}", out, 2, width=out.width - 2) for name, value in given.items()
    )
    return [row for text in shown for row in text.split("\n")]


def _tail(text: str, width: int) -> str:
    """The end of a text, on one line of at most `width` columns."""
    end = line(text[-400:])
    while columns(end) > width:
        end = end[max(1, columns(end) - width) :]
    return end
