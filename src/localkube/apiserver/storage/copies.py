"""Copies of the store's file, from which it is restored after damage.

The newest `KEPT` are retained, beside the file as `state.db.copy-TIME`. A copy is taken from the running store
(SQLite's backup) and checked before it is used, so that a damaged file never replaces its last good copy. When copies
are made: `copying.py`, which runs this module as a program.

`restore` replaces the file by the newest good copy; the file is kept as `state.db.damaged-TIME`.
"""

import re
import shutil
import sqlite3
import sys
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from localkube.apiserver.storage.files import beside, new_file
from localkube.apiserver.storage.inspection import connect_readonly, inspect, inspect_contents, opened
from localkube.apiserver.storage.lock import hold
from localkube.apiserver.storage.storeerrors import DamagedError, StoreError, explain

KEPT: Final = 3
SPARE: Final = 8
"""A copy is made only if this many times its size is free, so that copies do not fill the disk."""

TIME: Final = "%Y%m%dT%H%M%SZ"
NAME: Final = re.compile(r"\.copy-(\d{8}T\d{6}Z)")


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy, and the time at which it was taken."""

    path: Path
    taken: datetime

    def describe(self, now: datetime) -> str:
        """Return the name and age of the copy."""
        return f"{self.path.name} (taken {self.taken:%Y-%m-%d %H:%M:%S} UTC, {format_age(now - self.taken)} ago)"


@dataclass(frozen=True, slots=True)
class Restored:
    """The source of the restored file, and the new path of the replaced file; None if there was none."""

    source: str
    aside: Path | None


def find(path: Path, now: datetime) -> list[Copy]:
    """Return the copies of a file, the newest first; those with a future time (the clock was ahead) count as oldest."""
    found = [
        Copy(candidate, datetime.strptime(match[1], TIME).replace(tzinfo=UTC))
        for candidate in path.parent.glob(f"{path.name}.copy-*")
        if (match := NAME.fullmatch(candidate.name.removeprefix(path.name)))
    ]
    return sorted(found, key=lambda copy: (copy.taken <= now, copy.taken), reverse=True)


def take(path: Path, now: datetime) -> Copy:
    """Make a copy of a file, which may be in use, check it, and remove the oldest ones."""
    copy = Copy(beside(path, f".copy-{now.astimezone(UTC):{TIME}}"), now)
    try:
        needed, free = path.stat().st_size * SPARE, shutil.disk_usage(path.parent).free
        if free < needed:
            raise StoreError(f"{path}: not copied: {free >> 20} MiB are free, {needed >> 20} MiB wanted: free space")
        with new_file(copy.path) as fresh:
            with closing(connect_readonly(path, "mode=ro")) as source, closing(sqlite3.connect(fresh)) as target:
                target.execute("PRAGMA synchronous = OFF")  # it is synchronized before it is renamed
                source.backup(target)
            inspect(fresh)
        prune(path, now)
    except sqlite3.Error as error:
        raise explain(str(copy.path), error) from error
    except OSError as error:
        raise StoreError(f"{error.filename or path}: {error.strerror}: make the directory writable") from error
    return copy


def prune(path: Path, now: datetime) -> None:
    """Remove all but the newest copies, and the files of incomplete copies."""
    for old in find(path, now)[KEPT:]:
        old.path.unlink(missing_ok=True)
    for unfinished in path.parent.glob(f"{path.name}.copy-*.new*"):
        unfinished.unlink(missing_ok=True)


def restore(path: Path, now: datetime) -> Restored:
    """Replace the file by the newest good copy, and keep it under another name.

    If only the last changes of the log cannot be read, the file without them is newer than any copy, and used instead.
    """
    lock = hold(str(path))
    try:
        with new_file(path) as fresh:
            source = _fill(fresh, path, now)
            aside = _set_aside(path, beside(path, f".damaged-{now.astimezone(UTC):{TIME}}"))
        return Restored(source, aside)
    except sqlite3.Error as error:
        raise explain(str(path), error) from error
    except OSError as error:
        raise StoreError(f"{error.filename or path}: {error.strerror}: make the directory writable") from error
    finally:
        lock.release()


def _fill(fresh: Path, path: Path, now: datetime) -> str:
    """Fill a new file; return the name of its source."""
    if _is_salvageable(path):
        with opened(path) as (source, _), closing(sqlite3.connect(fresh)) as target:
            inspect_contents(source, path)
            source.backup(target)
        return f"all that {path.name} and its log have before the damage"
    problems = []
    for copy in find(path, now):
        try:
            inspect(copy.path)
        except StoreError as error:
            problems.append(str(error))
            continue
        shutil.copyfile(copy.path, fresh)
        return copy.describe(now)
    raise StoreError(f"{path}: no copy can be restored: {'; '.join(problems) or 'there is none'}")


def _is_salvageable(path: Path) -> bool:
    try:
        inspect(path)
    except DamagedError as error:
        return error.salvageable
    except StoreError:
        return False
    return False


def _set_aside(path: Path, aside: Path) -> Path | None:
    """Rename the file and then its log: if the process ends in between, the log alone is refused."""
    found = None
    for suffix in ("", "-wal", "-journal"):
        with suppress(FileNotFoundError):
            beside(path, suffix).rename(beside(aside, suffix))
            found = aside
    beside(path, "-shm").unlink(missing_ok=True)
    return found


def format_age(age: timedelta) -> str:
    """Format a duration in its largest unit.

    >>> format_age(timedelta(seconds=150)), format_age(timedelta(days=3))
    ('2 min', '3 days')
    """
    seconds = max(int(age.total_seconds()), 0)
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def main(arguments: list[str]) -> str | None:
    """Take a copy of FILE at MOMENT; return the error, None on success."""
    path, moment = arguments
    try:
        take(Path(path), datetime.fromisoformat(moment))
    except StoreError as error:
        return str(error)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
