"""The end of an embedded cluster, reported to commands that follow it.

A cluster elsewhere may be out of reach for a while, and a watch goes on when it answers again. One of this machine
that has ended does not come back by itself, and the kernel knows for sure: the lock of its process is free.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from leaderworkerset.cli.cluster.places import DEFAULT, Place
from leaderworkerset.cli.errors import CommandError

if TYPE_CHECKING:
    from kuberuntime.cache.informer import Change  # it brings what commands that follow nothing do not need

BETWEEN_CHECKS: Final = 0.25
"""Seconds between two looks whether the process of the cluster is still there."""


class Lifeline:
    """Followed beside informers: raises once the cluster in `place` has ended; without a place nothing does."""

    def __init__(self, place: Place | None = None) -> None:
        self._place = place

    @property
    def log_level(self) -> str:
        """Return from which level on watches log: that they are interrupted at an end is reported here."""
        return "error" if self._place else "warning"

    def subscribe(self, callback: Callable[["Change"], None]) -> None:
        """Nothing changes but the end."""

    async def wait_synced(self) -> None:
        """Return at once: the cluster was there when the command began."""

    async def run(self) -> None:
        """Raise once the cluster has ended."""
        if self._place is None:
            return
        while self._place.pid() is not None:  # noqa: ASYNC110 - a lock notifies nobody
            await asyncio.sleep(BETWEEN_CHECKS)
        raise ended(self._place)


def ended(place: Place) -> CommandError:
    """Return the error of a command whose cluster has ended meanwhile."""
    return CommandError(f"cluster {place.name} has ended; start it again with `{up(place)}`")


def up(place: Place) -> str:
    """Return the command that starts the cluster."""
    return "lws up" if place.name == DEFAULT else f"lws up {place.name}"
