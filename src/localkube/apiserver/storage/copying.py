"""When the store's file is copied: every `EVERY` seconds in which something changed, and when the cluster stops.

Taking and checking a copy reads every row, which takes memory by the number of objects. A process that lives for days
would keep the most it ever took, so while the cluster runs a process of its own takes the copy and gives all back by
ending; the event loop waits for nothing.
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Final

import structlog

from kuberuntime.clock import Clock
from localkube.apiserver.storage import copies
from localkube.apiserver.storage.errors import StoreError
from localkube.apiserver.storage.store import Store

EVERY: Final = 600.0
"""Seconds between two copies of a store that changes."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Copies:
    """Makes the copies of a store that is open."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._path = Path(store.path)
        self._copied = store.revision if copies.find(self._path, clock.now()) else -1

    async def run(self, every: float = EVERY) -> None:
        """Make copies until cancelled, each in a process of its own."""
        while True:
            await asyncio.sleep(every)
            if (revision := self._store.revision) != self._copied:
                with self._noting(revision):
                    await take_apart(self._path, self._clock.now())

    def keep(self, now: datetime) -> None:
        """Make a copy of what is committed, if that changed; what prevents it is logged."""
        if (revision := self._store.revision) != self._copied:
            with self._noting(revision):
                copies.take(self._path, now)

    @contextmanager
    def _noting(self, revision: int) -> Iterator[None]:
        """Remember what is copied where that succeeds, and log why it does not."""
        try:
            yield
        except StoreError as error:
            log.warning("no copy of the objects was made", error=str(error))
        else:
            self._copied = revision


async def take_apart(path: Path, now: datetime) -> None:
    """Take a copy of a file in a process of its own; raise `StoreError` with the reason where there is none."""
    words = (sys.executable, "-P", "-m", copies.__name__, str(path), now.isoformat())
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *words, stdin=nothing, stdout=nothing, stderr=pipe, start_new_session=True
        )  # a session of its own: Ctrl-C at the terminal stops the cluster, which stops this
    except OSError as error:
        raise StoreError(f"{path}: not copied: no process can be started: {error.strerror}") from error
    try:
        _, problem = await process.communicate()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    if process.returncode:
        lines = problem.decode(errors="replace").strip().splitlines()
        raise StoreError(lines[-1] if lines else f"{path}: not copied: the process ended with {process.returncode}")
