"""The settings: the file, the models and keys that it asks for, and who else may open what tarsd keeps."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from tarsd import keys
from tarsd.config import Config, config_file
from tarsd.config.places import user_home
from tarsd.config.settings import OPENAI
from tarsd.doctor.finding import Check, Finding, Skip, fault, number, ok, skipped, warning
from tarsd.doctor.subject import DoctorContext, quoted

VARIABLE: Final = re.compile(r"[A-Z][A-Z_]+")
LINE: Final = re.compile(r":(\d+): ")


def file(subject: DoctorContext) -> Iterator[Finding]:
    """Whether the settings can be read; every fault is a finding of its own."""
    subject.settle()
    place = config_file(subject.env)
    for problem in subject.problems:
        at = LINE.search(problem)
        yield fault(problem, "Fix it, then: tarsd config check", public=f"An error{f' on line {at[1]}' if at else ''}.")
    if not subject.problems:
        there = os.path.exists(place)
        yield ok(f"{place}: no errors." if there else f"{place} does not exist: all settings have their defaults.")


def models(subject: DoctorContext) -> Finding:
    """Whether the chat models that are named are among those their servers list."""
    config = subject.config
    named = [model for model in (config.chat.model, config.chat.fallback) if model]
    told = f"chat {' or '.join(named)}, embedding {config.embedding.model}"
    asked = [model for model in named if ":" in model]
    if not asked:
        return ok(f"{told}.")
    if not subject.model:
        return skipped(f"{told}: not checked.")
    try:
        reply = subject.client(15.0).get("/v1/models")
    except Skip:
        return skipped(f"{told}: not checked, as no daemon answers.")
    listed = {provider["provider"]: provider for provider in reply.get("providers") or []}
    for model in asked:
        about = listed.get(model.partition(":")[0]) or {}
        if about.get("state") != "ready":
            return warning(
                f"{model}: {about.get('reason') or 'unknown provider'}",
                about.get("hint") or "",
                public=f"{model}: {about.get('state')}.",
            )
        ids = [model.get("id") for model in about.get("models") or []]
        if ids and not {model, f"{model}:latest"} & set(ids):
            return warning(f"{model} is not among the {number(len(ids), 'model')} of its server.", "tarsd models")
    return ok(f"{told}.")


def certificates(subject: DoctorContext) -> Iterator[Finding]:
    """Whether the files of certificates that the settings and the environment name can be read."""
    found = certificate_sentences(subject.config, subject.env)
    for sentence in found:
        yield warning(sentence, "tarsd help settings", public="A certificate file cannot be read.")
    if not found:
        yield ok("Certificate files: all readable, if any are set.")


def certificate_sentences(config: Config, env: Mapping[str, str]) -> list[str]:
    """A sentence for each file of certificates that is named and cannot be used."""
    chat = config.chat
    named = {"ollama": chat.ollama_ca_file, "openai": chat.openai_ca_file, "anthropic": chat.anthropic_ca_file}
    named |= {"tools": config.tools.ca_file, **{f"mcp {server.name}": server.ca_file for server in config.mcp}}
    files = {f"{name}.ca_file": file for name, file in named.items()} | {"SSL_CERT_FILE": env.get("SSL_CERT_FILE", "")}
    if not any(files.values()):
        return []
    from tarsd.transport import certificates_problem  # late: it needs what parses HTTP

    problems = {name: certificates_problem(file) for name, file in files.items() if file}
    return [f"{name}: {files[name]} {problem}." for name, problem in problems.items() if problem]


def secrets(subject: DoctorContext) -> Iterator[Finding]:
    """Whether each key that the settings ask for is there, and where from; none is ever shown."""
    config = subject.config
    named = {model.partition(":")[0] for model in (config.chat.model, config.chat.fallback, config.embedding.model)}
    wanted = [vendor for vendor in ("anthropic", "openai") if vendor in named] + (
        ["tcp"] if config.http.enabled else []
    )
    for name in wanted:
        where = keys.source(name, subject.env)
        if where is not None:
            shell = " (a service does not see it; save it with tarsd key set)" if VARIABLE.fullmatch(where) else ""
            yield ok(f"{name}: from {where}{shell}.")
        elif name == "openai" and config.chat.openai_base_url != OPENAI:
            yield ok(
                f"openai: none, but {urlsplit(config.chat.openai_base_url).netloc} may not need one.",
                public="openai: none, for an own server.",
            )
        else:
            command = "tarsd token" if name == "tcp" else f"tarsd key set {name}"
            yield fault(f"{name}: no key.", command)
    if not wanted:
        yield ok("The settings need none.")


def places(subject: DoctorContext) -> Iterator[Finding]:
    """Whether all that tarsd keeps belongs to this user and is closed to everybody else."""
    paths, config = subject.config.paths, subject.config.paths.config_file
    folders = (paths.state.parent, paths.state, paths.cache.parent, paths.cache, paths.logs, paths.socket.parent)
    files = (paths.index_db, paths.files_db, paths.embeddings_db, paths.lock, paths.socket, keys.key_file(subject.env))
    # The config may be read by others; what they write into it would be started here.
    wanted = dict.fromkeys((config.parent, config), 0o022) | dict.fromkeys((*folders, *files), 0o077)
    there = {path: about for path in wanted if (about := _about(path)) is not None}
    findings = [
        finding for path, about in there.items() if (finding := _open_to(path, about, wanted[path])) is not None
    ]
    findings += _unwritable(folders, subject.env)
    yield from findings or [ok(f"{number(len(there), 'place')} of tarsd's: closed to other users.")]


def _unwritable(folders: Sequence[Path], env: Mapping[str, str]) -> list[Finding]:
    """A fault for each place, such as a home, in which nothing that tarsd keeps can be made or written."""
    existing = [next(place for place in (folder, *folder.parents) if place.exists()) for folder in folders]
    found = []
    for place in dict.fromkeys(place for place in existing if not os.access(place, os.W_OK | os.X_OK)):
        hint = f"chmod u+rwx {quoted(place)}"
        if os.statvfs(place).f_flag & os.ST_RDONLY or place == user_home(env):
            hint = "Set TARSD_HOME to a writable folder."
        what = "Index, conversations and log cannot be written there."
        found.append(fault(f"{place} is read-only. {what}", hint, public=f"A folder is read-only. {what}"))
    return found


def _about(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _open_to(path: Path, about: os.stat_result, forbidden: int) -> Finding | None:
    """What is wrong with the owner or the mode of a place, if anything is."""
    if about.st_uid != os.getuid():
        return fault(f"{path} belongs to another user.", f"sudo chown {os.getuid()} {quoted(path)}")
    mode = stat.S_IMODE(about.st_mode)
    if not mode & forbidden:
        return None
    what = "write to" if mode & forbidden & 0o022 else "read"
    return fault(f"{path} has mode {mode:04o}: others can {what} it.", f"chmod {mode & ~forbidden:o} {quoted(path)}")


CHECKS: Final = (
    Check("Settings", "file", file, 10.0),
    Check("Settings", "access", places),
    Check("Settings", "keys", secrets),
    Check("Settings", "certificates", certificates),
)
