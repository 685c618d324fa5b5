"""Reads the settings: defaults, then the file, then the environment. Collects every fault, with its line and key."""

from __future__ import annotations

import dataclasses
import difflib
import errno
import os
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from tarsd.config.file import Key, key_lines, read_table
from tarsd.config.places import NO_PATH, config_file, expand, paths, vault_id
from tarsd.config.rules import is_sound
from tarsd.config.settings import (
    ANTHROPIC,
    OLLAMA,
    OPENAI,
    ChatSettings,
    Collection,
    Config,
    EmbeddingSettings,
    McpServer,
    Paths,
    Price,
    PrivacySettings,
    SkillSettings,
    ToolSettings,
    VaultSettings,
)
from tarsd.config.spelling import base_url, check_model, ollama_host
from tarsd.errors import ConfigError

SECTIONS = (
    "vault", "collection", "embedding", "chunk", "search", "watch", "ollama", "openai", "anthropic", "chat", "usage",
    "memory", "tools", "privacy", "dates", "files", "skills", "http", "performance", "mcp"
)  # fmt: skip
PLAIN = ("chunk", "search", "watch", "usage", "memory", "dates", "files", "http", "performance")
"""Sections that are nothing but their fields."""

NO_KEYS = "keys do not belong in the config: use tarsd key set"
UNKNOWN = "unknown setting {name}; {what}"

Settings = TypeVar("Settings", bound=Any)


def load(*, vault: Path | None = None, env: Mapping[str, str] | None = None) -> Config:
    """The settings in force: defaults, then the file, then TARSD_* of `env`, then `vault`.

    Raises ConfigError with every fault, each as `file:line: key: what is wrong`.
    """
    env = os.environ if env is None else env
    file = config_file(env)
    table, text = read_table(file, env)
    return _ConfigReader(file, text, env).config(table, vault)


