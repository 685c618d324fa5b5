"""The command that removes what tarsd put on this machine; all notes stay."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from tarsd import keys, services
from tarsd.cli.asking import confirm, somebody
from tarsd.cli.common import Command, Folder, json_option, print_json
from tarsd.cli.plugin import ID as PLUGIN
from tarsd.cli.run import ended
from tarsd.cli.terminal import line
from tarsd.client import Client
from tarsd.config import config_file, expand, load, vault_id
from tarsd.config.places import paths
from tarsd.errors import EXIT_REFUSED, EXIT_USAGE, ClientError, ConfigError, NotFound, Refused, TarsdError
from tarsd.services import Service, traces
from tarsd.services.traces import InstalledFile

PROGRAM = "The program itself: uv tool uninstall tarsd, pipx uninstall tarsd, or delete its virtual environment."
MEMORY = "tars"
"""The folder of tars in a vault, unless the config names another."""


@dataclass(frozen=True)
class UninstallTarget:
    """Which vault; `root` is None when only its id is known. `notes` are all folders of notes that are known."""

    vault_id: str
    root: Path | None
    notes: list[Path]
    memory: str = MEMORY


@dataclass(frozen=True)
class RemovalPlan:
    """What goes and what stays, with the reason of each; `keys` are names, and so are those that stay."""

    service: Service | None
    remove: list[InstalledFile]
    keys: list[str]
    left: list[tuple[InstalledFile, str]]
    keys_left: str = ""


@click.command(cls=Command)
@click.option("--vault", type=Folder(), help="The vault, if not the configured or only one.")
@click.option("--purge", is_flag=True, help="Also remove the index, vectors, conversations, logs, settings and keys.")
@click.option("--plugin", is_flag=True, help="Also remove the Obsidian plugin from the vault.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@click.pass_context
def uninstall(context: click.Context, vault: Path | None, purge: bool, plugin: bool, yes: bool, as_json: bool) -> None:
    """Stop the daemon and remove what tarsd put on this machine. All notes stay, also those that tars wrote.

    Without --purge, only the service is removed. What several vaults share is removed with the last of them.
    """
    target = _target(vault)
    plan = _plan(target, purge=purge, plugin=plugin)
    alive = Client(paths(target.vault_id, os.environ).socket).alive()
    if not as_json:
        _show(target, plan, alive=alive)
    if not (plan.service or plan.remove or plan.keys or alive):
        if as_json:
            print_json({"removed": [], "keys": [], "failed": [], "left": _left(plan)})
        return
    if not yes:
        if as_json or not somebody():
            raise Refused("Not removed.", "Add --yes to confirm.")
        if not confirm("Remove this?"):
            click.echo("Nothing removed.")
            return
    failed = _carry_out(target, plan)
    if as_json:
        print_json(
            {
                "removed": _rows([trace for trace in plan.remove if trace.path not in failed]),
                "keys": plan.keys,
                "failed": [{"path": str(path), "reason": why} for path, why in failed.items()],
                "left": _left(plan),
            }
        )
    else:
        for path, why in failed.items():
            click.echo(f"{line(path)} cannot be removed: {why}.", err=True)
        click.echo("Removed." if not failed else "Removed everything else.")
        if purge:
            click.echo(PROGRAM)
    if failed:
        context.exit(EXIT_REFUSED)


def _target(vault: Path | None) -> UninstallTarget:
    """The named vault, the configured one, or the only one of which there is anything."""
    env = os.environ
    root = expand(str(vault), env) if vault is not None else None
    try:
        config = load(vault=root)
    except ConfigError:  # it need not be sound to be removed
        if root is not None:
            return UninstallTarget(vault_id(root), root, [Path(os.path.realpath(root))])
        known_ids = traces.vaults(env) | {entry.vault_id for entry in services.installed()}
        if not known_ids and os.path.lexists(config_file()):
            raise
        if not known_ids:
            raise NotFound("Nothing from tarsd was found.", "If that is wrong, give the vault with --vault.") from None
        if len(known_ids) > 1:
            raise ClientError(
                f"There is data of {len(known_ids)} vaults.",
                "Choose one with --vault.",
                code="ambiguous",
                exit_code=EXIT_USAGE,
            ) from None
        only = known_ids.pop()
        known = services.vault_of(services.service(only))
        return UninstallTarget(only, known, [known] if known is not None else [])
    notes = [config.vault, *(collection.root for collection in config.collections)]
    return UninstallTarget(config.vault_id, root or config.vault, notes, config.memory_folder)


def _plan(target: UninstallTarget, *, purge: bool, plugin: bool) -> RemovalPlan:
    """Raises Refused if it would touch notes."""
    env = os.environ
    installed = {entry.vault_id: entry.file for entry in services.installed()}
    service = services.service(target.vault_id) if target.vault_id in installed else None
    others = (traces.vaults(env) | set(installed) | _configured()) - {target.vault_id}
    used = f"{_named(others)} {'use' if len(others) > 1 else 'uses'} it"
    own, common = traces.of_vault(target.vault_id, env), traces.shared(env)
    goes = traces.of_daemon(target.vault_id, env)
    stays: list[tuple[InstalledFile, str]] = []
    if purge:
        goes += own
    else:
        stays += [(trace, "removed with --purge") for trace in own]
    if purge and not others:
        goes += common
    else:
        stays += [(trace, used if others else "removed with --purge") for trace in common]
    traces.check(goes, target.notes)
    found = _plugin(target.root)
    if plugin:
        goes += found
    else:
        stays += [(trace, "removed with --plugin") for trace in found]
    kept = traces.kept_keys(env) if purge else []
    keys_left = f"for {', '.join(kept)}: {used}" if kept and others else ""
    return RemovalPlan(service, goes, [] if others else kept, stays, keys_left)


def _named(others: set[str]) -> str:
    """The other vaults for a sentence: by their folders, where these are known."""
    known = {entry.vault_id: services.vault_of(services.service(entry.vault_id)) for entry in services.installed()}
    with contextlib.suppress(ConfigError):
        config = load()
        known[config.vault_id] = config.vault
    named = sorted(line(known[other]) for other in others if known.get(other) is not None)
    unknown = len(others) - len(named)
    if unknown:
        named.append("another vault" if unknown == 1 else f"{unknown} other vaults")
    return " and ".join(named)


def _configured() -> set[str]:
    """The id of the vault that the config names: it may be about to be used for the first time."""
    try:
        return {load().vault_id}
    except ConfigError:
        return set()


def _plugin(vault: Path | None) -> list[InstalledFile]:
    """The plugin's folder, or the link in its place, if it is in the vault."""
    if vault is None:
        return []
    folder = vault / ".obsidian" / "plugins" / PLUGIN
    return [traces.measured("Obsidian plugin", folder)] if os.path.lexists(folder) else []


