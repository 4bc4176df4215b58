"""Copies the store's file periodically: every `EVERY` seconds if it changed, and when the cluster stops.

Taking and checking a copy reads every row, so its memory grows with the number of objects, and a process would keep
that memory. So while the cluster runs, a separate process takes the copy and releases all memory when it ends; the
event loop is not blocked.
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
from localkube.apiserver.storage.store import Store
from localkube.apiserver.storage.storeerrors import StoreError

EVERY: Final = 600.0
"""Seconds between two copies of a store that changes."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Copies:
    """Makes copies of an open store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._path = Path(store.path)
        self._copied = store.revision if copies.find(self._path, clock.now()) else -1

    async def run(self, every: float = EVERY) -> None:
        """Make copies until cancelled, each in a separate process."""
        while True:
            await asyncio.sleep(every)
            if (revision := self._store.revision) != self._copied:
                with self._noting(revision):
                    await take_apart(self._path, self._clock.now())

    def keep(self, now: datetime) -> None:
        """Make a copy of the committed state, if it changed; failures are logged."""
        if (revision := self._store.revision) != self._copied:
            with self._noting(revision):
                copies.take(self._path, now)

    @contextmanager
    def _noting(self, revision: int) -> Iterator[None]:
        """Record the copied revision if the body succeeds, and log its failure."""
        try:
            yield
        except StoreError as error:
            log.warning("no copy of the objects was made", error=str(error))
        else:
            self._copied = revision


async def take_apart(path: Path, now: datetime) -> None:
    """Take a copy of a file in a separate process; raise `StoreError` with the reason if that fails."""
    words = (sys.executable, "-P", "-m", copies.__name__, str(path), now.isoformat())
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *words, stdin=nothing, stdout=nothing, stderr=pipe, start_new_session=True
        )  # a new session: Ctrl-C at the terminal stops the cluster, which stops this process
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
