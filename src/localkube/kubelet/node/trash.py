"""Removes directories without blocking the event loop: renames them at once, deletes them in a thread.

Paths are texts here: `pathlib` interns each part of a path, and Python 3.12 never frees an interned text. Every name in the
trash is new, so they would be most of what the interpreter ever interns.
"""

import asyncio
import os
import stat
from contextlib import suppress
from pathlib import Path


class Trash:
    """Deletes the directories that are added; after a crash, the rest is deleted at the next start."""

    def __init__(self, directory: Path) -> None:
        self._directory = str(directory)
        self._count = 0
        self._queue: asyncio.Queue[str] = asyncio.Queue()

    def add(self, path: Path) -> None:
        """Rename a directory, to be deleted; one that does not exist is ignored."""
        if not path.exists():
            return
        os.makedirs(self._directory, exist_ok=True)
        self._count += 1
        aside = f"{self._directory}/{path.name}-{os.getpid()}-{self._count}"
        os.rename(path, aside)
        self._queue.put_nowait(aside)

    async def run(self) -> None:
        """Delete until cancelled."""
        self._add_left()
        while True:
            path = await self._queue.get()
            await asyncio.to_thread(_remove, path)

    def _add_left(self) -> None:
        """Add what an earlier process left."""
        with suppress(FileNotFoundError):
            for left in os.listdir(self._directory):
                self._queue.put_nowait(f"{self._directory}/{left}")


def _remove(path: str) -> None:
    """Delete a tree, also if a container left directories without permissions, or thousands of nested ones.

    Each directory is moved up beside the tree before it is emptied, so that neither the stack nor a path grows with the
    depth. Entries that cannot be removed are left for the next start.
    """
    pending, count = [path], 0
    while pending:
        entry = pending.pop()
        count += 1
        with suppress(OSError):
            if not _is_directory(entry):
                os.unlink(entry)
                continue
            os.chmod(entry, 0o700)
            pending += _empty(entry, f"{path}.{count}")
            os.rmdir(entry)


def _empty(directory: str, beside: str) -> list[str]:
    """Delete the files of a directory; return the new paths of its subdirectories."""
    moved = []
    for number, name in enumerate(os.listdir(directory)):
        entry, aside = f"{directory}/{name}", f"{beside}.{number}"
        with suppress(OSError):
            if not _is_directory(entry):
                os.unlink(entry)
                continue
            os.chmod(entry, 0o700)  # a directory must be writable to be renamed
            os.rename(entry, aside)
            moved.append(aside)
    return moved


def _is_directory(path: str) -> bool:
    """Return whether it is a directory itself, not a link to one."""
    return stat.S_ISDIR(os.lstat(path).st_mode)