class _ConfigReader:
    """Turns a table into a Config, collecting faults on the way."""

    def __init__(self, file: Path, text: str, env: Mapping[str, str]) -> None:
        self.file = file
        self.env = env
        self.lines = key_lines(text)
        self.found: list[tuple[int, str]] = []

    def fault(self, key: Key, what: str, form: str = "{name}: {what}") -> None:
        """Notes a fault of `key`, at its own line or that of the nearest table around it."""
        line = next((self.lines[key[:n]] for n in range(len(key), 0, -1) if key[:n] in self.lines), 0)
        name = re.sub(r"\.(\d+)(?=\.|$)", lambda m: f"[{int(m[1]) + 1}]", ".".join(key))
        place = f"{self.file}:{line}" if line else str(self.file)
        self.found.append((line or 10**9, f"{place}: {form.format(name=name, what=what)}".replace("\n", "\\n")))

    def problem(self, what: str) -> None:
        """Notes a fault that is not in the file."""
        self.found.append((0, what))

    def config(self, table: dict[str, Any], vault: Path | None) -> Config:
        """The whole Config; raises ConfigError with all that is wrong."""
        self.unknown(table, SECTIONS, ())
        ollama = self.server(table, "ollama", "host", ollama_host, self.env.get("OLLAMA_HOST")) or OLLAMA
        openai = self.server(table, "openai", "base_url", base_url, None) or OPENAI
        anthropic = self.server(table, "anthropic", "base_url", base_url, None) or ANTHROPIC
        ca: dict[str, Any] = {
            f"{name}_ca_file": self.ca_file(table.get(name), (name,)) for name in ("ollama", "openai", "anthropic")
        }
        chat = ChatSettings(ollama_host=ollama, openai_base_url=openai, anthropic_base_url=anthropic, **ca)
        chat = self.fill(chat, table, "chat")
        del ca["anthropic_ca_file"]
        embedding = EmbeddingSettings(ollama_host=ollama, openai_base_url=openai, **ca)
        embedding = self.fill(embedding, table, "embedding")
        if chat.fallback and (wrong := check_model("chat", chat.fallback)):
            self.fault(("chat", "fallback"), wrong)
        own = self.fill(VaultSettings(), table, "vault")
        self.check_folders(own)
        root = self.root(own.path, vault, table.get("vault", {}))
        privacy = self.fill(PrivacySettings(), table, "privacy")
        for rule in privacy.local_only:
            self.check_rule(rule, ("privacy", "local_only"))
        identity = vault_id(root or Path())
        places = paths(identity, self.env)
        if root is not None:
            self.check_outside(root, places)
        config = Config(
            vault=root or Path(),
            vault_id=identity,
            paths=places,
            exclude=own.exclude,
            memory_folder=own.memory_folder.strip("/"),
            include_comments=own.include_comments,
            collections=self.collections(table, root),
            embedding=self.model(embedding, "embedding"),
            chat=self.model(chat, "chat"),
            tools=self.tools(table),
            privacy=privacy,
            skills=self.skills(table, root),
            mcp=self.mcp(table),
            **{name: self.fill(getattr(Config, name), table, name) for name in PLAIN},
        )
        if config.usage.monthly_ceiling is not None and not config.usage.prices:
            self.fault(("usage", "monthly_ceiling"), "needs usage.prices; to bound tokens, set usage.monthly_tokens")
        if self.found:
            raise ConfigError([text for _, text in sorted(self.found, key=lambda fault: fault[0])])
        return config

    # Tables and values

    def unknown(self, table: Mapping[str, Any], known: tuple[str, ...], where: Key) -> None:
        """A fault for each key that is no setting, with the likeliest one."""
        for key in table:
            if key in known:
                continue
            if re.search(r"(^|[_-])(api_?key|key|token|secret)$", key.lower()):
                self.fault((*where, key), NO_KEYS, UNKNOWN)
                continue
            close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            guess = f'did you mean "{close[0]}"?' if close else f"the settings here are {', '.join(known)}"
            self.fault((*where, key), guess, UNKNOWN)

    def section(self, table: dict[str, Any], name: str) -> dict[str, Any]:
        """The table `name`, empty when it is missing or no table."""
        value = table.get(name, {})
        if isinstance(value, dict):
            return value
        self.fault((name,), f"must be a table: write [{name}] on its own line")
        return {}

    def array(self, table: dict[str, Any], name: str) -> list[tuple[Key, dict[str, Any]]]:
        """The tables of the array `name`, each with its key."""
        value = table.get(name, [])
        if isinstance(value, list) and all(isinstance(item, dict) for item in value):
            return [((name, str(number)), item) for number, item in enumerate(value)]
        self.fault((name,), f"must be an array of tables: write [[{name}]] on its own line")
        return []

    def fill(self, default: Settings, table: dict[str, Any], name: str) -> Settings:
        """`default` with those values of section `name` that are right."""
        return self.filled(default, self.section(table, name), (name,))

    def filled(self, default: Settings, values: dict[str, Any], where: Key) -> Settings:
        """`default` with those values of a table that are right."""
        fields = {field.name: field for field in dataclasses.fields(default) if not field.metadata.get("elsewhere")}
        self.unknown(values, tuple(fields), where)
        right = {}
        for key, field in fields.items():
            if key in values and (value := self.value(values[key], field, default, (*where, key))) is not None:
                right[key] = value
        return dataclasses.replace(default, **right)

    def value(self, value: Any, field: dataclasses.Field[Any], default: Any, key: Key) -> Any:
        """`value` in the type of its field, or None after noting what is wrong with it."""
        kind = str(field.type).removesuffix(" | None")
        if kind == "Mapping[str, str]":
            if isinstance(value, dict) and all(isinstance(text, str) for text in value.values()):
                return value
            return self.fault(key, 'must be a table of strings: { NAME = "value" }')
        if kind == "Mapping[str, Price]":
            return self.prices(value, key)
        if kind.startswith("Mapping"):
            return self.scores(value, getattr(default, field.name), key)
        if kind.startswith("tuple"):
            if isinstance(value, list) and all(isinstance(text, str) for text in value):
                known = field.metadata.get("each", value)
                if unknown := [text for text in value if text not in known]:
                    close = difflib.get_close_matches(unknown[0], known, n=1, cutoff=0.5)
                    guess = f'did you mean "{close[0]}"?' if close else f"it may list {', '.join(known)}"
                    return self.fault(key, f'there is no "{unknown[0]}"; {guess}')
                return tuple(value)
            return self.fault(key, 'must be a list of strings: ["…", "…"]')
        if choices := field.metadata.get("choices"):
            return value if value in choices else self.fault(key, f"must be one of {', '.join(choices)}")
        if kind in ("int", "float"):
            return self.number(value, kind, field.metadata, key)
        if kind == "bool":
            return value if isinstance(value, bool) else self.fault(key, "must be true or false")
        return value if isinstance(value, str) else self.fault(key, 'must be text in quotes: "…"')

    def number(self, value: Any, kind: str, limits: Mapping[str, Any], key: Key) -> Any:
        """A number within its limits."""
        if isinstance(value, bool) or not isinstance(value, int if kind == "int" else (int, float)):
            return self.fault(key, "must be a whole number" if kind == "int" else "must be a number")
        if not limits["low"] <= value <= limits["high"]:
            return self.fault(key, f"must be from {limits['low']} to {limits['high']}, not {value}")
        return value if kind == "int" else float(value)

    def scores(self, value: Any, default: Mapping[str, int], key: Key) -> Mapping[str, int] | None:
        """The break-point scores, those not named keeping their default."""
        if not isinstance(value, dict):
            self.fault(key, "must be a table: { h1 = 100, … }")
            return None
        self.unknown(value, tuple(default), key)
        right = {}
        for name, score in value.items():
            if name in default and self.number(score, "int", {"low": 0, "high": 1000}, (*key, name)) is not None:
                right[name] = score
        return {**default, **right}

    def prices(self, value: Any, key: Key) -> dict[str, Price]:
        """What each model costs, by its name as in `chat.model`."""
        found: dict[str, Price] = {}
        if not isinstance(value, dict) or not all(isinstance(price, dict) for price in value.values()):
            self.fault(key, 'must be tables: [usage.prices."anthropic:MODEL"] with input and output')
            return found
        for name, price in value.items():
            if wrong := check_model("chat", name):
                self.fault((*key, name), wrong)
            for missing in [one for one in ("input", "output") if one not in price]:
                self.fault((*key, name), f"needs {missing}: what a million tokens cost")
            found[name] = self.filled(Price(), price, (*key, name))
        return found

    def model(self, settings: Settings, section: Literal["embedding", "chat"]) -> Settings:
        """`settings` with the model that the environment names, if it does, and a look at its spelling."""
        variable = f"TARSD_{section.upper()}"
        named = self.env.get(variable)
        if named:
            settings = dataclasses.replace(settings, model=named)
        if wrong := check_model(section, settings.model):
            if named:
                self.problem(f"{variable}: {wrong}")
            else:
                self.fault((section, "model"), wrong)
        return settings

    def server(
        self, table: dict[str, Any], section: str, key: str, clean: Callable[[str], str], fallback: str | None
    ) -> str | None:
        """The URL of a server as the file spells it, or else `fallback`; None for neither."""
        values = self.section(table, section)
        self.unknown(values, (key, "ca_file"), (section,))
        url = values.get(key, fallback)
        if url is None or url == "":
            return None
        if not isinstance(url, str):
            self.fault((section, key), 'must be text in quotes: "…"')
            return None
        try:
            return clean(url)
        except ValueError as error:
            if key in values:
                self.fault((section, key), f'"{url}" {error}')
            else:
                self.problem(f'OLLAMA_HOST: "{url}" {error}')
            return None

    # Folders

    def path(self, text: str, key: Key) -> Path | None:
        """A folder that the file names, its links followed; relative ones are a fault, for the daemon runs anywhere."""
        if not text.startswith(("/", "~")):
            self.fault(key, f'"{text}" must be an absolute path or start with ~/')
            return None
        real = self.folder(text)
        if isinstance(real, Path):
            return real
        self.fault(key, real)
        return None

    def folder(self, text: str) -> Path | str:
        """The real path of a folder, or what is wrong with it; a missing folder is fine, as it may appear later."""
        shown = text if len(text) <= 200 else f"{text[:60]}… ({len(text)} characters)"
        try:
            real = Path(os.path.realpath(expand(text, self.env)))
            return real if stat.S_ISDIR(os.stat(real).st_mode) else f"{real} is a file, not a folder"
        except ValueError:
            return NO_PATH
        except OSError as error:
            if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
                return f"{shown} cannot be a folder: {error.strerror}"
            return real

    def root(self, configured: str, vault: Path | None, section: object) -> Path | None:
        """The vault: by the caller, TARSD_VAULT, or the file, whose `section` may hold something else there."""
        named = str(vault) if vault is not None else self.env.get("TARSD_VAULT", "")
        if named:
            real = self.folder(named)
            if isinstance(real, Path):
                return real
            self.problem(f"{'--vault' if vault is not None else 'TARSD_VAULT'}: {real}")
            return None
        if configured:
            return self.path(configured, ("vault", "path"))
        if not isinstance(section, dict):
            return None  # that is a fault already, and so is a path of another type
        if "path" not in section:
            self.fault(("vault", "path"), "no vault is set; run: tarsd init --vault PATH")
        elif section["path"] == "":
            self.fault(("vault", "path"), "is empty; run: tarsd init --force --vault PATH")
        return None

    def collections(self, table: dict[str, Any], vault: Path | None) -> tuple[Collection, ...]:
        """The further folders; each name and each root once, and none that overlaps another."""
        found: list[Collection] = []
        for key, values in self.array(table, "collection"):
            self.unknown(values, ("name", "path"), key)
            name, text = values.get("name"), values.get("path")
            if not isinstance(name, str) or not re.fullmatch(r"[^/:\s][^/:]*", name):
                self.fault((*key, "name"), "must be a name without / or :")
                name = None
            elif name in {earlier.name for earlier in found}:
                self.fault((*key, "name"), f'"{name}" is already used by another collection')
            if not isinstance(text, str) or not text:
                self.fault((*key, "path"), "must be a folder")
                continue
            root = self.path(text, (*key, "path"))
            if root is None or name is None:
                continue
            for taken, label in [(vault, "the vault"), *((folder.root, f'"{folder.name}"') for folder in found)]:
                if taken and (root == taken or root in taken.parents or taken in root.parents):
                    self.fault((*key, "path"), f"{root} overlaps with {label}; its notes would be found twice")
            found.append(Collection(name, root))
        return tuple(found)

    def skills(self, table: dict[str, Any], vault: Path | None) -> SkillSettings:
        """The folders of skills; none that overlaps the vault, whose notes have rules of their own."""
        found: list[str] = []
        key = ("skills", "folders")
        for text in self.fill(SkillSettings(), table, "skills").folders:
            root = self.path(text, key)
            if root is None:
                continue
            if vault and (root == vault or root in vault.parents or vault in root.parents):
                self.fault(key, f"{root} overlaps with the vault; skills of the vault belong in its own skills folder")
            found.append(str(root))
        return SkillSettings(tuple(dict.fromkeys(found)))

    def tools(self, table: dict[str, Any]) -> ToolSettings:
        """The tools, with URLs that can be called."""
        settings = self.fill(ToolSettings(), table, "tools")
        for name in ("weather_url", "geocoding_url", "todoist_url"):
            self.check_url(getattr(settings, name), ("tools", name))
        ca_file = self.ca_file(table.get("tools"), ("tools",)) if settings.ca_file else ""
        return dataclasses.replace(settings, ca_file=ca_file)

    def ca_file(self, values: object, where: Key) -> str:
        """The certificate file that a table names, or ""; its content is read when it is needed."""
        text = values.get("ca_file", "") if isinstance(values, dict) else ""
        key = (*where, "ca_file")
        if not isinstance(text, str):
            self.fault(key, 'must be text in quotes: "…"')
        elif "\0" in text:
            self.fault(key, NO_PATH)
        elif text and not text.startswith(("/", "~")):
            self.fault(key, f'"{text}" must be an absolute path or start with ~/')
        elif text:
            return str(expand(text, self.env))
        return ""

    def check_url(self, url: str, key: Key) -> None:
        """A fault of a URL that cannot be called."""
        try:
            base_url(url)
        except ValueError as error:
            self.fault(key, f'"{url}" {error}')

    def mcp(self, table: dict[str, Any]) -> tuple[McpServer, ...]:
        """The MCP servers to start or to call."""
        found: list[McpServer] = []
        for key, values in self.array(table, "mcp"):
            name: Any = values.get("name")
            server = self.filled(McpServer(""), {**values, "name": ""}, key)
            if not isinstance(name, str) or not name or name in [earlier.name for earlier in found]:
                self.fault((*key, "name"), "must be a name that no other server uses")
            if bool(server.command) == bool(server.url):
                self.fault((*key, "command"), 'a server needs either command = ["program", "argument"] or a url')
            elif server.url:
                self.check_url(server.url, (*key, "url"))
            ca_file = self.ca_file(values, key) if server.ca_file else ""
            found.append(dataclasses.replace(server, name=name, ca_file=ca_file))
        return tuple(found)

    def check_folders(self, own: VaultSettings) -> None:
        """Faults of the paths within the vault."""
        for rule in own.exclude:
            self.check_rule(rule, ("vault", "exclude"))
        parts = own.memory_folder.strip("/").split("/")
        if "\0" in own.memory_folder:
            self.fault(("vault", "memory_folder"), NO_PATH)
        elif own.memory_folder.startswith(("/", "~")) or any(not part or part.startswith(".") for part in parts):
            self.fault(("vault", "memory_folder"), f'"{own.memory_folder}" must be a folder in the vault, not hidden')

    def check_rule(self, rule: str, key: Key) -> None:
        """A fault of a rule that can match nothing."""
        if not is_sound(rule):
            self.fault(key, f'"{rule}" cannot match anything: rules are relative to the vault')

    def check_outside(self, root: Path, places: Paths) -> None:
        """Index, logs and keys in the vault would be synced, and wake the watcher."""
        for what, path in (("cache", places.cache), ("state", places.state), ("config", places.config_file)):
            if root in Path(os.path.realpath(path)).parents:
                hint = "TARSD_CONFIG or TARSD_HOME" if what == "config" else "TARSD_HOME"
                self.problem(f"{path}: the {what} is inside the vault {root}; set {hint} to a place outside it")
