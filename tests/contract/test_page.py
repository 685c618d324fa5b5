"""The web page over TCP: its files without a token and nothing else, its headers, and what it is made of."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tarsd.server import application, page
from tests.support.application import Stub
from tests.support.listener import Place, opened
from tests.support.rawhttp import TOKEN

ROOT = Path(__file__).parents[2]
WEB = ROOT / "tarsd" / "data" / "web"
OWN = sorted([*WEB.glob("*.js"), *WEB.glob("*.css")])
MOST_BYTES = 80_000
"""Of the page's own scripts and styles, as they are read by people; saving, prompts, files and the app need room."""

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
CASE = ROOT / "tests" / "fixtures" / "paths.txt"


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with opened(tmp_path) as one:
        yield one


@pytest.mark.parametrize("path", page.FILES)
async def test_a_file_needs_no_token_and_has_its_headers(place: Place, path: str) -> None:
    file = WEB / page.FILES[path]
    for token in (None, "wrong", TOKEN):
        reply = await place("GET", path, token=token)
        assert (reply.status, reply.body) == (200, file.read_bytes())
        assert reply.headers["content-type"] == f"{TYPES[file.suffix]}; charset=utf-8"
        assert int(reply.headers["content-length"]) == len(reply.body)
        for name, value in page.HEADERS.items():
            assert reply.headers[name.lower()] == value
        assert "access-control-allow-origin" not in reply.headers
        assert "aiohttp" not in reply.headers["server"]


async def test_the_policy_lets_nothing_in_from_elsewhere_and_nothing_inline(place: Place) -> None:
    reply = await place("GET", "/", token=None)
    rules = dict(rule.strip().split(" ", 1) for rule in reply.headers["content-security-policy"].split(";"))
    assert rules == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "dompurify",
    }
    assert reply.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("path", page.FILES)
async def test_a_file_that_the_browser_has_is_not_sent_again(place: Place, path: str) -> None:
    whole = await place("GET", path, token=None)
    tag = whole.headers["etag"]
    for given in (tag, f'"other", {tag}', f"W/{tag}", "*"):
        reply = await place("GET", path, token=None, If_None_Match=given)
        assert (reply.status, reply.body, reply.headers["etag"]) == (304, b"", tag)
        assert reply.headers["content-security-policy"] == page.POLICY
        assert reply.headers["cache-control"] == "no-cache"
    for given in ('"other"', tag.strip('"'), "", "W/"):
        assert (await place("GET", path, token=None, If_None_Match=given)).status == 200
    head = await place("HEAD", path, token=None)
    assert (head.status, head.body, head.headers["etag"]) == (200, b"", tag)
    assert head.headers["content-length"] == whole.headers["content-length"]
    assert head.headers["content-type"] == whole.headers["content-type"]


async def test_tags_differ_where_files_do(place: Place) -> None:
    tags = {(await place("GET", path, token=None)).headers["etag"] for path in page.FILES}
    assert len(tags) == len(page.FILES)


@pytest.mark.parametrize("path", page.FILES)
async def test_under_a_foreign_name_or_for_a_foreign_page_there_is_none(place: Place, path: str) -> None:
    body = (WEB / page.FILES[path]).read_bytes()
    foreign: list[dict[str, Any]] = [{"Host": f"evil.example:{place.port}"}, {"Origin": "https://evil.example"}]
    for headers in foreign:
        for method in ("GET", "HEAD", "POST"):
            reply = await place(method, path, token=None, **headers)
            assert reply.status == 403
            assert body not in reply.body
            assert "etag" not in reply.headers
    assert (await place("GET", path, token=None, Host=f"pi.local:{place.port}")).status == 200


