"""The commands about the daemon as a service of the system: install, uninstall, start, stop, restart, status, logs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from tarsd import services
from tarsd.cli.common import Group, json_option, own_vault_option, print_json, tell
from tarsd.cli.service_state import ServiceStatus, ServiceTarget, exit_code, facts, lingers, outdated, shown
from tarsd.cli.terminal import Terminal, clean, line
from tarsd.cli.wrapping import wrapped
from tarsd.config import expand, load, vault_id
from tarsd.config.places import paths
from tarsd.errors import EXIT_NOTHING, EXIT_USAGE, ClientError, ConfigError, NotFound

LINGER = "To start it at boot and keep it running after you log out: loginctl enable-linger"
LEFT = "Your notes are untouched. tarsd uninstall --purge also removes these."


@click.group(cls=Group, default="status")
def service() -> None:
    """Let the system start the daemon: a launchd agent on macOS, a systemd user unit on Linux.

    Without a command, the state is shown. Each vault has its own service; none needs root.
    """


@service.command()
@own_vault_option
@click.option("--print", "show", is_flag=True, help="Only print the file that would be written.")
@json_option
@click.pass_context
def install(context: click.Context, vault: Path | None, show: bool, as_json: bool) -> None:
    """Write the service file, load it and start it; replaces an older one. Needs no root."""
    machine = services.Machine.here()
    config = load(vault=vault)
    launch = services.launch(config, machine)
    target = ServiceTarget(config.vault_id, config.vault, services.service(config.vault_id, machine))
    if show:
        text = target.service.text(launch)
        print_json({"file": str(target.service.file), "text": text}) if as_json else click.echo(text, nl=False)
        return
    services.check(launch, machine)
    notices = services.notices(config, launch, machine)
    target.service.install(launch)
    if not as_json:
        click.echo(f"Installed {line(target.service.file)}")
    _report(context, target, target.wait(), as_json, notices)


@service.command()
@own_vault_option
@json_option
@click.pass_context
def uninstall(context: click.Context, vault: Path | None, as_json: bool) -> None:
    """Stop the service and remove its file. Notes, index, conversations and settings stay."""
    target = _target(vault)
    removed = target.service.uninstall()
    places = paths(target.vault_id, os.environ)
    left = [str(path) for path in (places.config_file, places.cache, places.state, target.log) if path.exists()]
    if as_json:
        print_json({"uninstalled": removed, "file": str(target.service.file), "left": left})
    elif not removed:
        click.echo("No service is installed for this vault.")
    else:
        click.echo(f"Stopped and removed {line(target.service.file)}")
        for path in left:
            click.echo(f"  still there: {line(path)}")
        click.echo(LEFT)
    if not removed:
        context.exit(EXIT_NOTHING)


@service.command()
@own_vault_option
@json_option
@click.pass_context
def start(context: click.Context, vault: Path | None, as_json: bool) -> None:
    """Start the service, and wait a few seconds for an answer."""
    target = _target(vault)
    target.service.start()
    _report(context, target, target.wait(), as_json)


@service.command()
@own_vault_option
@json_option
@click.pass_context
def restart(context: click.Context, vault: Path | None, as_json: bool) -> None:
    """Restart the service, and wait a few seconds for an answer."""
    target = _target(vault)
    target.service.restart()
    _report(context, target, target.wait(), as_json)


@service.command()
@own_vault_option
@json_option
def stop(vault: Path | None, as_json: bool) -> None:
    """Stop the service until it is started again or you log in next time."""
    target = _target(vault)
    target.service.stop()
    said = "Stopped. It starts again when you log in, or with: tarsd service start"
    tell({"stopped": True}, [said], as_json=as_json)


@service.command()
@own_vault_option
@json_option
@click.pass_context
def status(context: click.Context, vault: Path | None, as_json: bool) -> None:
    """Show whether the service is installed and running, or why not."""
    target = _target(vault)
    status = target.look()
    if status.state.installed:
        _report(context, target, status, as_json, outdated(target), started=False)
        return
    if as_json:
        print_json(facts(target, status))
    else:
        click.echo(f"No service is installed for {line(target.vault or target.vault_id)}.")
        for other_service in services.installed():
            click.echo(f"  installed: {line(other_service.file)}")
        click.echo("Install it with: tarsd service install", err=True)
    context.exit(EXIT_NOTHING)


@service.command()
@own_vault_option
@click.option("-n", "--lines", "count", type=click.IntRange(0), default=20, show_default=True, help="Number of lines.")
@click.option("--follow", is_flag=True, help="Keep printing new lines, until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print the raw lines.")
def logs(vault: Path | None, count: int, follow: bool, as_json: bool) -> None:
    """Show the last lines of the daemon's log. It holds no text of notes and no questions."""
    from tarsd.services.log import lines

    file = _target(vault).log
    if not file.exists():
        raise NotFound(f"There is no log yet: {file}.", "The first start creates it: tarsd service start.")
    click.echo(Terminal(sys.stderr).dim(line(file)), err=True)
    show: Callable[[str], str] = clean if as_json else _readable
    for text in lines(file, count, follow=follow):
        click.echo(show(text))


# ------------------------------------------------------------------------------------------------ whose


def _target(vault: Path | None) -> ServiceTarget:
    """The service of the named vault, of the configured one, or the only one there is. ClientError if several."""
    if vault is not None:
        root = expand(str(vault), os.environ)
        return ServiceTarget(vault_id(root), root, services.service(vault_id(root)))
    try:
        config = load()
        return ServiceTarget(config.vault_id, config.vault, services.service(config.vault_id))
    except ConfigError:
        installed = services.installed()
        if not installed:
            raise
    if len(installed) > 1:
        vaults = [services.vault_of(services.service(entry.vault_id)) or entry.vault_id for entry in installed]
        raise ClientError(
            f"{len(installed)} services are installed.",
            f"Choose one with --vault: {', '.join(str(vault_name) for vault_name in vaults)}.",
            code="ambiguous",
            exit_code=EXIT_USAGE,
        )
    only = services.service(installed[0].vault_id)
    return ServiceTarget(installed[0].vault_id, services.vault_of(only), only)


# ------------------------------------------------------------------------------------------------ saying it


def _report(
    context: click.Context,
    target: ServiceTarget,
    status: ServiceStatus,
    as_json: bool,
    notices: Sequence[str] = (),
    *,
    started: bool = True,
) -> None:
    """Says how it stands, and ends with the exit code for it; `started`: the command was to bring it up."""
    if as_json:
        print_json(facts(target, status) | {"notices": list(notices)})
    else:
        out = Terminal(sys.stdout)
        for text in [*shown(target, status, out), *(out.yellow(line(notice)) for notice in notices)]:
            click.echo(wrapped(text, out))
        if lingers(target.service) is False:
            click.echo(LINGER)
    context.exit(exit_code(status, started=started))


def _readable(text: str) -> str:
    """A JSON line of the log as time, level, event and fields; other lines are only cleaned."""
    try:
        fields = dict(json.loads(text))
    except (ValueError, TypeError):
        return clean(text)
    head = f"{str(fields.pop('time', ''))[:19].replace('T', ' ')} {fields.pop('level', ''):7} {fields.pop('event', '')}"
    return line(" ".join([head, *(f"{key}={value}" for key, value in fields.items() if key != "logger")]))
