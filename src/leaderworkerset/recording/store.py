"""Keeps episodes as files: `<namespace>/<LeaderWorkerSet>/<group>/<number>-<identity>.json`, bounded in bytes.

One process writes, any number read, also when none writes. A file appears complete or not at all, so the process can
die at any write. The oldest episodes go first: those of a set beyond its bound, then those of all sets.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from kuberuntime.objects import decimals
from leaderworkerset.recording.episode import Episode

OF_A_SET: Final = 4 * 1024 * 1024
IN_ALL: Final = 64 * 1024 * 1024
"""Bytes of all files."""

FILE: Final = re.compile(r"(?P<number>\d{1,9})-(?P<identity>[\w-]{1,100})\.json")
NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,252}")
UNFINISHED: Final = "unfinished"


class Place(NamedTuple):
    """Where an episode is."""

    namespace: str
    lws: str
    group: str
    number: int
    identity: str
    path: Path


class Store:
    """Writes episodes; opening it reads which ones there are, and removes what a killed process did not finish."""

    def __init__(self, directory: Path, *, of_a_set: int = OF_A_SET, in_all: int = IN_ALL) -> None:
        self._directory = directory
        self._of_a_set = of_a_set
        self._in_all = in_all
        self._unfinished = directory / UNFINISHED
        self._unfinished.unlink(missing_ok=True)
        stats = [(place, place.path.stat()) for place in places(directory)]
        stats.sort(key=lambda item: item[1].st_mtime_ns)
        self._sizes = {place: stat.st_size for place, stat in stats}

    def has(self, identity: str) -> bool:
        """Return whether there is an episode of this identity."""
        return any(place.identity == identity for place in self._sizes)

    def put(self, episode: Episode, identity: str) -> Episode:
        """Keep an episode in place of the one of the same identity; return it with its number.

        Raise `OSError` if it cannot be written, and `ValueError` for names that are no names of files.
        """
        place = self._place(episode, identity)
        numbered = msgspec.structs.replace(episode, number=place.number)
        text = msgspec.json.encode(numbered)
        place.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self._unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
        self._unfinished.rename(place.path)
        self._sizes.pop(place, None)
        self._sizes[place] = len(text)
        self._trim([one for one in self._sizes if one[:2] == place[:2]], self._of_a_set)
        self._trim(list(self._sizes), self._in_all)
        return numbered

    def _place(self, episode: Episode, identity: str) -> Place:
        names = (episode.namespace, episode.lws, episode.group)
        own = [one for one in self._sizes if one[:3] == names]
        known = next((one for one in own if one.identity == identity), None)
        if known is not None:
            return known
        number = max((one.number for one in own), default=0) + 1
        path = self._directory.joinpath(*names) / f"{number}-{identity}.json"
        if not all(map(NAME.fullmatch, names)) or not FILE.fullmatch(path.name):
            raise ValueError(f"an episode of {names} with the identity {identity!r}: not names of files")
        return Place(*names, number, identity, path)

    def _trim(self, oldest_first: list[Place], most: int) -> None:
        """Remove the oldest episodes beyond the bound; the newest stays, however large."""
        size = sum(self._sizes[one] for one in oldest_first)
        for old in oldest_first[:-1]:
            if size <= most:
                return
            old.path.unlink(missing_ok=True)
            size -= self._sizes.pop(old)
            for folder in old.path.parents[:3]:
                with suppress(OSError):  # it is not empty
                    folder.rmdir()


def places(directory: Path) -> Iterator[Place]:
    """Yield where episodes are, those of one group by number."""
    found = []
    for path in directory.glob("*/*/*/*.json"):
        namespace, lws, group = path.parts[-4:-1]
        match = FILE.fullmatch(path.name)
        number = decimals.natural(match["number"]) if match else None
        if match and number is not None:
            found.append(Place(namespace, lws, group, number, match["identity"], path))
    yield from sorted(found)


def read(place: Place) -> Episode | None:
    """Read an episode; None if it was removed meanwhile, or is not readable."""
    try:
        return msgspec.json.decode(place.path.read_bytes(), type=Episode)
    except (OSError, msgspec.DecodeError):
        return None
