"""The additional state that controllers observe for capabilities of one LeaderWorkerSet.

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
    """Reads the state for one capability from caches."""

    def observe(self, lws: JSONObject) -> Any:
        """Return the observed state for one LeaderWorkerSet."""

    def watches(self) -> Sequence[Watch]:
        """Return the watches, and the LeaderWorkerSets that a change enqueues."""


class Observation(NamedTuple):
    """The caches that a capability needs, from which permissions are derived, and a function that builds its observer."""

    caches: tuple[Cache, ...]
    build: Callable[[Caches, Any], SetObserver]


OBSERVATIONS: Final[Mapping[str, Observation]] = {
    names.MOVES: Observation(maintenancenodes.CACHES, maintenancenodes.MaintenanceNodes),
}


def caches_of(configured: Mapping[str, Any]) -> tuple[Cache, ...]:
    """Return the additional caches that the configured capabilities need."""
    return tuple(
        cache
        for name, observation in OBSERVATIONS.items()
        if configured.get(name) is not None
        for cache in observation.caches
    )


def observers(caches: Caches, configured: Mapping[str, Any]) -> Mapping[str, SetObserver]:
    """Return the observers of the configured capabilities, by their names."""
    return {
        name: observation.build(caches, configured[name])
        for name, observation in OBSERVATIONS.items()
        if configured.get(name) is not None
    }
