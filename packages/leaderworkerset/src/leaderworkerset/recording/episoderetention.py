"""Tracks the sizes of stored episodes, and selects the episodes to delete if a limit is reached.

The functions are pure.
"""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from leaderworkerset.api.episode import Episode

FILE: Final = re.compile(r"(?P<number>\d{1,9})-(?P<identity>[\w-]{1,100})\.json")
NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,252}")


class EpisodeLocation(NamedTuple):
    """The location of an episode. If the episode has no file, the path is used for a copy."""

    namespace: str
    lws: str
    group: str
    number: int
    identity: str
    path: Path


class EpisodeRetention:
    """The episodes of a store with their sizes, oldest first."""

    def __init__(
        self, directory: Path, max_per_set: int, max_total: int, sizes: Iterable[tuple[EpisodeLocation, int]] = ()
    ) -> None:
        self._directory = directory
        self._max_per_set = max_per_set
        self._max_total = max_total
        self._sizes = dict(sizes)

    def has(self, identity: str) -> bool:
        """Return whether an episode with this identity exists."""
        return any(place.identity == identity for place in self._sizes)

    def locate(self, episode: Episode, identity: str) -> EpisodeLocation:
        """Return the location of the episode with this identity, or a new location with the next number.

        Raise `ValueError` if a file name is invalid.
        """
        names = (episode.namespace, episode.lws, episode.group)
        own = [place for place in self._sizes if place[:3] == names]
        known = next((place for place in own if place.identity == identity), None)
        if known is not None:
            return known
        number = max((place.number for place in own), default=0) + 1
        path = self._directory.joinpath(*names) / f"{number}-{identity}.json"
        if not all(map(NAME.fullmatch, names)) or not FILE.fullmatch(path.name):
            raise ValueError(
                f"the names {names} and the identity {identity!r} of an episode cannot be used as file names"
            )
        return EpisodeLocation(*names, number, identity, path)

    def put(self, place: EpisodeLocation, size: int) -> None:
        """Record an episode as the latest."""
        self._sizes.pop(place, None)
        self._sizes[place] = size

    def drop(self, place: EpisodeLocation) -> None:
        """Record that an episode was deleted."""
        self._sizes.pop(place, None)

    def expired_episodes(self) -> list[EpisodeLocation]:
        """Return the episodes to delete.

        The oldest episodes of each LeaderWorkerSet are first, followed by the oldest episodes of the largest
        namespace.

        So many failures in one namespace do not displace the episodes of other namespaces. The latest episode is always
        kept, regardless of its size.
        """
        newest = next(reversed(self._sizes), None)
        kept = dict(self._sizes)
        of_sets = Counter[tuple[object, ...]]()
        for place, size in kept.items():
            of_sets[place[:2]] += size
        for place in self._sizes:
            if of_sets[place[:2]] > self._max_per_set and place != newest:
                of_sets[place[:2]] -= kept.pop(place)
        while sum(kept.values()) > self._max_total and len(kept) > 1:
            of_namespaces = Counter[str]()
            for place, size in kept.items():
                of_namespaces[place.namespace] += 0 if place == newest else size
            ((largest, _),) = of_namespaces.most_common(1)
            kept.pop(next(place for place in kept if place.namespace == largest and place != newest))
        return [place for place in self._sizes if place not in kept]
