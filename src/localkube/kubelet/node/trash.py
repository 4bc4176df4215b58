"""Removes directories without blocking the event loop: renames them at once, deletes them in a thread."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path


class Trash:
    """Deletes the directories that are added; after a crash, the rest is deleted at the next start."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._count = 0
        self._queue: asyncio.Queue[Path] = asyncio.Queue()

    def add(self, path: Path) -> None:
        """Rename a directory, to be deleted; one that does not exist is ignored."""
        if not path.exists():
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        self._count += 1
        aside = self._directory / f"{path.name}-{os.getpid()}-{self._count}"
        path.rename(aside)
        self._queue.put_nowait(aside)

    async def run(self) -> None:
        """Delete until cancelled."""
        for left in list(self._directory.iterdir()) if self._directory.is_dir() else ():
            self._queue.put_nowait(left)
        while True:
            path = await self._queue.get()
            await asyncio.to_thread(_remove, path)


def _remove(path: Path) -> None:
    """Delete a tree, also if a container left directories without permissions, or thousands of nested ones.

    Each directory is moved up beside the tree before it is emptied, so that neither the stack nor a path grows with the
    depth. Entries that cannot be removed are left for the next start.
    """
    pending, count = [path], 0
    while pending:
        entry = pending.pop()
        count += 1
        with suppress(OSError):
            if entry.is_symlink() or not entry.is_dir():
                entry.unlink()
                continue
            entry.chmod(0o700)
            pending += _empty(entry, path.with_name(f"{path.name}.{count}"))
            entry.rmdir()


def _empty(directory: Path, beside: Path) -> list[Path]:
    """Delete the files of a directory; return the new paths of its subdirectories."""
    moved = []
    for number, entry in enumerate(list(directory.iterdir())):
        with suppress(OSError):
            if entry.is_symlink() or not entry.is_dir():
                entry.unlink()
                continue
            entry.chmod(0o700)  # a directory must be writable to be renamed
            moved.append(entry.rename(f"{beside}.{number}"))
    return moved
