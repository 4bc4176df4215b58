"""Copies of the store's file, from which it is restored after damage.

The newest `KEPT` are beside the file as `state.db.copy-TIME`: one is taken every `EVERY` seconds in which something changed,
and when the cluster stops (SQLite's backup). Each is checked before it is used, so that a damaged file never replaces its
last good copy. `restore` replaces the file by the newest good copy, and keeps the file as `state.db.damaged-TIME`.
"""

import asyncio
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import structlog
from msgspec import Struct

from kuberuntime.clock import Clock
from localkube.apiserver.storage.database import beside, connect_readonly, inspect, new_file
from localkube.apiserver.storage.lock import FileLock
from localkube.apiserver.storage.store import Store
from localkube.apiserver.storage.storeerrors import StoreError, explained

EVERY: Final = 600.0
"""Seconds between two copies of a store that changes."""

KEPT: Final = 3
SPARE: Final = 8
"""A copy is made only if this many times its size is free, so that copies do not fill the disk."""

TIME: Final = "%Y%m%dT%H%M%SZ"
NAME: Final = re.compile(r".*\.copy-(\d{8}T\d{6}Z)")

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Copy(Struct, frozen=True):
    """A copy, and the time at which it was taken."""

    path: Path
    taken: datetime

    def describe(self, now: datetime) -> str:
        """Return the name and age of the copy."""
        age = timedelta(seconds=max(int((now - self.taken).total_seconds()), 0))
        return f"{self.path.name} (taken {self.taken:%Y-%m-%d %H:%M:%S} UTC, {age} ago)"


def find(path: Path, now: datetime) -> list[Copy]:
    """Return the copies of a file, the newest first; those with a future time (the clock was ahead) count as oldest."""
    found = [
        Copy(one, datetime.strptime(match[1], TIME).replace(tzinfo=UTC))
        for one in path.parent.glob(f"{path.name}.copy-*")
        if (match := NAME.fullmatch(one.name))
    ]
    return sorted(found, key=lambda copy: (copy.taken <= now, copy.taken), reverse=True)


def take(path: Path, now: datetime) -> None:
    """Make a copy of a file, which may be in use, check it, and remove the oldest ones."""
    with explained(path):
        needed, free = path.stat().st_size * SPARE, shutil.disk_usage(path.parent).free
        if free < needed:
            raise StoreError(f"{path}: not copied: {free >> 20} MiB are free, {needed >> 20} MiB wanted: free space")
        with new_file(beside(path, f".copy-{now.astimezone(UTC):{TIME}}")) as fresh:
            with closing(connect_readonly(path)) as source, closing(sqlite3.connect(fresh)) as target:
                target.execute("PRAGMA synchronous = OFF")  # it is synchronized before it is renamed
                source.backup(target)
            inspect(fresh)
        for old in find(path, now)[KEPT:]:
            old.path.unlink(missing_ok=True)
        for unfinished in path.parent.glob(f"{path.name}.copy-*.new*"):
            unfinished.unlink(missing_ok=True)


def take_apart(path: Path, now: datetime) -> None:
    """Make a copy in another process: reading every row would hold up this one, and cost memory for good."""
    command = [sys.executable, "-P", "-m", __name__, str(path), now.isoformat()]
    nothing = subprocess.DEVNULL  # a new session: Ctrl-C ends the cluster, which waits for the copy
    done = subprocess.run(
        command, stdin=nothing, stdout=nothing, stderr=subprocess.PIPE, start_new_session=True, check=False
    )
    if done.returncode:
        raise StoreError(done.stderr.decode(errors="replace").strip() or f"{path}: not copied: {done.returncode}")


def restore(path: Path, now: datetime) -> tuple[str, Path | None]:
    """Replace the file by its newest good copy; return its description, and where the replaced file is, if there was one."""
    lock = FileLock(str(path))
    try:
        with explained(path), new_file(path) as fresh:
            copy = _newest_good(path, now)
            shutil.copyfile(copy.path, fresh)
            aside = beside(path, f".damaged-{now.astimezone(UTC):{TIME}}")
            for suffix in ("", "-wal", "-shm"):  # if the process ends in between, the log alone is refused
                with suppress(FileNotFoundError):
                    beside(path, suffix).rename(beside(aside, suffix))
        return copy.describe(now), aside if aside.exists() else None
    finally:
        lock.release()


def _newest_good(path: Path, now: datetime) -> Copy:
    problems = []
    for copy in find(path, now):
        try:
            inspect(copy.path)
        except StoreError as error:
            problems.append(str(error))
        else:
            return copy
    raise StoreError(f"{path}: no copy can be restored: {'; '.join(problems) or 'there is none'}")


class Copies:
    """Makes copies of an open store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._path = Path(store.path)
        self._copied = store.revision if find(self._path, clock.now()) else -1

    async def run(self, every: float = EVERY) -> None:
        """Make copies until cancelled, each in a process of its own; one that was begun is finished."""
        while True:
            await asyncio.sleep(every)
            copying = asyncio.ensure_future(asyncio.to_thread(self.keep, take_apart))
            try:
                await asyncio.shield(copying)
            finally:
                await asyncio.wait([copying])

    def keep(self, make: Callable[[Path, datetime], None] = take) -> None:
        """Make a copy of what is committed, if that changed; failures are logged."""
        if (revision := self._store.revision) == self._copied:
            return
        try:
            make(self._path, self._clock.now())
        except (StoreError, OSError) as error:  # OSError: no process can be started
            log.warning("no copy of the objects was made", error=str(error))
        else:
            self._copied = revision


if __name__ == "__main__":
    try:
        take(Path(sys.argv[1]), datetime.fromisoformat(sys.argv[2]))
    except StoreError as failure:
        sys.exit(str(failure))
