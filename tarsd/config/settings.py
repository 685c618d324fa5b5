"""The settings as types: one frozen dataclass a section, defaults and limits beside each field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

OLLAMA = "http://127.0.0.1:11434"
OPENAI = "https://api.openai.com/v1"
ANTHROPIC = "https://api.anthropic.com"


def _range(default: Any, low: float, high: float) -> Any:
    return field(default=default, metadata={"low": low, "high": high})


def _one_of(*choices: str) -> Any:
    return field(default=choices[0], metadata={"choices": choices})


def _some_of(*choices: str) -> Any:
    """A list of these; all of them by default."""
    return field(default=choices, metadata={"each": choices})


def _elsewhere(default: Any, **kwargs: Any) -> Any:
    """A field that no key of this section sets."""
    return field(default=default, metadata={"elsewhere": True}, **kwargs)


def _scores() -> dict[str, int]:
    headings = {"h1": 100, "h2": 90, "h3": 80, "h4": 70, "h5": 60, "h6": 50}
    return headings | {"rule": 70, "fence": 80, "blank": 10, "list": 5}


@dataclass(frozen=True)
class PerformanceSettings:
    """How much of the machine is taken. "small": less memory and fewer cores at once, for somewhat more time."""

    profile: Literal["normal", "small"] = _one_of("normal", "small")

    @property
    def small(self) -> bool:
        """Whether the machine is to be spared."""
        return self.profile == "small"


@dataclass(frozen=True)
class Collection:
    """A folder of notes that is searched under a name; the vault itself has the empty name."""

    name: str
    root: Path


@dataclass(frozen=True)
class ChunkSettings:
    """How notes are cut: `tokens` a chunk, `overlap` as a part of it, `max_chars` at most, break-point `scores`."""

    tokens: int = _range(220, 16, 4096)
    overlap: float = _range(0.10, 0.0, 0.5)
    max_chars: int = _range(2000, 100, 100_000)
    scores: Mapping[str, int] = field(default_factory=_scores)


@dataclass(frozen=True)
class EmbeddingSettings:
    """The embedding model; prefixes of None mean the model family's own."""

    model: str = "auto"
    query_prefix: str | None = None
    document_prefix: str | None = None
    dimensions: int | None = _range(None, 8, 8192)
    ollama_host: str = _elsewhere(OLLAMA)
    openai_base_url: str = _elsewhere(OPENAI)
    ollama_ca_file: str = _elsewhere("")
    openai_ca_file: str = _elsewhere("")
    openai_key: str | None = _elsewhere(None, repr=False)


@dataclass(frozen=True)
class SearchSettings:
    """How the lists of keyword, vector and title matches become one.

    Weights are relative to each other: keywords, model vectors, table vectors, titles, the note's other passages and
    exact wording. `same_note` is what each further passage of a note keeps of its score.
    """

    fusion: Literal["weighted", "rrf"] = _one_of("weighted", "rrf")
    rrf_k: int = _range(60, 1, 1000)
    weight_fts: float = _range(1.0, 0.0, 10.0)
    weight_vec: float = _range(1.25, 0.0, 10.0)
    weight_table: float = _range(0.65, 0.0, 10.0)
    weight_files: float = _range(0.5, 0.0, 1.0)
    weight_title: float = _range(0.4, 0.0, 10.0)
    weight_support: float = _range(0.3, 0.0, 10.0)
    weight_exact: float = _range(0.1, 0.0, 10.0)
    same_note: float = _range(0.95, 0.0, 1.0)


@dataclass(frozen=True)
class WatchSettings:
    """How file events become work; all times in seconds."""

    mode: Literal["auto", "events", "polling"] = _one_of("auto", "events", "polling")
    debounce_s: float = _range(0.2, 0.0, 60.0)
    max_wait_s: float = _range(2.0, 0.05, 600.0)
    reconcile_s: float = _range(600.0, 1.0, 86_400.0)
    poll_s: float = _range(2.0, 0.1, 3600.0)
    grace_empty_s: float = _range(5.0, 0.0, 3600.0)