PATHS = [
    *(f"/{path}" for path in CASE.read_text(encoding="utf-8").splitlines()),
    "/..", "/../", "/../../etc/passwd", "/%2e%2e", "/%2e%2e/", "/%2e%2e%2fpage.py", "/..%5c..%5cx", "/vendor",
    "/vendor/", "/vendor/..", "/vendor/../page.js", "/vendor/%2e%2e/index.html", "/vendor/README.md",
    "/vendor/LICENSE-dompurify", "//", "//page.js", "///", "/page.js/", "/page.js/..", "/page.js%00", "/%00",
    "/page.js\x00.css", "/PAGE.JS", "/index.html", "/index.html/", "/page.js;x", "/./page.js", "/page.js%2f",
    "/page%252ejs", "/.", "/~", "/favicon.ico", "/%c0%ae%c0%ae/x", "/..%c0%afx", "/\u2024\u2024/page.js", "/%", "/%zz",
    "/server/page.py", "/data/web/page.js", "/web/page.js", "/tarsd/data/web/page.js", "/page.py", "/" + "a/" * 4000,
    "/" + "x" * 7000, "*", "page.js",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
async def test_nothing_else_can_be_reached(place: Place, path: str) -> None:
    for token, expected in ((None, (400, 401)), (TOKEN, (400, 404))):
        reply = await place("GET", path.encode().decode("latin-1"), token=token)
        assert reply.status in expected, reply.body
        assert b"root:" not in reply.body
        assert len(reply.body) < 500
        assert "content-security-policy" not in reply.headers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_another_method_is_refused_in_our_words(place: Place, method: str) -> None:
    for token in (None, TOKEN):
        reply = await place(method, "/", token=token)
        assert (reply.status, reply.code) == (405, "wrong_method")
        assert reply.json["error"]["hint"] == "It supports GET, HEAD."


async def test_a_body_that_is_announced_for_it_is_not_waited_for(place: Place) -> None:
    reply = await place("POST", "/", token=None, Content_Length="8000000")
    assert (reply.status, reply.code) == (405, "wrong_method")


async def test_what_the_page_asks_for_still_needs_the_token(place: Place) -> None:
    for path in ("/v1/hello", "/v1/status", "/v1/notes/a.md", "/conversations", "/v1", "/v1/"):
        assert (await place("GET", path, token=None)).status == 401
        assert (await place("GET", f"{path}?/page.js", token=None)).status == 401


async def test_the_unix_socket_has_no_page(tmp_path: Path) -> None:
    engine = Stub(tmp_path)
    runner = web.AppRunner(application(engine), access_log=None)
    await runner.setup()
    await web.UnixSite(runner, str(tmp_path / "s")).start()
    try:
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(tmp_path / "s"))) as session:
            for path in page.FILES:
                async with session.get(f"http://tars{path}") as reply:
                    assert (reply.status, (await reply.json())["error"]["code"]) == (404, "not_found")
    finally:
        await runner.cleanup()
        await engine.chat.close()


async def test_files_are_read_at_their_first_use(place: Place) -> None:
    page._read.cache_clear()
    assert (await place("GET", "/v1/hello")).status == 200
    assert page._read.cache_info().currsize == 0
    assert (await place("GET", "/", token=None)).status == 200
    assert page._read.cache_info().currsize == 1


# ------------------------------------------------------------------------------------------------ what it is made of


def test_every_file_is_served_or_says_whose_it_is() -> None:
    there = {path.relative_to(WEB).as_posix() for path in WEB.rglob("*") if path.is_file()}
    assert set(page.FILES.values()) <= there
    for name in there - set(page.FILES.values()):
        assert re.fullmatch(r"vendor/(README\.md|LICENSE-[\w-]+)", name), name


def test_libraries_are_as_they_were_published_and_have_their_licence() -> None:
    about = (WEB / "vendor" / "README.md").read_text(encoding="utf-8")
    for file in (WEB / "vendor").glob("*.js"):
        (row,) = [line for line in about.splitlines() if f"`{file.name}`" in line]
        assert f"`{hashlib.sha256(file.read_bytes()).hexdigest()}`" in row
        licences = re.findall(r"`(LICENSE-[\w-]+)`", row)
        assert licences
        for name in licences:
            assert (WEB / "vendor" / name).stat().st_size > 500


@pytest.mark.parametrize("file", OWN, ids=lambda file: str(file.name))
def test_no_code_makes_html_of_text(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    words = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|\beval\b|new Function|createContextualFragment"
    )
    assert not re.search(words, text)
    assert not re.search(r"https?://(?!www\.w3\.org/)|@import|url\(", text), "nothing is loaded from elsewhere"
    for name in re.findall(r'(?:from|import) "([^"]+)"', text):
        assert name.removeprefix("./") in page.FILES.values(), name


def test_the_document_has_nothing_inline() -> None:
    text = (WEB / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|https?://", text)
    assert re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL) == [""]
    for name in re.findall(r'(?:src|href)="([^"#]+)"', text):
        assert name in page.FILES.values(), name
    shown = set(re.findall(r'href="#i-(\w+)"', text))
    assert shown == set(re.findall(r'<symbol id="i-(\w+)"', text))


def test_the_code_finds_what_it_looks_for() -> None:
    document = (WEB / "index.html").read_text(encoding="utf-8")
    code = "".join(file.read_text(encoding="utf-8") for file in OWN if file.suffix == ".js")
    ids = set(re.findall(r'\sid="([\w-]+)"', document))
    assert len(ids) == len(re.findall(r'\sid="([\w-]+)"', document))
    for name in re.findall(r'(?:\$|copyOf|show)\("([\w-]+)"\)', code):
        assert name in ids, name


def test_it_is_small() -> None:
    assert sum(file.stat().st_size for file in OWN) < MOST_BYTES
    assert all(len(file.read_text(encoding="utf-8").splitlines()) <= 400 for file in OWN)
