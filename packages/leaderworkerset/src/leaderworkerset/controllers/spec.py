"""Represents a controller as a value, with its name, caches, driver factory, and permissions.

Input: declarations. Output: the input of `manager/controllers.py`, which runs controllers, and of `lws install`,
which builds roles.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Watch
from kuberuntime.controller.writes import Write
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.plan import Actions, Plan
from kuberuntime.policyrules import Permission
from leaderworkerset.controllers.caches import Cache, Caches


class Driver(Protocol):
    """Observes and reconciles the objects of one controller. A driver exists while the process is the leader."""

    async def plan(self, key: ObjectKey) -> Plan:
        """Return the plan for one key."""

    def record_writes(self, _key: ObjectKey, _writes: Sequence[Write]) -> None:
        """Process the writes of the last plan for a key. By default, do nothing."""
        return

    def report_failure(self, _key: ObjectKey) -> Actions:
        """Return the actions that report a failed reconciliation of a key. By default, return none."""
        return ()

    def watches(self) -> Sequence[Watch]:
        """Return all caches that are read, and the keys that are enqueued after changes.

        After a write, a key waits until all of these caches show it. So caches whose changes do not enqueue a key are
        also listed.
        """


Build: TypeAlias = Callable[[Caches, Client, Clock], Driver]
"""Builds a driver. The client reads the few objects that are not cached."""


class ControllerSpec(Struct, frozen=True, kw_only=True):
    """A controller. `writes` contains its permissions in addition to the permissions for its caches.

    After a plan without actions, changes within `min_interval` seconds cause only one reconciliation of the key.
    """

    name: str
    caches: tuple[Cache, ...]
    build: Build
    writes: tuple[Permission, ...]
    min_interval: float = 0.0

    @property
    def permissions(self) -> tuple[Permission, ...]:
        """Return all permissions of the controller."""
        return (*(cache.permission for cache in self.caches), *self.writes)
