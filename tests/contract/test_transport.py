"""Whom HTTP clients trust and through which proxy they ask: alike for chat, embeddings, MCP and the tools outside."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import httpx2
import pytest

from tarsd import embed
from tarsd.config.settings import ChatSettings, EmbeddingSettings, McpServer
from tarsd.errors import EmbedderUnreachable, ProviderUnreachable, ToolError
from tarsd.providers import make, offered
from tarsd.tools.mcp_connection import Connection
from tarsd.tools.outer import client, unreachable
from tarsd.transport import certificates_problem, client_options, proxy_for
from tarsd.upstream import ClientUnusable
from tests.support.certificates import ServerCertificate, certificate
from tests.support.doubles.server import Call, Double, Reply
from tests.support.provider_contract import dead_url

HERE, AWAY = "https://127.0.0.1:1/v1", "https://models.example.org/v1"

Told = tuple[str, str]
Ask = Callable[[str, str], Awaitable[Told | None]]
"""Asks the server at a URL, trusting a file; the sentence and the hint of what is in the way, None where nothing is."""


async def _chat(model: str, url: str, ca_file: str) -> Told | None:
    settings = ChatSettings(
        ollama_host=url, openai_base_url=url, anthropic_base_url=url,
        ollama_ca_file=ca_file, openai_ca_file=ca_file, anthropic_ca_file=ca_file,
    )  # fmt: skip
    provider = make(model, settings, lambda name: "sk-key")
    try:
        await provider.prepare()
    except ProviderUnreachable as error:
        return error.message, error.hint
    except Exception:
        return None  # it was reached, and is no such server
    finally:
        await provider.close()
    return None


def _embed(model: str, url: str, ca_file: str) -> Told | None:
    settings = EmbeddingSettings(
        model, ollama_host=url, openai_base_url=url, ollama_ca_file=ca_file, openai_ca_file=ca_file
    )
    embedder = embed.make(settings)
    try:
        embedder.embed(["text"], "query")
    except EmbedderUnreachable as error:
        return error.message, error.hint
    except Exception:
        return None
    finally:
        embedder.close()
    return None


async def _mcp(url: str, ca_file: str) -> Told | None:
    connection = Connection(McpServer("there", url=url, ca_file=ca_file, timeout_s=5), Path("/"))
    await connection.settled()
    told = (connection.reason, connection.hint)
    await connection.close()
    return None if "gave an invalid answer" in told[0] else told


async def _tool(url: str, ca_file: str) -> Told | None:
    try:
        async with client("The service", url, ca_file) as made:
            await made.get(url)
    except ToolError as error:
        return error.message, error.hint
    except httpx.HTTPError as error:
        told = unreachable("The service", url, error)
        return told.message, told.hint
    return None


ASKS: dict[str, Ask] = {
    **{f"chat {name}": lambda url, ca, m=name: _chat(m, url, ca) for name in ("ollama:m", "openai:m", "anthropic:m")},  # type: ignore[misc]
    **{f"embed {n}": lambda url, ca, m=n: asyncio.to_thread(_embed, m, url, ca) for n in ("ollama:m", "openai:m")},  # type: ignore[misc]
    "mcp": _mcp,
    "tool": _tool,
}

every = pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)


class Plain(Double):
    """A server that is none of those that are asked for, but answers."""

    def reply(self, call: Call) -> Reply:
        return Reply({"error": {"message": "no such thing"}}, status=400)


@pytest.fixture(autouse=True)
def nothing_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REQUEST_METHOD", "SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def serving() -> Iterator[Callable[..., str]]:
    """`serving(certificate)`: the URL of a server that has it."""
    begun: list[Plain] = []

    def start(found: ServerCertificate | None, host: str = "127.0.0.1") -> str:
        server = Plain() if found is None else Plain().secure(found.context, host)
        begun.append(server)
        server.__enter__()
        return server.url

    yield start
    for server in begun:
        server.__exit__()


# ------------------------------------------------------------------------------------------------ certificates

WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "signed by itself": ({}, "is self-signed", "ca_file"),
    "signed by somebody unknown": ({"signed": True}, "its issuer is not trusted on this machine", "ca_file"),
    "with its chain missing": ({"signed": True, "chain": False}, "its issuer is not trusted", "SSL_"),
    "expired": ({"from_day": -9, "to_day": -2}, "has expired", "Renew it"),
    "of tomorrow": ({"from_day": 2, "to_day": 9}, "is not valid yet", "clock"),
    "for another name": ({"names": ("models.example.org",)}, "is for another host name", "certificate is for"),
    "for another address": ({"names": ("192.0.2.1",)}, "is for another host name", "certificate is for"),
}


@every
@pytest.mark.parametrize("wrong", ["signed by itself", "expired", "for another name"])
async def test_the_certificate_is_named_as_the_reason(
    ask: Ask, wrong: str, tmp_path: Path, serving: Callable[..., str]
) -> None:
    more, reason, hint = WRONG[wrong]
    found = certificate(tmp_path, **more)
    trusted = "" if wrong == "signed by itself" else str(found.file)
    told = await ask(serving(found), trusted)
    assert told and reason in told[0] and hint in told[1] and "certificate" in told[0].lower()


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_each_fault_of_a_certificate_has_its_sentence(
    wrong: str, host: str, tmp_path: Path, serving: Callable[..., str]
) -> None:
    more, reason, hint = WRONG[wrong]
    found = certificate(tmp_path, **more)
    trusted = str(found.file) if more.keys() & {"names", "from_day"} else ""
    told = await ASKS["chat openai:m"](serving(found, host), trusted)
    assert told and reason in told[0] and hint in told[1]


@every
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("way", ["ca_file", "SSL_CERT_FILE", "SSL_CERT_DIR"])
@pytest.mark.report("https://github.com/blakeblackshear/frigate/issues/20004")
async def test_certificates_that_are_named_are_trusted_by_every_client(
    ask: Ask, signed: bool, way: str, tmp_path: Path, serving: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = certificate(tmp_path, signed=signed)
    if way == "SSL_CERT_FILE":
        monkeypatch.setenv(way, str(found.file))
    elif way == "SSL_CERT_DIR":
        folder = tmp_path / "folder"
        folder.mkdir()
        (folder / f"{_hash(found.file)}.0").write_bytes(found.file.read_bytes())
        monkeypatch.setenv(way, str(folder))
    assert await ask(serving(found), str(found.file) if way == "ca_file" else "") is None


def _hash(file: Path) -> str:
    """How OpenSSL calls a certificate in a folder of them."""
    command = ["openssl", "x509", "-in", str(file), "-noout", "-hash"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_a_file_of_certificates_adds_to_the_usual_ones(library: ModuleType, tmp_path: Path) -> None:
    usual = library.create_ssl_context(trust_env=False).cert_store_stats()["x509_ca"]
    found = certificate(tmp_path, signed=True)
    options = client_options(library, HERE, str(found.file))
    assert options["verify"].cert_store_stats()["x509_ca"] == usual + 1
    assert options["verify"].verify_mode == ssl.CERT_REQUIRED and options["verify"].check_hostname


@every
@pytest.mark.parametrize("content", [None, b"", b"no certificate", b"-----BEGIN CERTIFICATE-----\nAA==\n"])
@pytest.mark.parametrize("way", ["ca_file", "SSL_CERT_FILE"])
async def test_a_file_that_holds_no_certificates_is_named(
    ask: Ask, content: bytes | None, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "own.pem"
    if content is not None:
        file.write_bytes(content)
    if way != "ca_file":
        monkeypatch.setenv(way, str(file))
    told = await ask(HERE, str(file) if way == "ca_file" else "")
    assert told and f"own.pem, set by {way}," in told[0] and way in told[1]
    assert certificates_problem(str(file))


@pytest.mark.parametrize(("name", "value"), [("SSL_CERT_DIR", "/nowhere"), ("SSLKEYLOGFILE", "/nowhere/keys")])
async def test_other_variables_of_tls_are_named(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    for ask in (ASKS["chat ollama:m"], ASKS["embed ollama:m"], ASKS["tool"]):
        told = await ask(HERE, "")
        assert told and name in told[0] and name in told[1]


@every
async def test_faults_of_tls_do_not_matter_to_a_server_without(
    ask: Ask, serving: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE"):
        monkeypatch.setenv(name, "/nowhere/at/all")
    assert await ask(serving(None), "/nowhere/own.pem") is None


@every
async def test_a_server_that_speaks_no_tls_is_told_from_one_that_is_away(ask: Ask, serving: Callable[..., str]) -> None:
    told = await ask(serving(None).replace("http:", "https:"), "")
    assert told and "does not speak proper HTTPS" in told[0] and "http://" in told[1]


# ------------------------------------------------------------------------------------------------ proxies

ODD = {
    "a SOCKS proxy": ("ALL_PROXY", "socks5://127.0.0.1:1080"),
    "a SOCKS proxy that looks names up": ("all_proxy", "socks5h://user:hunter2@127.0.0.1:1080"),
    "an old SOCKS proxy": ("HTTPS_PROXY", "socks4://127.0.0.1:1080"),
    "another scheme": ("https_proxy", "ftp://127.0.0.1:1"),
    "a port that is none": ("HTTPS_PROXY", "http://proxy:99x"),
    "no host": ("HTTPS_PROXY", "http://"),
    "words": ("ALL_PROXY", "no proxy please"),
}


@every
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.report("https://github.com/lfnovo/open-notebook/issues/48")
async def test_the_variable_that_names_a_useless_proxy_is_named(
    ask: Ask, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, value = ODD[odd]
    monkeypatch.setenv(name, value)
    told = await ask(AWAY, "")
    assert told and name in told[0] and name in told[1] and "hunter2" not in str(told)


@every
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.report("https://github.com/fuergaosi233/claude-code-proxy/issues/5")
async def test_a_server_on_this_machine_is_asked_through_no_proxy(
    ask: Ask, odd: str, host: str, serving: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(*ODD[odd])
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "[::1],::1,[,http://[")
    assert await ask(serving(None).replace("127.0.0.1", host), "") is None


@every
async def test_a_proxy_that_is_away_is_told_from_a_server_that_is(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", dead_url())
    told = await ask(AWAY, "")
    assert told and "through the proxy" in told[0] and "HTTPS_PROXY" in told[0] and "NO_PROXY" in told[1]


@pytest.mark.parametrize(
    ("exceptions", "url", "direct"),
    [
        ("*", AWAY, True),
        ("example.org", AWAY, True),
        (".example.org", AWAY, True),
        ("*.example.org", AWAY, True),
        ("localhost, Models.Example.org", AWAY, True),
        ("models.example.org:443", AWAY, True),
        ("models.example.org:8443", AWAY, False),
        ("https://models.example.org", AWAY, True),
        ("ample.org", AWAY, False),
        ("[::1],::1,[,http://[", AWAY, False),
        ("[::1] example.org", AWAY, True),
        ("192.168.0.0/16", "https://192.168.1.5:11434", True),
        ("192.168.1.5", "https://192.168.1.5:11434", True),
        ("10.0.0.0/8,nonsense/99", "https://192.168.1.5:11434", False),
        ("fd00::/8", "https://[fd00::5]:1", True),
        ("[fd00::5]", "https://[fd00::5]:1", True),
        ("fd00::5", "https://[fd00::5]:1", True),
        ("fd07:b51a:cc66:f0::/64", AWAY, False),
        ("", AWAY, False),
    ],
)
@pytest.mark.report("https://github.com/MoonshotAI/kimi-cli/issues/996")
@pytest.mark.report("https://github.com/orbstack/orbstack/issues/2456")
def test_no_proxy_names_hosts_domains_networks_and_ports(
    exceptions: str, url: str, direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "proxy:3128")
    monkeypatch.setenv("no_proxy", exceptions)
    assert proxy_for(url) == (("", "") if direct else ("https_proxy", "proxy:3128"))
    options = client_options(httpx2, url)
    assert (options["proxy"] is None) is direct
    assert direct or str(options["proxy"].url) == "http://proxy:3128"


def test_only_the_proxy_of_the_servers_scheme_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "socks9://odd")
    monkeypatch.setenv("ALL_PROXY", "http://proxy:1")
    assert proxy_for(AWAY) == ("ALL_PROXY", "http://proxy:1")
    assert proxy_for("http://models.example.org")[0] == "HTTP_PROXY"
    with pytest.raises(ClientUnusable, match="HTTP_PROXY"):
        client_options(httpx, "http://models.example.org")
    assert client_options(httpx, "http://models.example.org", proxies=False)["proxy"] is None


async def test_a_list_of_models_names_what_is_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    settings = ChatSettings(
        model="openai:m", fallback="anthropic:m", ollama_host=AWAY, openai_base_url=AWAY, anthropic_base_url=AWAY
    )
    entries = [entry for entry in await offered(settings, lambda name: "key") if entry["provider"] != "extractive"]
    assert len(entries) == 3
    assert all(entry["state"] == "unreachable" and "ALL_PROXY" in entry["reason"] for entry in entries)


@pytest.mark.parametrize("name", ["OLLAMA_API_KEY"])
async def test_a_key_that_cannot_be_sent_is_no_bug(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "schlüssel")
    for ask in (ASKS["chat ollama:m"], ASKS["embed ollama:m"]):
        told = await ask(HERE, "")
        assert told and "cannot be reached" in told[0] and "schl" not in told[0]