@dataclass(frozen=True)
class HttpSettings:
    """The TCP listener, off unless asked for. Without a `port` it is 8427 or the next free one, and stays that."""

    enabled: bool = False
    host: str = "127.0.0.1"
    port: int | None = _range(None, 0, 65_535)
    allowed_hosts: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChatSettings:
    """The chat model, the one that stands in for it, and the bounds of a turn.

    `context` is the most tokens that a request may take (0: what the model has); `reply_tokens` of them are kept for
    the reply, `evidence_tokens` at most go to passages. At most `pictures` go along with a message to a model that
    sees. `rounds` bounds the calls of the model, `seconds` a turn.
    """

    model: str = "auto"
    fallback: str = ""
    context: int = _range(0, 0, 2_000_000)
    reply_tokens: int = _range(2048, 64, 100_000)
    evidence_tokens: int = _range(3000, 200, 100_000)
    pictures: int = _range(4, 0, 20)
    rounds: int = _range(8, 1, 50)
    seconds: float = _range(300.0, 1.0, 3600.0)
    ollama_host: str = _elsewhere(OLLAMA)
    openai_base_url: str = _elsewhere(OPENAI)
    anthropic_base_url: str = _elsewhere(ANTHROPIC)
    ollama_ca_file: str = _elsewhere("")
    openai_ca_file: str = _elsewhere("")
    anthropic_ca_file: str = _elsewhere("")


@dataclass(frozen=True)
class Price:
    """What a million tokens cost; those from a cache, and written to it, as much as other input unless they say so."""

    input: float = _range(0.0, 0.0, 1e9)
    output: float = _range(0.0, 0.0, 1e9)
    cache_read: float | None = _range(None, 0.0, 1e9)
    cache_write: float | None = _range(None, 0.0, 1e9)


@dataclass(frozen=True)
class UsageSettings:
    """Prices by the names of models, in any currency, and what those that cost may take in a month (None: any)."""

    currency: str = ""
    monthly_ceiling: float | None = _range(None, 0.0, 1e12)
    monthly_tokens: int | None = _range(None, 0, 10**15)
    prices: Mapping[str, Price] = field(default_factory=dict)


@dataclass(frozen=True)
class MemorySettings:
    """Whether anything is remembered at all, and whether conversations become notes in the vault.

    A single question that was answered without a model becomes one only with `note_each_question`, or when the person
    says so.
    """

    enabled: bool = True
    session_notes: bool = True
    note_each_question: bool = False


@dataclass(frozen=True)
class ToolSettings:
    """Tools that need no yes (`allow`: names, or "*"), the longest a tool may take, and where the outer ones are.

    `ca_file`, here as elsewhere, is a file of certificates to trust besides the usual ones.
    """

    allow: tuple[str, ...] = ()
    timeout_s: float = _range(30.0, 0.1, 600.0)
    weather_place: str = ""
    weather_url: str = "https://api.open-meteo.com/v1/forecast"
    geocoding_url: str = "https://geocoding-api.open-meteo.com/v1/search"
    todoist_url: str = "https://api.todoist.com/api/v1"
    ca_file: str = ""


@dataclass(frozen=True)
class PrivacySettings:
    """Folders (`Private/`) and tags (`#private`) whose text stays on this machine."""

    local_only: tuple[str, ...] = ()


@dataclass(frozen=True)
class FilesSettings:
    """Which files besides notes are read: `kinds` of them, only those in `folders` (none named: all), `max_mb` at most.
    """

    kinds: tuple[str, ...] = _some_of("pdf", "office", "book", "web", "picture")
    folders: tuple[str, ...] = ()
    max_mb: int = _range(50, 1, 2000)


@dataclass(frozen=True)
class DatesSettings:
    """Names of properties that say a note's date, asked before the usual ones."""

    properties: tuple[str, ...] = ()


@dataclass(frozen=True)
class SkillSettings:
    """Folders outside the vault that hold skills, each a folder with a SKILL.md; real paths."""

    folders: tuple[str, ...] = ()


