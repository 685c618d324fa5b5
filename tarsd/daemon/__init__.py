"""Lock, listen, say ready; then build everything, serve, and end in order. The supervisor does the rest.

The order is the point: whoever finds the socket finds a daemon, and nobody finds two.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

from tarsd.daemon import log as logs
from tarsd.daemon.console import Console
from tarsd.daemon.lock import AlreadyRunning, Lock, listen, private_folder, remove_socket
from tarsd.daemon.notify import notify
from tarsd.errors import EXIT_OK, TarsdError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tarsd.config import Config

__all__ = ["run"]

FAILURE = 1

log = logging.getLogger(__name__)


def run(config: Config, load: Callable[[], Config]) -> int:
    """Be the daemon of a vault until a signal or a client ends it; the exit code. Never raises for what can happen.

    `load` reads the settings again when their file changes.

    Where another daemon serves the vault, this says so and returns 0, so that no supervisor starts it again and again.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there are settings that could be read anew
    lock = Lock(config.paths.lock)
    paths = config.paths
    try:
        for folder in (paths.state.parent, paths.state, paths.cache.parent, paths.cache, paths.logs):
            private_folder(folder)
        lock.take()
        server = listen(config.paths.socket)
    except AlreadyRunning as error:
        print(error.message, error.hint)
        return EXIT_OK
    except TarsdError as error:
        print(error.message, error.hint, file=sys.stderr)
        lock.release()
        return error.exit_code
    notify("READY=1", f"STATUS=Serving {config.vault.name}")
    try:
        console = Console.of_terminal()
        logs.set_up(config.paths.logs, f"tarsd-{config.vault_id}", console)
        if console is not None:
            console.begin(config.vault)
        log.info("listening", extra={"pid": os.getpid(), "vault": config.vault_id})
        from tarsd.app.process import share_heaps  # asyncio, aiohttp and the rest take longer than all before
        from tarsd.daemon.serve import serve

        share_heaps()
        serve(config, server, load, console)
        log.info("stopped")
        if console is not None:
            console.end()
        return EXIT_OK
    except Exception:
        log.critical("the daemon failed", exc_info=True)
        return FAILURE
    finally:
        server.close()
        remove_socket(config.paths.socket)
        lock.release()
        logging.shutdown()


def _leave(signum: int, frame: object) -> NoReturn:
    """A signal before the loop runs: nothing is built yet, the socket is removed on the way out."""
    raise SystemExit(EXIT_OK)
