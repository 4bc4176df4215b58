"""Stores episodes as files `<namespace>/<LeaderWorkerSet>/<group>/<number>-<identity>.json`, with a size limit.

One process writes, and any number of processes read. Files are written atomically, so the process can crash during any
write. `episoderetention.py` selects the episodes to delete when the limit is reached.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from kuberuntime.objects import decimals
from leaderworkerset.api.episode import Episode
from leaderworkerset.recording.episoderetention import FILE, EpisodeLocation, EpisodeRetention

MAX_PER_SET: Final = 4 * 1024 * 1024
MAX_TOTAL: Final = 64 * 1024 * 1024
"""The maximum total size of all files in bytes."""

UNFINISHED: Final = "unfinished"


class Store:
    """Writes episodes. When opened, it reads the existing episodes, and deletes incomplete files."""

    def __init__(self, directory: Path, *, max_per_set: int = MAX_PER_SET, max_total: int = MAX_TOTAL) -> None:
        self._unfinished = directory / UNFINISHED
        self._unfinished.unlink(missing_ok=True)
        stats = [(place, place.path.stat()) for place in places(directory)]
        stats.sort(key=lambda item: item[1].st_mtime_ns)
        self._episodes = EpisodeRetention(
            directory, max_per_set, max_total, ((place, stat.st_size) for place, stat in stats)
        )

    def has(self, identity: str) -> bool:
        """Return whether an episode with this identity exists."""
        return self._episodes.has(identity)

    async def store(self, episode: Episode, identity: str) -> Episode:
        """Store an episode with `put`."""
        return self.put(episode, identity)

    def put(self, episode: Episode, identity: str) -> Episode:
        """Store or replace an episode. Return the episode with its number.

        Raise `OSError` if it cannot be written, and `ValueError` if a file name is invalid.
        """
        place = self._episodes.locate(episode, identity)
        numbered = msgspec.structs.replace(episode, number=place.number)
        text = msgspec.json.encode(numbered)
        place.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self._unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
        self._unfinished.rename(place.path)
        self._episodes.put(place, len(text))
        for old in self._episodes.expired_episodes():
            old.path.unlink(missing_ok=True)
            self._episodes.drop(old)
            for folder in old.path.parents[:3]:
                with suppress(OSError):  # it is not empty
                    folder.rmdir()
        return numbered


def places(directory: Path) -> Iterator[EpisodeLocation]:
    """Yield the locations of episodes. Episodes of a group are ordered by number."""
    all_places = []
    for path in directory.glob("*/*/*/*.json"):
        namespace, lws, group = path.parts[-4:-1]
        match = FILE.fullmatch(path.name)
        number = decimals.natural(match["number"]) if match else None
        if match and number is not None:
            all_places.append(EpisodeLocation(namespace, lws, group, number, match["identity"], path))
    yield from sorted(all_places)


def read(place: EpisodeLocation) -> Episode | None:
    """Read an episode. Return None if it was deleted in the meantime or is invalid."""
    try:
        return msgspec.json.decode(place.path.read_bytes(), type=Episode)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None
