"""Cleans model text for a note that nobody checks first: it cannot run or load anything.

Pictures and frames from elsewhere become links, HTML that does more than format is shown as text, and code that
Obsidian or a plugin would run is only code. What stands in an ordinary fence stays as it is. Pure.
"""

from __future__ import annotations

import json
import re
from html import unescape
from importlib import resources
from urllib.parse import quote

from tarsd.parse.spans import CONTAINERS, Span, certain, split

_FENCES = json.loads(resources.files("tarsd").joinpath("data/executable_fences.json").read_text(encoding="utf-8"))
"""What runs: see the file, which the plugin has too."""
_ALLOWED = frozenset([*_FENCES["plain"], *_FENCES["drawn"]])
"""What a fence may be called: no plugin worth the name runs these unasked, and others become `text`."""
_GUARDS = {name: re.compile(pattern, re.I | re.M) for name, pattern in _FENCES["guards"].items()}
"""What makes a harmless kind of fence one that runs or loads something."""

_FENCE = re.compile(rf"(?m:^)({CONTAINERS})(`{{3,}}|~{{3,}})[ \t]*([^\s`]+)([^`\n]*)(?m:$)")
_ROUNDS = 8
_FIRST = re.compile(r"(\n[ \t>]*+)(?=\$=)")
_RUNS = "|".join(re.escape(begin) + r"(?!\s*(?:[=>~`]|\Z))" * (begin == "=") for begin in _FENCES["inline"])
"""How the inline code begins that plugins run; they do not mind blanks before it. `==` and `=>` are operators."""
_CODE = re.compile(rf"(?<!`)(`++\s*+)(?={_RUNS})")
_LINE = re.compile(rf"(?m:^)({CONTAINERS})(?=\$=)")
_TEMPLATE = re.compile(r"<%(?![=#@])")

_MATH = re.compile(r"\$\$.*?\$\$|(?<![\\$])\$(?=[^\s$])[^$\n]*(?<=[^\s$])\$(?!\d)", re.DOTALL)
_OPENS = re.compile(r"<(?=[A-Za-z/?%]|![A-Za-z\[-])")
_ATTRIBUTE = re.compile(r"([A-Za-z][\w:-]*)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'<>=`]+)))?")
_TAG = re.compile(
    r"<(/?)([A-Za-z][A-Za-z0-9]*)"
    r"((?:\s+[A-Za-z][\w:-]*(?:\s*=\s*(?:\"[^\"<>`]*\"|'[^'<>`]*'|[^\s\"'<>=`]+))?)*+)\s*/?>"
)
_ADDRESS = re.compile(r"<(?:[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>`]*|[\w.+-]+@[\w.-]+)>")
_LOADS = re.compile(
    r"<(img|image|iframe|frame|embed|object|video|audio|source|track|input)\b"
    r"((?:[^<>\"']|\"[^\"]*\"|'[^']*')*+)>(?:\s*</\1\s*>)?",
    re.IGNORECASE,
)
_REMOTE = re.compile(r"\s*(?:https?:)?//\S", re.IGNORECASE)
_FORMATS = frozenset(
    re.findall(
        r"\S+",
        """a abbr b bdi bdo big blockquote br caption center cite code col colgroup dd del details dfn div dl dt em
    figcaption figure font h1 h2 h3 h4 h5 h6 hr i ins kbd li mark ol p q rp rt ruby s samp small span strike strong sub
    summary sup table tbody td tfoot th thead time tr tt u ul var wbr""",
    )
)
_HARMLESS = frozenset(
    re.findall(
        r"\S+",
        "align border color colspan datetime dir height lang open reversed rowspan start title valign width",
    )
)
_STYLE = re.compile(r"\s*(?:color|background-color|text-align|font-style|font-weight|text-decoration)\s*:[\w#%.\s-]*")
_TARGET = re.compile(r"\s*(?:https?://|mailto:|#|[\w-])[^\s\"'<>`]*", re.IGNORECASE)
_SCHEME = re.compile(r"\s*(?:(?!https?:|mailto:)[A-Za-z][A-Za-z0-9+.-]*:|.*[&\x00-\x1f])", re.IGNORECASE)