@dataclass(frozen=True)
class McpServer:
    """An MCP server: a command line to start, or a URL; `allow` names the tools of it that need no yes ("*": all)."""

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    ca_file: str = ""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = _range(30.0, 0.1, 600.0)
    allow: tuple[str, ...] = ()


@dataclass(frozen=True)
class Paths:
    """Every place on disk, those of this vault already filled in. Whoever uses a folder makes it, with mode 0700."""

    config_file: Path
    cache: Path
    state: Path
    logs: Path
    socket: Path
    index_db: Path
    files_db: Path
    embeddings_db: Path
    lock: Path
    usage: Path


@dataclass(frozen=True)
class Config:
    """Everything that was decided before the daemon started. `vault` is a real path and need not exist now."""

    vault: Path
    vault_id: str
    paths: Paths
    exclude: tuple[str, ...] = ()
    memory_folder: str = "tars"
    include_comments: bool = False
    collections: tuple[Collection, ...] = ()
    chunk: ChunkSettings = ChunkSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    search: SearchSettings = SearchSettings()
    watch: WatchSettings = WatchSettings()
    chat: ChatSettings = ChatSettings()
    usage: UsageSettings = UsageSettings()
    memory: MemorySettings = MemorySettings()
    tools: ToolSettings = ToolSettings()
    privacy: PrivacySettings = PrivacySettings()
    dates: DatesSettings = DatesSettings()
    files: FilesSettings = FilesSettings()
    skills: SkillSettings = SkillSettings()
    http: HttpSettings = HttpSettings()
    mcp: tuple[McpServer, ...] = ()
    performance: PerformanceSettings = PerformanceSettings()


@dataclass(frozen=True)
class VaultSettings:
    """Section [vault] as it is written; the parts of Config that it becomes are checked there."""

    path: str = ""
    exclude: tuple[str, ...] = ()
    memory_folder: str = "tars"
    include_comments: bool = False


def as_tables(config: Config) -> dict[str, Any]:
    """The settings in force in the shape of the file, None where a model's own value holds. No keys are in it."""
    tables: dict[str, Any] = {
        "vault": {
            "path": str(config.vault),
            "exclude": list(config.exclude),
            "memory_folder": config.memory_folder,
            "include_comments": config.include_comments,
        }
    }
    if config.collections:
        tables["collection"] = [{"name": folder.name, "path": str(folder.root)} for folder in config.collections]
    for name in (
        "embedding", "chunk", "search", "watch", "chat", "usage", "memory", "tools", "privacy", "dates", "files",
        "skills", "http", "performance",
    ):  # fmt: skip
        section = getattr(config, name)
        own = [field.name for field in fields(section) if not field.metadata.get("elsewhere")]
        values = {key: getattr(section, key) for key in own}
        tables[name] = {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}
    tables["usage"]["prices"] = {
        name: {key: value for key, value in asdict(price).items() if value is not None}
        for name, price in config.usage.prices.items()
    }
    chat = config.chat
    tables["ollama"] = {"host": chat.ollama_host, "ca_file": chat.ollama_ca_file}
    tables["openai"] = {"base_url": chat.openai_base_url, "ca_file": chat.openai_ca_file}
    tables["anthropic"] = {"base_url": chat.anthropic_base_url, "ca_file": chat.anthropic_ca_file}
    if config.mcp:
        tables["mcp"] = [_mcp_table(server) for server in config.mcp]
    return tables


def _mcp_table(server: McpServer) -> dict[str, Any]:
    """Without the values of its environment, which may be secrets."""
    about: dict[str, Any] = {"name": server.name}
    about |= {"command": list(server.command)} if server.command else {"url": server.url}
    about |= {"ca_file": server.ca_file} if server.ca_file else {}
    about |= {"env": dict.fromkeys(server.env, "…")} if server.env else {}
    return about | {"timeout_s": server.timeout_s, "allow": list(server.allow)}
