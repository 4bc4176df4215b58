"""Observes additional state for the capabilities of one LeaderWorkerSet.

The table has a row for each capability that needs objects other than those of the LeaderWorkerSet.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from kuberuntime.controller.controller import Watch
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.capabilities import names
from leaderworkerset.controllers import maintenancenodes
from leaderworkerset.controllers.caches import Cache, Caches


class SetObserver(Protocol):
    """Reads the state of one capability from caches."""

    def observe(self, lws: JSONObject) -> Any:
        """Return the observed state of one LeaderWorkerSet."""

    def watches(self) -> Sequence[Watch]:
        """Return the watches, and the LeaderWorkerSets that are enqueued after changes."""


class Observation(NamedTuple):
    """The caches of a capability, and a function that builds its observer.

    Permissions are derived from the caches.
    """

    caches: tuple[Cache, ...]
    build: Callable[[Caches, Any], SetObserver]


OBSERVATIONS: Final[Mapping[str, Observation]] = {
    names.MOVES: Observation(maintenancenodes.CACHES, maintenancenodes.MaintenanceNodes),
}


def caches_of(configured: Mapping[str, Any]) -> tuple[Cache, ...]:
    """Return the additional caches for the configured capabilities."""
    return tuple(
        cache
        for name, observation in OBSERVATIONS.items()
        if configured.get(name) is not None
        for cache in observation.caches
    )


def observers(caches: Caches, configured: Mapping[str, Any]) -> Mapping[str, SetObserver]:
    """Return the observers of the configured capabilities by name."""
    return {
        name: observation.build(caches, configured[name])
        for name, observation in OBSERVATIONS.items()
        if configured.get(name) is not None
    }
