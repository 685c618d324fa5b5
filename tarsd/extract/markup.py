"""HTML, and the XML of books and OpenDocument, becomes paragraphs and headings; pages that it brings are left out."""

from __future__ import annotations

import re
from pathlib import Path

from lxml import etree, html

from tarsd.extract.limits import CHARACTERS
from tarsd.extract.pages import Extracted, Page

_HEADINGS = {"h", "h1", "h2", "h3", "h4", "h5", "h6"}
_BLOCKS = _HEADINGS | {
    "p", "div", "section", "article", "main", "ul", "ol", "li", "list", "list-item", "table", "tr", "table-row", "pre",
    "blockquote", "figure", "figcaption", "dl", "dt", "dd", "hr", "body", "address", "details", "summary", "header",
    "page", "frame", "text-box", "notes",
}  # fmt: skip
_ITEMS, _CELLS, _BREAKS, _SPACES = {"li", "list-item"}, {"td", "th", "table-cell"}, {"br", "line-break"}, {"tab", "s"}
_CLOSE = _ITEMS | {"tr", "table-row", "dt", "dd"}
"""What stands on a line of its own, without a blank line before it."""
_LEFT_OUT = {
    "script", "style", "noscript", "template", "nav", "aside", "footer", "svg", "iframe", "title", "button", "select",
    "tracked-changes", "object", "math", "audio", "video",
}  # fmt: skip
_MAIN = 200
"""An article or main part with so many characters is taken alone."""
_META = {"author": "author", "article:published_time": "created", "date": "created", "description": "description"}


def text_of(root: etree._Element) -> tuple[str, tuple[tuple[int, str], ...]]:
    """Text and headings of what is below an element."""
    parts: list[str] = []
    headings: list[tuple[int, str]] = []
    line: list[str] = []
    size = cells = 0
    item = close = False

    def flush(heading: bool = False) -> None:
        nonlocal size, item
        text = "\n".join(filter(None, (" ".join(one.split()) for one in "".join(line).split("\n"))))
        text = text.strip("| ") if "|" in text else text
        line.clear()
        if not text:
            return
        if parts:
            parts.append("\n" if close else "\n\n")
            size += len(parts[-1])
        if heading:
            text = text.replace("\n", " ")
            headings.append((size, text))
        parts.append(f"- {text}" if item else text)
        size += len(parts[-1])
        item = False

    walk = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
    for event, element in walk:
        if event in ("comment", "pi"):
            line.append(_plain(element.tail) if element is not root else "")
            continue
        name = etree.QName(element).localname if isinstance(element.tag, str) else ""
        if event == "start":
            if name in _LEFT_OUT and element is not root:
                walk.skip_subtree()
                continue
            if name in _CELLS:
                line.append(" | " if "".join(line).strip() else "")
                cells += 1
            elif name in _BLOCKS and cells:
                line.append(" ")
            elif name in _BLOCKS:
                flush()
                close, item = name in _CLOSE, item or name in _ITEMS
            line.append("\n" if name in _BREAKS else " " if name in _SPACES else "")
            line.append(_plain(element.text))
        elif element is not root:
            cells -= name in _CELLS
            if name in _BLOCKS and not cells:
                flush(name in _HEADINGS)
            line.append(_plain(element.tail))
        if size > CHARACTERS:
            break
    flush()
    return "".join(parts), tuple(headings)


def _plain(text: str | None) -> str:
    return re.sub(r"\s+", " ", text or "")


def document(data: bytes) -> html.HtmlElement | None:
    """What a browser would make of it; None when it holds nothing."""
    parser = html.HTMLParser(encoding=_encoding(data), no_network=True, huge_tree=False)
    try:
        return html.document_fromstring(data, parser=parser)
    except etree.LxmlError:
        return None


def _encoding(data: bytes) -> str | None:
    """UTF-8 when it is that, else None: then the page says so itself."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return "utf-8"


def read_web(path: Path) -> Extracted:
    """A saved web page: its main part, where it marks one."""
    root = document(path.read_bytes())
    if root is None:
        return Extracted((), problem="The page is empty.", hint="Save it again.")
    main = [found for one in root.iter("article", "main") if len((found := text_of(one))[0]) >= _MAIN]
    text, headings = max(main, key=lambda one: len(one[0]), default=text_of(root))
    properties = []
    for meta in root.iter("meta"):
        key = (meta.get("name") or meta.get("property") or "").lower()
        if key in _META and (value := " ".join((meta.get("content") or "").split())):
            properties.append((_META[key], value[:10] if _META[key] == "created" else value))
    if not text:
        return Extracted((), problem="The page holds no text: it is made by a script.", hint="Clip it with a browser.")
    title = " ".join((root.findtext(".//title") or "").split())
    return Extracted((Page(text, headings=headings),), title, tuple(dict.fromkeys(properties)))
