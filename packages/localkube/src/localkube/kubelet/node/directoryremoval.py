"""Removes directories without blocking the event loop. Renames them immediately, and deletes them in a thread.

Paths are texts here: `pathlib` interns each part of a path, and Python 3.12 never frees interned texts. Every name in
the trash is new, so these names would be most of all interned texts.
"""

import asyncio
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject


class DirectoryRemoval:
    """Deletes the added directories. After a crash, the remaining directories are deleted at the next start."""

    def __init__(self, directory: Path) -> None:
        self._directory = str(directory)
        self._count = 0
        self._queue: asyncio.Queue[str] = asyncio.Queue()

    def add(self, path: Path) -> None:
        """Rename a directory that is to be deleted. Ignore a missing directory."""
        if not path.exists():
            return
        os.makedirs(self._directory, exist_ok=True)
        self._count += 1
        aside = f"{self._directory}/{path.name}-{os.getpid()}-{self._count}"
        os.rename(path, aside)
        self._queue.put_nowait(aside)

    async def run(self) -> None:
        """Delete directories until cancelled."""
        self._add_remaining()
        while True:
            path = await self._queue.get()
            await asyncio.to_thread(_remove, path)

    def _add_remaining(self) -> None:
        with suppress(FileNotFoundError):
            for name in os.listdir(self._directory):
                self._queue.put_nowait(f"{self._directory}/{name}")


def _remove(path: str) -> None:
    """Delete a tree, even if a container removed directory permissions, or created deeply nested directories.

    Entries that cannot be removed are left for the next start.
    """
    try:
        shutil.rmtree(path)
    except (OSError, RecursionError):
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*command, path], stdin=subprocess.DEVNULL, capture_output=True, check=False)


MOST_LOGS: Final = 200
"""The number of pods whose logs are retained, latest first. Logs of earlier starts of the cluster are deleted."""


class PreviousLogs:
    """Retains logs of deleted pods for later pods with the same name, as in a recreated group.

    Kubernetes deletes these logs. On one machine, the last lines of a failed program are more useful.
    """

    def __init__(self, directory: Path, trash: DirectoryRemoval) -> None:
        self._directory = directory
        self._trash = trash
        self._retained: dict[str, Path] = {}

    def clear(self) -> None:
        """Delete the logs that an earlier process retained."""
        self._trash.add(self._directory)

    def retain(self, pod: JSONObject, directory: Path) -> None:
        """Delete the directory of a deleted pod, and retain its logs instead of its predecessor's logs."""
        if (directory / "logs").exists():
            key, target = str(meta.key(pod)), self._directory / meta.uid(pod)
            if key in self._retained:
                self._trash.add(self._retained.pop(key))
            self._directory.mkdir(parents=True, exist_ok=True)
            (directory / "logs").rename(target)
            self._retained[key] = target
            if len(self._retained) > MOST_LOGS:
                self._trash.add(self._retained.pop(next(iter(self._retained))))
        self._trash.add(directory)

    def find(self, pod: JSONObject) -> Path | None:
        """Return the log directory of the previous pod with this name, or None if it does not exist."""
        return self._retained.get(str(meta.key(pod)))
