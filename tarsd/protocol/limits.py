"""How large what comes may be, and the words that requests and events share."""

from __future__ import annotations

from typing import Final, Literal

PROTOCOL: Final = 1
HEARTBEAT_S: Final = 15.0
MAX_BODY: Final = 8 * 1024 * 1024
MAX_QUERY: Final = 10_000
MAX_MESSAGE: Final = 200_000
MAX_ID: Final = 200
MAX_PATH: Final = 4_096
MAX_PATHS: Final = 10_000
MAX_WAIT_S: Final = 60
MAX_ROWS: Final = 256
MAX_NUMBERS: Final = 8_192
"""Vectors in an object, and the numbers of each: as many as any setting allows. Together they fit into a body."""

Mode = Literal["hybrid", "fts", "vec"]
Writer = Literal["client", "daemon"]
MemoryKind = Literal["semantic", "procedural", "noticed"]
Audience = Literal["person", "here", "elsewhere"]
"""Who reads an answer: the person, or a model that is no part of the daemon, on this machine or on another one."""

SLASH_COMMANDS: Final = frozenset({
    "?", "base", "digest", "exit", "forget", "h", "help", "memory", "new", "note", "notes", "q", "quit", "r",
    "remember", "review", "save", "search", "sessions", "sgrep", "svec", "tasks", "undo", "usage", "w",
})  # fmt: skip
"""The commands of conversations, here or in a client: no prompt has such a name."""

EventType = Literal[
    "queued", "retrieved", "waiting", "token", "thinking", "retract", "tool", "approval", "write", "written", "usage",
    "done", "failed",
]  # fmt: skip
LAST_EVENTS: Final = frozenset({"done", "failed"})
