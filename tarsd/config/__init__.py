"""Settings: TOML file and environment become one frozen object, with every path on disk computed and none created.

A faulty file is refused as a whole, with all its faults at once. Nobody else reads settings from files or environment.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from tarsd.config.places import SOCKET_BYTES, config_file, expand, find_sockets, short_folder, socket_path, vault_id

if TYPE_CHECKING:
    from tarsd.config.reader import load
    from tarsd.config.settings import (
        ChatSettings,
        ChunkSettings,
        Collection,
        Config,
        DatesSettings,
        EmbeddingSettings,
        FilesSettings,
        HttpSettings,
        McpServer,
        MemorySettings,
        Paths,
        PerformanceSettings,
        PrivacySettings,
        SearchSettings,
        ToolSettings,
        WatchSettings,
        as_tables,
    )
    from tarsd.config.spelling import check_model, ollama_host
else:

    def __getattr__(name: str) -> object:
        """What only the daemon needs loads when it is first asked for: a search from the shell needs places alone."""
        for part in ("settings", "reader", "spelling"):
            values = vars(import_module(f"tarsd.config.{part}"))
            if name in __all__ and name in values:
                return values[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "SOCKET_BYTES", "ChatSettings", "ChunkSettings", "Collection", "Config", "DatesSettings", "EmbeddingSettings",
    "FilesSettings", "HttpSettings", "McpServer", "MemorySettings", "Paths", "PerformanceSettings", "PrivacySettings",
    "SearchSettings", "ToolSettings", "WatchSettings", "as_tables", "check_model", "config_file", "expand",
    "find_sockets", "load", "ollama_host", "short_folder", "socket_path", "vault_id",
]  # fmt: skip
