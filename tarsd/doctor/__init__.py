"""Every check of the machine and the installation, each with its remedy. Looks at everything and repairs nothing.

A check that hangs, fails or finds nothing to look at is a line like any other; all of them end within a minute.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from tarsd.doctor import daemon, inside, machine, program, settings, vault, watching
from tarsd.doctor.finding import Check, Finding, Skip, fault, skipped
from tarsd.doctor.subject import DoctorContext
from tarsd.errors import TarsdError

__all__ = ["CHECKS", "Check", "DoctorContext", "Finding", "examine"]

TOTAL_S: Final = 58.0

Findings = queue.SimpleQueue[Finding | None]

CHECKS: Final[tuple[Check, ...]] = (
    *settings.CHECKS,
    *vault.CHECKS,
    *daemon.CHECKS,
    *watching.CHECKS,
    *machine.CHECKS,
    *inside.CHECKS,
    *program.CHECKS,
)
"""In the order in which they are made: later ones use what earlier ones found out."""


def examine(
    subject: DoctorContext,
    checks: Sequence[Check] = CHECKS,
    *,
    seconds: float = TOTAL_S,
    begun: Callable[[Check], object] = lambda check: None,
) -> Iterator[Finding]:
    """Make the checks one after another, and yield each finding as it comes; `begun` is called before each check."""
    end = time.monotonic() + seconds * subject.patience
    running = {check: _begin(check, subject) for check in checks if check.ahead}
    for check in checks:
        begun(check)
        started = time.monotonic()
        left = min(check.seconds * subject.patience, end - started)
        for finding in _findings(check, subject, left, running.get(check)):
            now = time.monotonic()
            ms = round((now - started) * 1000, 1) if finding.ms is None else finding.ms
            yield replace(finding, group=finding.group or check.group, name=finding.name or check.name, ms=ms)
            started = now


def _begin(check: Check, subject: DoctorContext) -> Findings:
    """Make a check in a thread of its own; where its findings come, None last."""
    findings: Findings = queue.SimpleQueue()
    threading.Thread(target=_look, args=(check, subject, findings.put), name="tarsd-check", daemon=True).start()
    return findings


def _findings(check: Check, subject: DoctorContext, seconds: float, findings: Findings | None) -> Iterator[Finding]:
    """What a check finds, begun now unless it was before, and abandoned when it takes longer than `seconds`."""
    if seconds <= 0:
        yield skipped("There was no time left for this check.")
        return
    findings = findings or _begin(check, subject)
    end = time.monotonic() + seconds
    while True:
        try:
            finding = findings.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            yield fault(
                f"It did not finish within {seconds:.0f} s.",
                "Probably a disk, a network share or a server does not answer.",
            )
            return
        if finding is None:
            return
        yield finding


def _look(check: Check, subject: DoctorContext, put: Callable[[Finding | None], None]) -> None:
    try:
        findings = check.look(subject)
        for finding in [findings] if isinstance(findings, Finding) else findings:
            put(finding)
    except Skip as reason:
        put(skipped(str(reason)))
    except TarsdError as error:
        put(fault(error.message, error.hint, public=f"It failed ({error.code})."))
    except BaseException as error:  # in a thread that belongs to nothing else, and may end without a word
        what = f"This check failed by itself ({type(error).__name__})."
        put(fault(what, "Please report this: tarsd doctor --report FILE"))
    finally:
        put(None)
