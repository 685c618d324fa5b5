"""Text of people and models, made safe to stand in a note: it looks as was meant and reaches no further than its end.

Outside code, comments are shown, HTML that runs on and definitions that count everywhere are taken literally; nothing
runs or loads anything; fences are closed, headings go below that of their turn, and no check box is a task. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tarsd.parse import Unit, parse
from tarsd.parse.inline import WIKILINK
from tarsd.parse.spans import CONTAINERS, spans, split
from tarsd.parse.visibility import INVISIBLE
from tarsd.writing.sanitize import sanitize, sanitize_code

HEADING_CHARS = 80
_BELOW = 2
"""A turn is a section of level 2, and a reply's headings go that much deeper."""

_BAR = re.compile(r"(?<!\\)\|")
_HEADING = re.compile(r"[ ]{0,3}(#{1,6})(?=[ \t]|$)")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_OPEN_HTML = re.compile(rf"(?m:^)({CONTAINERS})<(?=[?!]|/?(?:script|pre|style|textarea)(?:[\s>/]|$))", re.IGNORECASE)
_NO_HEADING = re.compile(r"^( {0,3})(?=#{1,6}[ \t]*(?:#+[ \t]*)?$)", re.MULTILINE)
_TASK = re.compile(r"^([ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+[ \t>]*+)++)\[([^\[\]\n])\](?=\s|$)", re.MULTILINE)
_BOXES = {" ": "☐", "x": "☑", "X": "☑"}
_DOLLARS = re.compile(r"\${2,}")
_MARKUP = re.compile(r"[\\`*_\[\]<>#^|~$]+|%%+|==+|&(?=#?\w+;)")
_ROUNDS = 20
_CLOSERS = "\n-->\n%%\n$$\n?>\n]]>\n</script></pre></style></textarea>\n```\n~~~\n"


def clean(text: str) -> str:
    """`text` with "\\n" line ends and without what no file should hold: lone surrogates, control characters."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return INVISIBLE.sub("", _CONTROLS.sub("", whole.replace("\r\n", "\n").replace("\r", "\n")))


def one_line(text: str) -> str:
    """`text` on one line without anything that Markdown would read as markup."""
    return " ".join(_MARKUP.sub(" ", " ".join(clean(text).split())).split())


def code(text: str) -> str:
    """`text` on one line as inline code."""
    return sanitize_code(f"`{' '.join(clean(text).replace('`', ' ').split()) or '?'}`")


def contained(text: str) -> str:
    """`text` as it can stand in a note: what comes after it, behind a blank line, is not touched by it.

    Text that cannot be repaired is shown in a fence, as it is.
    """
    source = clean(text).strip("\n")
    repaired = _untasked(_demoted(as_note_text(sanitize(_literal(source))))) if source.strip() else ""
    return repaired if closed(repaired) else fenced(source)


def fenced(text: str) -> str:
    """`text` in a fence that nothing in it can close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    mark = "`" * max(3, longest + 1)
    return sanitize(f"{mark}\n{text}\n{mark}")


def closed(block: str) -> bool:
    """Whether headings before and after `block` are still read as such: it opens nothing that it does not close."""
    for tail in ("", _CLOSERS):
        note = parse(f"## before\n\n{block}\n\n## after\n{tail}", "note.md")
        outer = [heading.text for heading in note.headings if heading.level <= _BELOW]
        if outer != ["before", "after"] or (note.problems and not tail):
            return False
    return True


def as_note_text(reply: str) -> str:
    """A reply as Obsidian reads it rightly once it stands in a note.

    Line ends are "\\n", every fence is closed, and the bar of a wikilink is escaped in table rows, where it would end
    the cell. Everything else stays as it is.
    """
    lines = reply.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    # after a blank line nothing is taken for properties; lines then count from 2
    for unit in reversed(parse("\n".join(["", *lines]), "reply.md", include_comments=True).units):
        start, end = unit.start_line - 2, unit.end_line - 1
        if unit.kind == "table":
            lines[start:end] = [WIKILINK.sub(lambda link: _BAR.sub(r"\\|", link[0]), line) for line in lines[start:end]]
        elif lines[start] == unit.opener and (end - start == 1 or lines[end - 1] != unit.closer):
            lines.insert(end, closing_line(unit))
    return "\n".join(lines)


def closing_line(fence: Unit) -> str:
    """The line that closes an open fence."""
    return re.sub(r"[^\s>`~]", " ", fence.closer)


def _literal(text: str) -> str:
    """`text` whose comments, endless HTML, empty headings and lone formula marks are shown instead of obeyed."""
    for _ in range(_ROUNDS):  # what closed a comment may have hidden the start of code
        before, text = text, _outside(text, ("fence", "code", "math"), _marks_shown)
        if text == before:
            break
    return _outside(text, ("fence",), lambda part: _OPEN_HTML.sub(r"\1&lt;", _NO_HEADING.sub(r"\1\\", part)))


def _marks_shown(text: str) -> str:
    """`text` without marks that hide or pair with what comes later; a lone `$$` here closes no formula."""
    text = text.replace("%%", "&#37;&#37;").replace("<!--", "&lt;!--")
    return _DOLLARS.sub(lambda match: r"\$" * len(match[0]), text)


def _outside(text: str, kinds: tuple[str, ...], change: Callable[[str], str]) -> str:
    """`text` with `change` made to every stretch between spans of these kinds."""
    kept = (span for span in spans(text) if span.kind in kinds and span.end > span.start)
    return "".join(change(part) if span is None else part for span, _, part in split(text, kept))


def _demoted(text: str) -> str:
    """`text` with its headings below those of turns; underlined ones become ordinary ones."""
    lines = text.split("\n")
    for heading in reversed(parse("\n" + text, "reply.md").headings):
        start, end = heading.line - 2, heading.end_line - 1
        marks = "#" * min(heading.level + _BELOW, 6)
        if end - start == 1 and (mark := _HEADING.match(lines[start])):
            lines[start] = marks + lines[start][mark.end() :]
        else:
            words = " ".join(line.strip() for line in lines[start : end - 1])
            lines[start:end] = [f"{marks} {words}"]
    return "\n".join(lines)


def _untasked(text: str) -> str:
    """`text` whose check boxes are pictures of some: in a note they would be tasks, a second time or of nobody."""
    return _outside(text, ("fence",), lambda part: _TASK.sub(_box_shown, part))


def _box_shown(found: re.Match[str]) -> str:
    return found[1] + _BOXES.get(found[2], f"\\[{found[2]}]")