_PICTURE = re.compile(r"(?<!\\)((?:\\\\)*)!(?=\[)")
_EMBED = re.compile(r"\[\[(?!\s*//)[^\[\]\n:<>`]+\]\](?!\()")
_LOCAL = re.compile(r"\[[^\[\]\n]*\]\([ \t]*<?(?!//)[\w ./#^@+~,'=%-]+>?(?:[ \t]+\"[^\"\n]*\")?[ \t]*\)")
_EMPTY = re.compile(r"\[\s*\]\(\s*<?([^\s<>()]+)>?[^()\n]*\)")
_ELSEWHERE = re.compile(r"\[\[\s*([A-Za-z][A-Za-z0-9+.-]*:[^\[\]|\n]*|//[^\[\]|\n]*)(?:\|([^\[\]\n]*))?\]\]")
_INLINE = re.compile(r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(")
_NUMBER = re.compile(r"\[\d{1,3}\](?![\[(])")
_DEFINITION = re.compile(rf"(?m:^)({CONTAINERS})\[(?=(?!\^)(?:[^\[\]\\]|\\.)+\]:)")
_MARKUP = re.compile(r"[\\`*_\[\]<>#^|~$!%&=\s]+")


def sanitize(text: str) -> str:
    """`text` that shows what it showed, and neither runs nor loads anything where it stands. Twice is as good as once.

    A tag that only formats stays, and so do embedded notes and files of the vault. Line ends become "\n".
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    for _ in range(_ROUNDS):  # what is taken literally now may have hidden where code begins
        before, text = text, _once(text)
        if text == before:
            break
    return text


def _once(text: str) -> str:
    return "".join(
        _prose(part, begins_line=not at or text[at - 1] == "\n") if code is None else _CHANGES[code.kind](part)
        for code, at, part in split(text, certain(text, unclosed=True))
    )


def sanitize_code(code: str) -> str:
    """Inline code that no plugin runs; templates are filled in whole files, code or not."""
    return _TEMPLATE.sub("< %", _CODE.sub(r"\1\\", code, count=1))


def _fence(block: str) -> str:
    head, line, body = _TEMPLATE.sub("< %", block).partition("\n")
    body = line + body
    if body.lstrip(" \t>\r\n").startswith("$="):
        body = _FIRST.sub(r"\1\\", body, count=1)
    return _FENCE.sub(lambda match: _renamed(match, body), head) + body


_CHANGES = {"code": sanitize_code, "fence": _fence}


def _renamed(match: re.Match[str], body: str | None = None) -> str:
    """The opening line of a fence, as `text` with the name that it had if something might run it."""
    name = match[3].lower()
    guard = _GUARDS.get(name)
    if name in _ALLOWED and (guard is None or (body is not None and not guard.search(body))):
        return match[0]
    return f"{match[1]}{match[2]}text ({match[3]}){match[4]}"


def _prose(text: str, *, begins_line: bool) -> str:
    part = _CODE.sub(r"\1\\", _pictures(_tags(text)))
    middle, line, rest = ("", "", part) if begins_line else part.partition("\n")
    rest = _LINE.sub(r"\1\\", _DEFINITION.sub(r"\1\\[", _FENCE.sub(_renamed, rest)))
    return f"{middle}{line}{rest}"


# ------------------------------------------------------------------------------------------------ HTML


def _tags(text: str) -> str:
    formulas = (Span("math", *match.span()) for match in _MATH.finditer(text))
    # in a formula an entity would be read letter by letter
    shown = (_OPENS.sub("< ", part) if formula else _shown(part) for formula, _, part in split(text, formulas))
    return "".join(shown)


def _shown(text: str) -> str:
    def opener(match: re.Match[str]) -> str:
        address = _ADDRESS.match(linked, match.start())
        return "<" if address or _formats(linked, match.start()) else "&lt;"

    linked = _LOADS.sub(_link, text)
    return _OPENS.sub(opener, linked)


def _link(match: re.Match[str]) -> str:
    """A picture, frame or film from elsewhere as a link with its words, else the tag as it was."""
    values = _attributes(match[2])
    source = next((values[name] for name in ("src", "data", "href", "poster") if values.get(name)), "")
    if not _REMOTE.match(source):
        return match[0]
    words = next((values[name] for name in ("alt", "title") if values.get(name)), "")
    return _linked(words, source)


def _linked(words: str, source: str) -> str:
    target = quote(source.strip(), safe=":/?#@!&',;=+.~%-_").replace("%%", "%25%25")
    return f"[{_MARKUP.sub(' ', words).strip() or target}]({target})"


def _formats(text: str, at: int) -> bool:
    """Whether a complete tag stands here that changes nothing but how its text looks."""
    match = _TAG.match(text, at)
    if match is None or match[2].lower() not in _FORMATS:
        return False
    if match[1]:
        return not match[3].strip()
    if match[2].lower() == "code":  # plugins run code by how it begins
        return not match[3].strip() and re.match(r"[\w./~-]", text[match.end() : match.end() + 1]) is not None
    return all(_is_harmless(name, value) for name, value in _attributes(match[3]).items())


def _is_harmless(name: str, value: str) -> bool:
    if name == "href":
        return _TARGET.fullmatch(value) is not None and not _SCHEME.match(value)
    if name == "style":
        return all(not rule.strip() or _STYLE.fullmatch(rule) for rule in value.lower().split(";"))
    return name in _HARMLESS


def _attributes(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(text):
        found.setdefault(match[1].lower(), unescape(match[2] or match[3] or match[4] or ""))
    return found


# ------------------------------------------------------------------------------------------------ pictures


def _pictures(text: str) -> str:
    """`text` with pictures from elsewhere as links; a picture by reference is shown as it is written."""
    parts: list[str] = []
    at = 0
    while found := _PICTURE.search(text, at):
        start = found.end()
        parts += [text[at : found.start()], found[1]]
        at = start
        if _EMBED.match(text, start) or _LOCAL.match(text, start) or _NUMBER.match(text, start):
            parts.append("!")
        elif other := _ELSEWHERE.match(text, start):
            parts.append(_linked(other[2] or "", other[1]))
            at = other.end()
        elif empty := _EMPTY.match(text, start):
            parts.append(_linked("", empty[1]))
            at = empty.end()
        elif not _INLINE.match(text, start):
            parts.append("!\\")
    return "".join([*parts, text[at:]])
