"""Removing directories without holding up the event loop: moved aside at once, deleted by a thread."""

import asyncio
import os
import shutil
from pathlib import Path


class Trash:
    """Deletes what is added; what a crash left is deleted at the next start."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._count = 0
        self._queue: asyncio.Queue[Path] = asyncio.Queue()

    def add(self, path: Path) -> None:
        """Move a directory out of the way, to be deleted; one that does not exist is ignored."""
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
    """Delete a tree, also where a container left directories that nobody may enter."""
    for directory, _, _ in os.walk(path, onerror=None):
        Path(directory).chmod(0o700)
    shutil.rmtree(path, ignore_errors=True)
