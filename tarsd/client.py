"""HTTP over the daemon's Unix socket with the standard library alone, so that a call from the shell starts instantly.

Not http.client: it loads the e-mail parser, which takes longer than most answers.
"""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from tarsd.config import find_sockets, short_folder
from tarsd.config.places import meant_vault
from tarsd.errors import EXIT_NOTHING, EXIT_REFUSED, EXIT_USAGE, ClientError, NoDaemon

CONNECT_S = 5.0
ANSWER_S = 60.0
"""Longest silence in an answer; a stream has a heartbeat every 15 s."""

SLOW_S = {"/v1/review": 900.0}
"""Plain answers for which a model has to write first; on a small machine that takes its time."""

BLOCK = 1 << 16
MAX_HEAD = 1 << 16

START = "Start it with: tarsd run (or tarsd run --vault PATH)."


class Client:
    """Speaks to one daemon. Every call is a connection of its own, so that a client may be shared and kept.

    `vault`: whose daemon that is, where it is known, for what is said when none listens.
    """

    def __init__(self, socket_path: Path, *, timeout: float = ANSWER_S, vault: Path | None = None) -> None:
        self.socket_path = socket_path
        self.timeout = timeout
        self._vault = vault

    @classmethod
    def find(
        cls, vault: Path | None = None, env: Mapping[str, str] | None = None, *, timeout: float = ANSWER_S
    ) -> Client:
        """The client of the daemon that is meant: by `vault`, the config, or because only one is running.

        Raises NoDaemon when nothing listens, ClientError when several do and none was named.
        """
        meant = meant_vault(vault, os.environ if env is None else env)
        clients = [cls(path, timeout=timeout, vault=meant) for path in find_sockets(meant, env)]
        alive = clients if len(clients) == 1 else [client for client in clients if client.alive()]
        if len(alive) == 1:
            return alive[0]
        if not alive:
            raise NoDaemon("No daemon is running.", START)
        vaults = [str(client.get("/v1/hello").get("vault", {}).get("path", client.socket_path)) for client in alive]
        raise ClientError(
            f"{len(alive)} daemons are running.",
            f"Choose one with --vault: {', '.join(sorted(vaults))}.",
            code="ambiguous",
            exit_code=EXIT_USAGE,
        )

    def alive(self) -> bool:
        """Whether somebody listens."""
        try:
            self._connect().close()
        except NoDaemon:
            return False
        return True

    def get(self, path: str) -> dict[str, Any]:
        """The JSON object at `path`. Raises ClientError with the daemon's own message, NoDaemon when none listens."""
        return self.request("GET", path)

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The JSON object that answers `body`; errors as in `get`."""
        return self.request("POST", path, body or {})

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Any method; errors as in `get`."""
        with self._connect() as connection:
            connection.settimeout(max(self.timeout, SLOW_S.get(path, 0.0)))
            answer = _ask(connection, method, path, body)
            return _object(b"".join(answer.blocks()))

    def stream(self, path: str, body: Mapping[str, Any] | None = None) -> Iterator[dict[str, Any]]:
        """The objects of an NDJSON answer as they arrive, heartbeats and the end line left out; GET without a body.

        Raises as `get`, and ClientError when the stream ends early, so that a part is never taken for the whole.
        """
        with self._connect() as connection:
            answer = _ask(connection, "GET" if body is None else "POST", path, body)
            for line in lines(answer.blocks()):
                event = _object(line)
                if event.get("type") == "end":
                    return
                if event.get("type") == "heartbeat":
                    continue
                if event.get("type") == "error":
                    raise _error(500, event)
                yield event
        raise _cut()

    def _connect(self) -> socket.socket:
        _check_folder(self.socket_path)
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(min(CONNECT_S, self.timeout))
            connection.connect(os.fsencode(self.socket_path))
            connection.settimeout(self.timeout)
        except BaseException as error:
            connection.close()
            if isinstance(error, TimeoutError):
                raise ClientError("The daemon does not answer.", "See: tarsd status.", code="timeout") from None
            if isinstance(error, PermissionError):
                raise ClientError(f"{self.socket_path} belongs to another user.", code="refused") from None
            if isinstance(error, OSError):
                raise self._no_daemon() from None
            raise
        return connection

    def _no_daemon(self) -> NoDaemon:
        """The error for a missing daemon, or for a vault folder that does not exist."""
        if self._vault is None:
            return NoDaemon("No daemon is running for this vault.", START)
        if not os.path.isdir(self._vault):
            return NoDaemon(f"There is no folder {self._vault}.", "Check the spelling, and that its disk is connected.")
        return NoDaemon(f"No daemon is running for {self._vault}.", START)


def _check_folder(path: Path) -> None:
    """If others can put a socket (or a folder) there, the listener may not be our daemon.

    A folder above may be open to others if it is sticky, as /tmp: then they cannot replace what is ours in it.
    """
    try:
        folder = Path(os.path.realpath(path.parent))
        about = os.lstat(folder)
        private = path.parent != short_folder() or (not path.parent.is_symlink() and not about.st_mode & 0o077)
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or _others_write(about) or not private:
            raise _open_to_others(path.parent)
        for above in folder.parents:
            about = os.lstat(above)
            if about.st_uid not in (0, os.getuid()) or (_others_write(about) and not about.st_mode & stat.S_ISVTX):
                raise _open_to_others(above)
    except (FileNotFoundError, NotADirectoryError):
        return  # nobody listens there


