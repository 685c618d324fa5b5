"""What `tarsd --version` names: all that makes two installations behave differently."""

from __future__ import annotations

import hashlib
from importlib import metadata
from pathlib import Path
from platform import machine, python_version, system

import tarsd
from tarsd.cli.terminal import line
from tarsd.client import Client
from tarsd.errors import TarsdError

DATA = Path(tarsd.__file__).parent / "data"
MODELS = {"minilm": "minilm/model.onnx", "table": "table/vectors.npy"}
DIGITS = 8
PATIENCE_S = 0.3


def versions() -> list[str]:
    """Lines for people: the program and what it stands on, the models in it, and a daemon of another version."""
    sqlite = metadata.version("apsw").rsplit(".", 1)[0]  # apsw carries its SQLite, and its number
    parts = [f"Python {python_version()}", f"SQLite {sqlite}"]
    parts += [f"{name} {metadata.version(name)}" for name in ("sqlite-vec", "onnxruntime")]
    models = ", ".join(f"{name} {_digest(DATA / file)}" for name, file in MODELS.items())
    shown = [f"tarsd {tarsd.__version__} ({', '.join(parts)}, {system()} {machine()})", f"models: {models}"]
    running = _running()
    if running not in ("", tarsd.__version__):
        shown.append(f"The daemon that runs is version {running}. Restart it: tarsd stop, then tarsd run.")
    return shown


def _digest(file: Path) -> str:
    """The first digits of the file's SHA-256, which tells models of one name apart; "missing" without a file."""
    try:
        with open(file, "rb") as raw:
            return hashlib.file_digest(raw, "sha256").hexdigest()[:DIGITS]
    except OSError:
        return "missing"


def _running() -> str:
    """The version of the daemon that is meant; "" when none answers at once."""
    try:
        return line(Client.find(timeout=PATIENCE_S).get("/v1/hello").get("version") or "")
    except TarsdError:
        return ""
