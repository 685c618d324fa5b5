"""The files of the web page: a fixed table of names, read at their first use.

They hold nothing secret, so the listener on TCP serves them without a token. What the page then asks for needs one.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from aiohttp import web

TYPES: Final = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}

_NAMES = (
    "icon.svg", "page.css", "page.js", "answer.js", "chat.js", "daemon.js", "dom.js", "markdown.js", "panels.js",
    "scroll.js", "turn.js", "vendor/markdown-it.umd.min.js", "vendor/purify.min.js",
)  # fmt: skip
FILES: Final[Mapping[str, str]] = {"/": "index.html", **{f"/{name}": name for name in _NAMES}}
"""What is served, by the path of its URL. A file that is not here cannot be asked for."""

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'; "
    "require-trusted-types-for 'script'; trusted-types dompurify"
)
"""Nothing is loaded from elsewhere, and only the sanitiser makes HTML of text."""

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",  # kept by the browser, and asked for again: an update shows at once
}


@dataclass(frozen=True)
class _File:
    body: bytes
    type: str
    tag: str


def add_page(router: web.UrlDispatcher) -> None:
    """Serve the page."""
    for path in FILES:
        router.add_get(path, _serve)


async def _serve(request: web.Request) -> web.Response:
    file = _read()[request.path]
    headers = {**HEADERS, "ETag": f'"{file.tag}"'}
    if any(known.value in (file.tag, "*") for known in request.if_none_match or ()):
        return web.Response(status=304, headers=headers)
    return web.Response(body=file.body, content_type=file.type, charset="utf-8", headers=headers)


@functools.cache
def _read() -> Mapping[str, _File]:
    folder = files("tarsd") / "data" / "web"
    found = {}
    for path, name in FILES.items():
        body = folder.joinpath(*name.split("/")).read_bytes()
        found[path] = _File(body, TYPES[name.rpartition(".")[2]], hashlib.sha256(body).hexdigest()[:32])
    return found
