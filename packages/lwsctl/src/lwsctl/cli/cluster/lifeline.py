"""Reports the end of an embedded cluster to commands that follow it.

A cluster elsewhere may be unreachable for a while, and a watch continues when it answers again. An embedded cluster
that has ended does not restart by itself, and the kernel shows its end reliably: the lock of its process is free.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lwsctl.cli.cluster.places import DEFAULT, ClusterDirectory
from lwsctl.cli.errors import CommandError

if TYPE_CHECKING:
    from kuberuntime.cache.informer import Change  # it imports what commands without watches do not need

BETWEEN_CHECKS: Final = 0.25
"""Seconds between two checks that the process of the cluster runs."""


class Lifeline:
    """Runs next to informers: raises when the cluster in `place` has ended; without a place it does nothing."""

    def __init__(self, place: ClusterDirectory | None = None) -> None:
        self._place = place

    @property
    def log_level(self) -> str:
        """Return the level from which on watches log: interruptions by the end are reported here."""
        return "error" if self._place else "warning"

    def subscribe(self, callback: Callable[["Change"], None]) -> None:
        """Ignore the callback: the end of the cluster is reported as an error."""

    async def wait_synced(self) -> None:
        """Return at once: the cluster ran when the command began."""

    async def run(self) -> None:
        """Raise when the cluster has ended."""
        if self._place is None:
            return
        while self._place.pid() is not None:  # noqa: ASYNC110 - a lock sends no notification
            await asyncio.sleep(BETWEEN_CHECKS)
        raise ended(self._place)


def ended(place: ClusterDirectory) -> CommandError:
    """Return the error of a command whose cluster has ended in the meantime."""
    return CommandError(f"cluster {place.name} has stopped; start it again with `{up(place)}`")


def refuse_stopped(place: ClusterDirectory) -> None:
    """Raise if the process of a cluster is stopped, as by Ctrl-Z: its API server would answer nothing."""
    pid = place.pid()
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] if pid else ""
    except OSError:  # it has ended meanwhile
        return
    if state == "T":
        raise CommandError(
            f"cluster {place.name} stands still: process {pid} is stopped; `kill -CONT {pid}` continues it"
        )


def up(place: ClusterDirectory) -> str:
    """Return the command that starts the cluster."""
    return "lws up" if place.name == DEFAULT else f"lws up {place.name}"
