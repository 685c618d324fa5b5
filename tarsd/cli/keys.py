"""The commands about API keys: set, remove, list. A key is never an argument and never printed."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import click

from tarsd import keys
from tarsd.cli.asking import somebody
from tarsd.cli.common import Group, json_option, print_json
from tarsd.cli.terminal import Terminal, line
from tarsd.errors import BadRequest, Refused, TarsdError

ELSEWHERE = "Unlock the keyring, or set the key in the environment, for example TARSD_OPENAI_KEY."


@click.group(cls=Group, default="list")
def key() -> None:
    """Set, remove or list API keys and tokens.

    Without a command, they are listed. They are kept in the system keyring, or in a file that only you can read.
    """


@key.command("set")
@click.argument("name")
@click.argument("surplus", nargs=-1, metavar="", type=click.UNPROCESSED)
@json_option
def set_(name: str, surplus: tuple[str, ...], as_json: bool) -> None:
    """Save the key NAME: openai, anthropic, todoist or tcp. You type it unseen, or pipe it in."""
    if surplus:  # click would print it
        raise click.UsageError(
            "Do not give the key as an argument: others could see it. You are asked for it, or pipe it in."
        )
    keys.source(name)  # an unknown name is told before anything is typed
    given = _typed(name)
    with keyring_faults("The key cannot be saved or removed", ELSEWHERE):
        where = keys.put(name, given)
    if as_json:
        print_json({"name": name, "source": where})
        return
    click.echo(f"Saved in {line(where)}.")
    first = keys.source(name)
    if first and first != where:
        click.echo(Terminal(sys.stderr).yellow(f"{line(first)} is also set and takes precedence."), err=True)


@key.command()
@click.argument("name")
@json_option
def remove(name: str, as_json: bool) -> None:
    """Remove the key NAME."""
    with keyring_faults("The key cannot be saved or removed", ELSEWHERE):
        gone = keys.remove(name)
    left = keys.source(name)
    if as_json:
        print_json({"name": name, "removed": gone, "source": left})
    else:
        click.echo(f"Removed the key {name}." if gone else f"There is no key {name}.")
        if left:
            click.echo(Terminal(sys.stderr).yellow(f"{line(left)} still contains one."), err=True)


@key.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List which keys are set and where; never the keys themselves."""
    sources = {name: keys.source(name) for name in keys.VENDORS}
    if as_json:
        print_json({"keys": [{"name": name, "source": where} for name, where in sources.items()]})
        return
    out = Terminal(sys.stdout)
    for name, where in sources.items():
        click.echo(f"{name:<10} {line(where) if where else out.dim('none')}")


def _typed(name: str) -> str:
    if not somebody():
        return sys.stdin.buffer.read(1 << 16).decode("utf-8", "replace").strip()
    from getpass import getpass

    try:
        return getpass(f"Key {name} (hidden): ")
    except EOFError:
        raise BadRequest("No key was given.", field="key") from None


@contextlib.contextmanager
def keyring_faults(what: str, hint: str) -> Iterator[None]:
    """Keyrings fail in their own ways; what they say is not shown, for it might hold the key. Raises Refused."""
    try:
        yield
    except TarsdError:
        raise
    except Exception as error:
        raise Refused(f"{what}: {type(error).__name__}.", hint) from None