def _carry_out(target: UninstallTarget, plan: RemovalPlan) -> dict[Path, str]:
    """Stops, then removes; what could not be removed, with the reason. Raises what keeps the daemon from ending."""
    folders = []
    if plan.service is not None:
        plan.service.uninstall()
        folders = [plan.service.file.parent / "default.target.wants", plan.service.file.parent]
    client = Client(paths(target.vault_id, os.environ).socket)
    if client.alive():
        ended(client)
    failed: dict[Path, str] = {}
    with traces.hold(target.vault_id, os.environ):
        for name in plan.keys:
            try:
                keys.remove(name)
            except Exception as error:  # keyrings fail in their own ways
                failed[Path(f"key {name}")] = error.message if isinstance(error, TarsdError) else type(error).__name__
        for trace in plan.remove:
            try:
                traces.remove(trace)
            except OSError as error:
                failed[trace.path] = error.strerror or type(error).__name__
    traces.tidy(target.vault_id, os.environ, folders)
    return failed


# ------------------------------------------------------------------------------------------------ saying it


def _show(target: UninstallTarget, plan: RemovalPlan, *, alive: bool) -> None:
    of = f" of {line(target.root)}" if target.root is not None else f" of the vault {target.vault_id}"
    rows = [("daemon", "is stopped", "")] if alive else []
    rows += [("service", line(plan.service.file), "")] if plan.service is not None else []
    rows += [(trace.what, line(trace.path), _size(trace.bytes)) for trace in plan.remove]
    rows += [("keys", f"for {', '.join(plan.keys)}", "")] if plan.keys else []
    if rows:
        click.echo(f"What tarsd has here{of}, and what goes:")
    else:
        click.echo(f"There is nothing{of} to remove.")
    for what, where, size in rows:
        click.echo(f"  {what:<20} {where}{f'  ({size})' if size else ''}")
    if plan.left or plan.keys_left:
        click.echo("What stays, and why:")
    for trace, why in plan.left:
        click.echo(f"  {trace.what:<20} {line(trace.path)}  ({_size(trace.bytes)}; {why})")
    if plan.keys_left:
        click.echo(f"  {'keys':<20} {plan.keys_left}")
    if target.root is not None and (target.root / target.memory).is_dir():
        click.echo(
            f"Your notes are not touched, and neither are those that tars wrote: {line(target.root / target.memory)}"
        )
    else:
        click.echo("Your notes are not touched.")


def _rows(listed: list[InstalledFile]) -> list[Mapping[str, object]]:
    return [{"what": trace.what, "path": str(trace.path), "bytes": trace.bytes} for trace in listed]


def _left(plan: RemovalPlan) -> list[Mapping[str, object]]:
    return [
        {**row, "why": why} for row, (_, why) in zip(_rows([trace for trace, _ in plan.left]), plan.left, strict=True)
    ]


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 100_000 else f"{count / 1e3:,.1f} kB"
