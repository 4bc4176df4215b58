"""A controller as a value: its name, the caches it reads, how its driver is built, what it may do.

In: declarations. Out: what `manager/controllers.py` runs, and what `lws install` builds roles from.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Watch
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.permissions import Permission
from kuberuntime.plan import Plan
from leaderworkerset.controllers.caches import Cache, Caches


class Driver(Protocol):
    """Observes the objects of one controller and decides; it lives as long as one leadership."""

    async def plan(self, key: ObjectKey) -> Plan:
        """Return what is to be done for one key."""
        ...

    def watches(self) -> Sequence[Watch]:
        """Return every cache that is read, and which keys a change of it concerns.

        After a write, a key waits until all of them show it: a cache whose changes concern no key is listed as well.
        """
        ...


Build: TypeAlias = Callable[[Caches, Client, Clock], Driver]
"""Build a driver; the client is for the few objects that no cache holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSpec:
    """What one controller is; `writes` is what it asks of the API server beside filling its caches."""

    name: str
    caches: tuple[Cache, ...]
    build: Build
    writes: tuple[Permission, ...]

    @property
    def permissions(self) -> tuple[Permission, ...]:
        """Return all that the controller asks of the API server."""
        return (*(cache.permission for cache in self.caches), *self.writes)
