"""Reports to waiting commands that a local cluster has stopped.

A remote cluster may be temporarily unreachable, and a watch continues when it responds again. A local cluster that has
stopped does not restart by itself. The kernel shows this reliably, because it releases the lock of the process.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lwsctl.cli.cluster.clusterdirectories import DEFAULT, ClusterDirectory
from lwsctl.cli.errors import CommandError

if TYPE_CHECKING:
    from kuberuntime.cache.informer import Change  # its imports are only needed for watches

BETWEEN_CHECKS: Final = 0.25
"""The interval in seconds between checks whether the cluster process is running."""


class Keepalive:
    """Runs concurrently with informers, and raises an error when the cluster in directory `place` stops.

    It does nothing if there is no place.
    """

    def __init__(self, place: ClusterDirectory | None = None) -> None:
        self._place = place

    @property
    def log_level(self) -> str:
        """Return the log level for watches, whose interruptions are not logged when the cluster stops."""
        return "error" if self._place else "warning"

    def subscribe(self, callback: Callable[["Change"], None]) -> None:
        """Ignore the callback, because a stopped cluster is reported as an error."""

    async def wait_synced(self) -> None:
        """Return immediately, because the cluster was running when the command started."""

    async def run(self) -> None:
        """Raise an error when the cluster has stopped."""
        if self._place is None:
            return
        while self._place.pid() is not None:  # noqa: ASYNC110 - a lock sends no notification
            await asyncio.sleep(BETWEEN_CHECKS)
        raise stopped_cluster_error(self._place)


def stopped_cluster_error(place: ClusterDirectory) -> CommandError:
    """Return the error for a command whose cluster stopped while the command was running."""
    return CommandError(f"cluster {place.name} has stopped; use `{start_command(place)}` to start it")


def require_running(place: ClusterDirectory) -> None:
    """Raise an error if the cluster process is suspended, for example by Ctrl-Z, and cannot respond."""
    pid = place.pid()
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] if pid else ""
    except OSError:  # it has exited in the meantime
        return
    if state == "T":
        raise CommandError(
            f"cluster {place.name} is suspended because process {pid} is stopped; use `kill -CONT {pid}` to continue it"
        )


def start_command(place: ClusterDirectory) -> str:
    """Return the command that starts the cluster."""
    return "lws up" if place.name == DEFAULT else f"lws up {place.name}"