def _others_write(about: os.stat_result) -> bool:
    """A group that has the user's own number is private on most systems, where new folders let it write."""
    return bool(about.st_mode & 0o002 or (about.st_mode & 0o020 and about.st_gid not in (0, os.getuid())))


def _open_to_others(folder: Path) -> ClientError:
    return ClientError(
        f"{folder} is not private to you, so nothing is sent to its socket.",
        "Check who made it, then remove it or take away others' write permission.",
        code="refused",
    )


class _Response:
    """An HTTP answer being read: its status, and its body in blocks as they come."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = bytearray()
        head = self._until(b"\r\n\r\n").split(b"\r\n")
        words = head[0].split(None, 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
            raise ClientError("The program on the socket is not tarsd.", code="bad_answer")
        self.status = int(words[1])
        pairs = (line.partition(b":") for line in head[1:])
        self._headers = {name.strip().lower(): value.strip().lower() for name, _, value in pairs}

    def blocks(self) -> Iterator[bytes]:
        """The body's bytes, without the framing. Raises ClientError when it ends early."""
        if b"chunked" in self._headers.get(b"transfer-encoding", b""):
            while size := int(self._until(b"\r\n").split(b";")[0], 16):
                yield from self._exactly(size)
                self._until(b"\r\n")
        elif (length := self._headers.get(b"content-length", b"")).isdigit():
            yield from self._exactly(int(length))
        else:
            yield bytes(self._buffer)
            while block := self._receive():
                yield block

    def _exactly(self, size: int) -> Iterator[bytes]:
        while size:
            if not self._buffer:
                self._more()
            block = bytes(self._buffer[:size])
            del self._buffer[: len(block)]
            size -= len(block)
            yield block

    def _until(self, mark: bytes) -> bytes:
        while (at := self._buffer.find(mark)) < 0:
            if len(self._buffer) > MAX_HEAD:
                raise ClientError("The program on the socket is not tarsd.", code="bad_answer")
            self._more()
        head = bytes(self._buffer[:at])
        del self._buffer[: at + len(mark)]
        return head

    def _more(self) -> None:
        block = self._receive()
        if not block:
            raise _cut()
        self._buffer += block

    def _receive(self) -> bytes:
        try:
            return self._connection.recv(BLOCK)
        except TimeoutError:
            raise ClientError("The daemon no longer answers.", "See: tarsd status.", code="timeout") from None
        except OSError:
            raise _cut() from None


def grouped(problems: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], dict[str, list[int]]]:
    """The places of each kind of problem in a status: (reason, hint) -> path -> lines; one of everything has no path.

    As many places as there are, so many problems are counted, wherever they are counted.
    """
    groups: dict[tuple[str, str], dict[str, list[int]]] = {}
    for problem in problems:
        kind = (str(problem.get("reason") or ""), str(problem.get("hint") or ""))
        path = "/".join(str(problem[name]) for name in ("collection", "path") if problem.get(name))
        at = groups.setdefault(kind, {}).setdefault(path, [])
        if problem.get("line"):
            at.append(int(problem["line"]))
    return groups


def lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Whole lines out of blocks that end anywhere, even within a character; blank lines left out, any length."""
    parts: list[bytes] = []
    for block in blocks:
        first, *more = block.split(b"\n")
        parts.append(first)
        for part in more:
            if line := b"".join(parts).strip():
                yield line
            parts = [part]
    if line := b"".join(parts).strip():
        yield line


def _ask(connection: socket.socket, method: str, path: str, body: Mapping[str, Any] | None) -> _Response:
    """Sends a request; raises the daemon's error if it answers with one."""
    raw = b"" if body is None else json.dumps(body).encode()
    target = quote(path, safe="/?&=%:,;@!$'()*+~-._")
    head = f"{method} {target} HTTP/1.1\r\nHost: tarsd\r\nConnection: close\r\n"
    if body is not None:
        head += f"Content-Type: application/json\r\nContent-Length: {len(raw)}\r\n"
    try:
        connection.sendall(f"{head}\r\n".encode() + raw)
    except TimeoutError:
        raise ClientError("The daemon does not answer.", "See: tarsd status.", code="timeout") from None
    except OSError:
        pass  # it may have refused a body that is too large, and said so
    answer = _Response(connection)
    if answer.status >= 400:
        raise _error(answer.status, _object(b"".join(answer.blocks())))
    return answer


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ClientError("The daemon's answer is not JSON.", "Check that client and daemon have the same version.")
    return cast("dict[str, Any]", value)


def _error(status: int, reply: Mapping[str, Any]) -> ClientError:
    """The daemon's error as ours, message and hint as it gave them."""
    error = reply.get("error")
    error = error if isinstance(error, dict) else {}
    exits = {400: EXIT_USAGE, 422: EXIT_USAGE, 404: EXIT_NOTHING}
    failure = ClientError(
        str(error.get("message") or f"The daemon answered with status {status}."),
        str(error.get("hint") or ""),
        code=str(error.get("code") or "error"),
        exit_code=exits.get(status, EXIT_REFUSED),
    )
    failure.line = str(error.get("line") or "")
    return failure


def _cut() -> ClientError:
    return ClientError("The daemon broke off the answer.", "Is it still running? See: tarsd status.", code="cut")
