"""Performs changes: a client does it through its editor, or the daemon on disk; one at a time for each note."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Literal, ParamSpec, TypeVar

from tarsd.errors import Conflict, NotFound, TarsdError, ToolError
from tarsd.protocol import Writer as By
from tarsd.protocol import WriteReport
from tarsd.vault import decode, nfc
from tarsd.writing.changes import Change
from tarsd.writing.disk import Disk
from tarsd.writing.journal import Journal, Kind
from tarsd.writing.notes import Notebook

P = ParamSpec("P")
T = TypeVar("T")
Emit = Callable[[str, dict[str, Any]], None]

_LOOKS_S = (0.0, 0.05, 0.2, 0.75)
"""When a note is looked at for what a client reports: an editor may answer before the disk has it."""


@dataclass(eq=False)
class _Job:
    change: Change
    by: By
    kind: Kind
    conversation: str
    emit: Emit | None
    id: str = ""
    stage: Literal["waiting", "offered", "claimed", "writing", "settled"] = "waiting"
    taken: asyncio.Event = field(default_factory=asyncio.Event)
    reported: asyncio.Event = field(default_factory=asyncio.Event)
    report: WriteReport | None = None

    def as_json(self) -> dict[str, Any]:
        """What a client needs in order to make the change."""
        change = self.change
        return {
            "id": self.id,
            "path": change.path,
            "op": change.op,
            "content": change.content,
            "if_hash": change.if_hash,
            "kind": self.kind,
        }


class Writer:
    """Makes the changes of a vault; lives in one event loop, and does its file work in `executor`'s threads.

    A client has `claim_s` seconds to claim a change, and `report_s` seconds more to report it; a note is looked at
    after each of `looks_s` seconds for what was reported.
    """

    def __init__(
        self,
        notebook: Notebook,
        journal: Journal,
        *,
        claim_s: float = 10.0,
        report_s: float = 60.0,
        looks_s: Sequence[float] = _LOOKS_S,
        executor: Executor | None = None,
    ) -> None:
        self._journal = journal
        self._disk = Disk(notebook, journal)
        self._claim_s = claim_s
        self._report_s = report_s
        self._looks_s = looks_s
        self._executor = executor
        self._open: dict[str, _Job] = {}
        self._jobs: dict[asyncio.Task[str], _Job] = {}
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    # ------------------------------------------------------------------------------------------- changes

    async def perform(
        self, change: Change, *, by: By, kind: Kind, conversation: str = "", emit: Emit | None = None
    ) -> str:
        """Make the change; returns the SHA-256 of the note's bytes.

        A client is told by a "write" event; what nobody claims, and what is no plain UTF-8, the daemon writes. A
        "written" event tells how it ended. Raises Conflict if the note is not the one that the change was made for,
        ToolError if the client failed, and what Vault.create and Vault.replace raise. When the caller is cancelled, a
        change that nobody has begun to make is withdrawn, and any other is seen to its end.
        """
        job = _Job(change, by, kind, conversation, emit)
        task = asyncio.create_task(self._run(job), name="write")
        self._jobs[task] = job
        task.add_done_callback(self._ended)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if job.stage in ("waiting", "offered"):
                job.stage = "settled"
                task.cancel()
            raise

    # -------------------------------------------------------------------------------------------- clients

    def claim(self, id: str) -> dict[str, Any]:
        """A client takes the change, and will report it; returns what the "write" event said.

        Raises Conflict if it is taken or settled, NotFound if there is no such change.
        """
        job = self._open.get(id)
        if job is None or job.stage != "offered":
            raise self._too_late(id)
        job.stage = "claimed"
        job.taken.set()
        return job.as_json()

    def report(self, id: str, report: WriteReport) -> None:
        """A client tells what became of the change that it claimed. Raises Conflict and NotFound as `claim`."""
        job = self._open.get(id)
        if job is None or job.stage != "claimed" or job.report is not None:
            raise self._too_late(id)
        job.report = report
        job.reported.set()

    def _too_late(self, id: str) -> TarsdError:
        job = self._open.get(id)
        if job is not None and job.stage == "offered":
            return Conflict("This change is not claimed.", "Claim it first.")
        if job is not None and job.stage == "claimed":
            return Conflict("This change is claimed already.", "Leave it to the one who claimed it.")
        try:
            self._journal.get(id)
        except NotFound as missing:
            return missing
        return Conflict("This change is settled already.", "Do not make it.")

    # ------------------------------------------------------------------------------------------- the rest

    async def undo(self, id: str) -> dict[str, Any]:
        """Take a change back, if the note is still as it was written; a note that was new goes into Obsidian's trash.

        What the change had put there comes back.

        Returns {id, path, hash}: the undo is a change itself, which can be taken back by its id; `hash` is None, and
        `trashed` a path, if the note is gone. Raises NotFound; Conflict if the note changed since.
        """
        entry = await self._in_thread(self._journal.get, id)
        async with self._alone(entry.path):
            return await self._in_thread(self._disk.take_back, id)

    async def finish(self, conversation: str, within_s: float = 2.0) -> None:
        """Wait for the changes of a conversation that are being made right now, at most so long."""
        own = [(task, job) for task, job in self._jobs.items() if job.conversation == conversation]
        making = [task for task, job in own if job.stage == "writing"]
        if making:
            await asyncio.wait(making, timeout=within_s)

    async def recover(self) -> None:
        """Finish what a crash left open, remove its temporary files, and delete entries that are too old.

        To be awaited after a start, before the first change.
        """
        await self._in_thread(self._disk.recover)

    async def close(self) -> None:
        """Withdraw changes that were not started, and wait for running ones."""
        for task, job in list(self._jobs.items()):
            if job.stage != "writing":
                task.cancel()
        await asyncio.gather(*self._jobs, return_exceptions=True)

    # --------------------------------------------------------------------------------------------- inside

    def _ended(self, task: asyncio.Task[str]) -> None:
        self._jobs.pop(task, None)
        if not task.cancelled():
            task.exception()  # looked at, for nobody may be waiting for it

    async def _run(self, job: _Job) -> str:
        change = job.change
        async with self._alone(change.path):
            job.id = await self._in_thread(self._journal.keep, change, job.kind, job.conversation, job.by)
            try:
                plain = all(decode(raw).encoding == "utf-8" for raw in (change.before, change.after) if raw is not None)
                by: By = "daemon"
                if job.by == "client" and plain and await self._offer(job):
                    by, hash = "client", await self._outcome(job)
                else:
                    job.stage = "writing"
                    hash = await self._in_thread(self._disk.write, change)
            except TarsdError as error:
                await self._settle(job, "failed")
                self._tell(job, hash="", by=job.by, error=error.as_json())
                raise
            except asyncio.CancelledError:
                if job.stage != "claimed":  # a client may still make that one: the next start sees what it did
                    self._journal.settle(job.id, "failed")
                raise
            finally:
                job.stage = "settled"
                self._open.pop(job.id, None)
            await self._settle(job, "written")
            if change.absorbs:
                await self._in_thread(self._disk.put_away, job.id, change.absorbs)
            self._tell(job, hash=hash, by=by)
            return hash

    async def _settle(self, job: _Job, state: Literal["written", "failed"]) -> None:
        job.stage = "settled"
        self._open.pop(job.id, None)
        await self._in_thread(self._journal.settle, job.id, state)

    def _tell(self, job: _Job, **how: Any) -> None:
        if job.emit is not None:
            with contextlib.suppress(TarsdError):  # the note is written, whether or not that can be logged
                job.emit("written", {"id": job.id, "path": job.change.path, "op": job.change.op, **how})

    async def _offer(self, job: _Job) -> bool:
        """Does a client claim it in time?"""
        if job.emit is None:
            return False
        job.stage = "offered"
        self._open[job.id] = job
        job.emit("write", job.as_json())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._claim_s):
                await job.taken.wait()
        if job.taken.is_set():
            return True
        job.stage = "writing"
        return False

    async def _outcome(self, job: _Job) -> str:
        """The hash that a client left the note with; raises Conflict or ToolError if it is not changed as planned."""
        change = job.change
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._report_s):
                await job.reported.wait()
        report = job.report
        said_so = report is not None and report.ok
        # an editor that held unsaved text may leave something else than was planned, and says what
        good = {change.hash, report.hash if report is not None and said_so and report.hash != change.if_hash else ""}
        for pause in self._looks_s if said_so else (0.0,):
            await asyncio.sleep(pause)
            now = await self._in_thread(self._disk.hash_of, change.path)
            if now in good:
                return str(now)
        if now != change.if_hash:
            if report is not None and report.ok and report.hash == change.hash:
                return change.hash  # it was written, and typed into since
            message = f"{change.path} was changed by another program while it was being written."
            raise Conflict(message, "Check the note; repeat the change if it is missing.")
        if report is not None and not report.ok:
            why = " ".join(report.error.split())[:300].rstrip(".")
            raise ToolError(f"{change.path} was not changed: {why if why else 'the client gave no reason'}.")
        said = "reported that it is written, and it is not" if report is not None else "did not say what became of it"
        raise Conflict(
            f"{change.path} is not changed: the client that took the change {said}.", "Try the change again."
        )

    async def _in_thread(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, lambda: call(*args, **kwargs))

    @contextlib.asynccontextmanager
    async def _alone(self, path: str) -> AsyncIterator[None]:
        """One change of a note at a time, in the order in which they came."""
        key = nfc(path).casefold()
        lock, users = self._locks.get(key, (asyncio.Lock(), 0))
        self._locks[key] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks.pop(key)
            if users > 1:
                self._locks[key] = (lock, users - 1)
