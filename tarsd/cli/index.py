"""The commands that carry vectors to another machine with the same notes: index export, index import."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import stat
import sys
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import click

from tarsd import files
from tarsd.cli.common import Group, json_option, print_json, vault_option
from tarsd.cli.progress import progress
from tarsd.cli.terminal import Terminal, line
from tarsd.client import Client
from tarsd.errors import EXIT_NOTHING, ClientError, NotFound, Refused, TarsdError
from tarsd.protocol import MAX_BODY

FORMAT, VERSION = "tarsd-vectors", 1
DENSEST = 50
"""A file that unfolds to more than so many times its size holds no vectors: those can hardly be compressed."""

SLACK = 1 << 20
AGAIN = "Copy or export it again. Vectors read so far are kept."


@dataclass
class ImportResult:
    """How many vectors of a model there were in a file, and whether they are of the configured one."""

    name: str
    added: int = 0
    known: int = 0
    fits: bool | None = None


@dataclass
class ImportTally:
    """What was taken in so far, by the fingerprint of the model."""

    models: dict[str, ImportResult] = field(default_factory=dict)

    def add(self, about: Mapping[str, Any], reply: Mapping[str, Any]) -> None:
        """One object of the file, and what the daemon said to it."""
        result = self.models.setdefault(
            str(about["model"]), ImportResult(line(about.get("name") or about["model"])[:200])
        )
        result.added += int(reply.get("added") or 0)
        result.known += int(reply.get("known") or 0)
        result.fits = reply.get("fits")

    @property
    def count(self) -> int:
        """All vectors."""
        return sum(result.added + result.known for result in self.models.values())


@click.group(cls=Group)
def index() -> None:
    """Copy vectors to another machine with the same notes, to save it the work.

    Export on the fast machine (tarsd index export notes.vectors), import on the slow one: it embeds only what differs.
    """


@index.command("export")
@click.argument("file", type=click.Path(path_type=Path))
@vault_option
@json_option
@click.pass_context
def export(context: click.Context, file: Path, vault: Path | None, as_json: bool) -> None:
    """Write the vectors of this vault's passages to FILE. It has no text and no names, but keep it private.

    Example: tarsd index export notes.vectors
    """
    client, target = Client.find(vault), Path(os.path.realpath(file))
    _check_target(target)
    about = client.get("/v1/status").get("embedding") or {}
    total, tally = int(about.get("done") or 0), ImportTally()
    with _fresh(target) as raw:
        with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed, progress("Exporting", quiet=as_json) as step:
            packed.write(_line({"format": FORMAT, "version": VERSION}))
            for vectors in client.stream("/v1/vectors"):
                packed.write(_line(vectors))
                tally.add(vectors, {"known": len(vectors["rows"])})
                step(tally.count, max(total, tally.count), "")
            step(tally.count, tally.count, "")
        if not tally.count:
            raise NotFound(
                "There are no model vectors to export yet.",
                f"The embedding model is {line(about.get('model') or 'none')}; tarsd status shows its progress.",
            )
    size = target.stat().st_size
    if as_json:
        print_json({"file": str(target), "bytes": size, "vectors": tally.count, "models": _models(tally)})
        return
    names = ", ".join(result.name for result in tally.models.values())
    click.echo(f"Wrote {line(target)}: {_count(tally.count)} of {names}, {size / 1e6:.1f} MB.")
    if remaining := int(about.get("remaining") or 0):
        click.echo(f"{remaining:,} passages have none yet; export again when tarsd status says “complete”.", err=True)


@index.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@vault_option
@json_option
@click.pass_context
def import_(context: click.Context, file: Path, vault: Path | None, as_json: bool) -> None:
    """Take in the vectors in FILE, made by tarsd index export; what has one is not embedded here.

    It does not matter whether the notes are there already, and doing it twice changes nothing.
    Example: tarsd index import notes.vectors
    """
    client, tally = Client.find(vault), ImportTally()
    configured = line(client.get("/v1/hello").get("embedding_model") or "")
    with _opened(file) as raw, progress("Importing (kB)", quiet=as_json) as step:
        size = os.fstat(raw.fileno()).st_size
        try:
            for vectors in _objects(raw, size):
                tally.add(
                    vectors, client.post("/v1/vectors", {name: vectors[name] for name in ("model", "dim", "rows")})
                )
                step(-(-raw.tell() // 1024), -(-size // 1024), "")
        except TarsdError as error:
            hint = AGAIN if tally.count else error.hint
            kept = f" Imported before that: {_count(tally.count)}." if tally.count else ""
            raise ClientError(error.message + kept, hint, code=error.code, exit_code=error.exit_code) from None
    useless = all(result.fits is False for result in tally.models.values())
    if as_json:
        print_json({"file": str(file), "vectors": tally.count, "models": _models(tally)})
    else:
        _say(tally, configured)
        _say_rest(client)
    if useless:
        context.exit(EXIT_NOTHING)


# ------------------------------------------------------------------------------------------------ saying it


def _count(number: int) -> str:
    return f"{number:,} vector{'s' * (number != 1)}"


def _models(tally: ImportTally) -> list[dict[str, Any]]:
    return [{"model": model, **vars(result)} for model, result in tally.models.items()]


def _say(tally: ImportTally, configured: str) -> None:
    err = Terminal(sys.stderr)
    if not tally.models:
        click.echo("The file contains no vectors.")
    for result in tally.models.values():
        total = result.added + result.known
        click.echo(f"{_count(total)} of {result.name}: {result.added:,} new, {result.known:,} here already.")
        if result.fits is False:
            same = "another version of it" if result.name == configured else f"{configured}, by the config"
            click.echo(err.yellow(f"They cannot be used here: the embedding model is {same}."), err=True)
        elif result.fits is None:
            text = f"They are kept; whether they fit shows once the server of {configured} answers."
            click.echo(err.yellow(text), err=True)


def _say_rest(client: Client) -> None:
    status = client.get("/v1/status")
    remaining = int((status.get("embedding") or {}).get("remaining") or 0)
    if not status.get("behind"):
        click.echo(
            f"{remaining:,} passages have none and will be embedded here."
            if remaining
            else "All passages have vectors."
        )


# ------------------------------------------------------------------------------------------------ the file


def _line(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _check_target(target: Path) -> None:
    """Raises Refused unless there is nothing, or an older export."""
    try:
        mode = os.lstat(target).st_mode
    except OSError:
        return  # whether it can be made shows when it is made
    if not stat.S_ISREG(mode):
        raise Refused(f"{line(target)} is not a file.", "Choose a new file name.")
    try:
        with open(target, "rb") as raw:
            next(_objects(raw, os.fstat(raw.fileno()).st_size), None)
    except (OSError, TarsdError):
        raise Refused(f"{line(target)} exists and is not a tarsd export.", "Choose a new file name.") from None


@contextlib.contextmanager
def _fresh(target: Path) -> Iterator[BinaryIO]:
    """A file that replaces `target` if everything went well, and that only this user can read."""
    try:
        with files.replacing(target) as raw:
            yield raw
    except OSError as error:
        raise Refused(f"{line(target)} cannot be written: {error.strerror}.", "Choose another file.") from None


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    try:
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise NotFound(f"There is no file {line(file)}.", "Create one with: tarsd index export FILE.") from None
    except OSError as error:
        raise Refused(f"{line(file)} cannot be read: {error.strerror}.", "Check its owner and permissions.") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise Refused(f"{line(file)} is not a file.", "Create one with: tarsd index export FILE.")
    with open(handle, "rb") as raw:
        yield raw


def _objects(raw: BinaryIO, size: int) -> Iterator[dict[str, Any]]:
    """The objects after the header. Raises Refused as soon as the file turns out damaged or not to be an export."""
    left = DENSEST * size + SLACK
    try:
        with gzip.GzipFile(fileobj=raw) as packed:
            header = _object(packed.readline(MAX_BODY))
            if header.get("format") != FORMAT:
                raise ValueError
            if header.get("version") != VERSION:
                raise Refused(
                    "The file is from another version of tarsd.", "Install the same version on both machines."
                )
            while text := packed.readline(MAX_BODY):
                left -= len(text)
                vectors = _object(text)
                if left < 0 or vectors.get("type") != "vectors" or not {"model", "dim", "rows"} <= vectors.keys():
                    raise Refused("The file contains an invalid vector.", AGAIN)
                yield vectors
    except EOFError:
        raise Refused("The file is incomplete.", AGAIN) from None
    except (gzip.BadGzipFile, zlib.error, UnicodeDecodeError):
        raise Refused("The file is damaged or not a tarsd export.", AGAIN) from None
    except OSError as error:
        raise Refused(f"The file cannot be read: {error.strerror}.", AGAIN) from None
    except (ValueError, RecursionError):
        raise Refused("The file is not a tarsd export.", "Create one with: tarsd index export FILE.") from None


def _object(text: bytes) -> dict[str, Any]:
    """A line as an object; raises ValueError, also for one that was too long to be read to its end."""
    value = json.loads(text) if text.endswith(b"\n") else None
    if not isinstance(value, dict):
        raise ValueError
    return value
