"""What HTTP clients for other servers are made with: certificates, and the proxy of the environment, if any.

Every client of this program takes its options from here, whether it is one of httpx, of httpx2, or inside an SDK.
"""

from __future__ import annotations

import importlib.util
import ipaddress
import os
import ssl
import urllib.request
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from urllib.parse import urlsplit

from tarsd.upstream import ClientUnusable, Fault, is_loopback

CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_UNSET: Final = "Correct or unset {name} where the daemon is started, then restart the daemon."
_PROXY_HINT: Final = "Correct or unset {name}, or add the host to NO_PROXY, then restart the daemon."


def client_options(http: ModuleType, url: str, ca_file: str = "", *, proxies: bool = True) -> dict[str, Any]:
    """Arguments for a client of `http` (httpx or httpx2) that talks to the server at `url` alone.

    `ca_file` is a file of certificates to trust besides the usual ones. `proxies` off: never through one; a server on
    this machine is never asked through one. May take a tenth of a second. Raises ClientUnusable.
    """
    parts = urlsplit(url)
    # what is not asked with TLS needs none of it, and faults of the environment are none of its business
    verify = _trusted(http, ca_file) if parts.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    name, address = proxy_for(url) if proxies else ("", "")
    return {"trust_env": False, "verify": verify, "proxy": _proxy(http, name, address) if address else None}


def proxy_for(url: str) -> tuple[str, str]:
    """The variable that names a proxy for `url`, and what it says; two empty texts where none is asked."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    if not host or is_loopback(host):
        return "", ""
    found = urllib.request.getproxies()  # of the environment; on some systems, those of its settings
    if _is_excepted(host, parts.port or (443 if parts.scheme == "https" else 80), found.get("no", "")):
        return "", ""
    for kind in (parts.scheme, "all"):
        if address := found.get(kind, "").strip():
            named = [key for key in os.environ if key.lower() == f"{kind}_proxy" and os.environ[key].strip() == address]
            if named:
                return named[0], address
            return ("", "") if urllib.request.proxy_bypass(host) else ("the system's setting", address)
    return "", ""


def certificates_problem(path: str) -> str:
    """What is wrong with a file of certificates, or ""."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError:
        return "contains no readable certificate (PEM)"
    except OSError as error:
        return f"cannot be read ({error.strerror or type(error).__name__})"
    return ""


def _is_excepted(host: str, port: int, exceptions: str) -> bool:
    """Whether NO_PROXY names the host: by its name or a domain above it, an address, a network, with a port or without.

    What cannot be read in it names nothing.
    """
    for entry in exceptions.lower().replace(",", " ").split():
        if entry == "*":
            return True
        try:
            if "/" in entry and "://" not in entry:
                if ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False):
                    return True
                continue
            bare = entry.count(":") > 1 and "[" not in entry
            parts = urlsplit(f"//[{entry}]" if bare else entry if "://" in entry else f"//{entry}")
            name, only = (parts.hostname or "").lstrip("*").strip("."), parts.port
        except ValueError:
            continue
        if name and only in (None, port) and (host == name or host.endswith(f".{name}")):
            return True
    return False


def _proxy(http: ModuleType, name: str, address: str) -> Any:
    """The proxy as `http` takes it. Never shows the address, which may hold a password."""
    hint = _PROXY_HINT.format(name=name)
    address = address if "://" in address else f"http://{address}"
    if address.lower().startswith("socks") and importlib.util.find_spec("socksio") is None:
        text = f"{name} is a SOCKS proxy, which needs the package socksio, but that is not installed"
        raise ClientUnusable(Fault("setup", 0, text, hint=hint))
    try:
        proxy = http.Proxy(address)
        if not proxy.url.host or any(letter.isspace() for letter in address):
            raise ValueError
    except Exception:
        raise ClientUnusable(Fault("setup", 0, f"{name} is not a usable proxy", hint=hint)) from None
    return proxy


def _trusted(http: ModuleType, ca_file: str) -> ssl.SSLContext:
    """The certificates of SSL_CERT_FILE and SSL_CERT_DIR, else the usual ones; and those of `ca_file`."""
    named = {name: os.environ[name] for name in CERTIFICATES if os.environ.get(name)}
    if file := named.get("SSL_CERT_FILE"):
        _check(certificates_problem(file), "SSL_CERT_FILE", file)
    if folders := named.get("SSL_CERT_DIR"):
        there = any(map(os.path.isdir, folders.split(os.pathsep)))
        _check("" if there else "is not a folder", "SSL_CERT_DIR", folders)
    if ca_file:
        _check(certificates_problem(ca_file), "ca_file", ca_file)
    try:
        if named:
            context = ssl.create_default_context(cafile=file, capath=folders)
        else:
            context = http.create_ssl_context(trust_env=False)
    except (OSError, ValueError) as error:
        name = "SSLKEYLOGFILE" if os.environ.get("SSLKEYLOGFILE") else "OPENSSL_CONF"
        text = f"{name} cannot be used ({type(error).__name__})"
        raise ClientUnusable(Fault("setup", 0, text, hint=_UNSET.format(name=name))) from None
    if ca_file:
        context.load_verify_locations(ca_file)
    if named or ca_file:
        # a certificate that somebody names is trusted as it is, if it is not an authority's too
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _check(problem: str, name: str, path: str) -> None:
    if problem:
        hint = "Correct ca_file in the config." if name == "ca_file" else _UNSET.format(name=name)
        where = Path(path).name if os.sep in path else path
        raise ClientUnusable(Fault("setup", 0, f"{where}, set by {name}, {problem}", hint=hint))
