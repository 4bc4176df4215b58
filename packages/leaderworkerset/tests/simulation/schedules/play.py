"""Defines the state of a random schedule: its cluster, its checks, and its random number generator.

Events are functions of the `Play` (`happenings.py`).
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, TypeAlias

from tests.simulation.checks.facts import FOREIGN, TOUCHED
from tests.simulation.checks.invariants import Invariants
from tests.simulation.cluster import NAMESPACE
from tests.simulation.faults import FaultyTransport
from tests.simulation.schedules.lean import LeanCluster

from kuberuntime.errors import KubeError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS, Resource
from leaderworkerset.api.recreationrecord import SUFFIX
from leaderworkerset.api.resources import LEADERWORKERSETS

NAME: Final = "web"
KEY: Final = ObjectKey(NAMESPACE, NAME)

STANDSTILL: Final = 25.0
"""The maximum time in seconds for which a manager is paused or does not have its lease."""


@dataclass
class Play:
    """A running schedule, with its cluster, its checks and its random number generator."""

    world: LeanCluster
    checks: Invariants
    random: Random
    foreign: list[tuple[Resource, str]] = field(default_factory=list)
    loops: list[asyncio.Task[None]] = field(default_factory=list)

    def note(self, actor: str, what: str, about: str = "") -> None:
        """Add a line to the trace."""
        self.world.trace.note(self.world.clock.monotonic(), actor, what, about)

    def transports(self) -> list[FaultyTransport]:
        """Return the transports of the managers."""
        return list(self.world.managers.values())

    def lost(self, leader: str, since: float) -> int:
        """Return the number of failed writes since then for a leader and its recreation records.

        Only writes of managers count.
        """
        about = (f"/pods/{leader}", f"/controllerrevisions/{leader}{SUFFIX}")
        lost = [*self.world.wire.lost, *((at, path) for wire in self.wires() for at, path in wire.lost)]
        return sum(at >= since and path.endswith(about) for at, path in lost)

    def interrupted(self, begin: float, end: float) -> bool:
        """Return whether a manager was interrupted between two points in time, or shortly before them.

        Interruptions are crashes, pauses and lost leases.
        """
        return any(begin - STANDSTILL <= at <= end for wire in self.wires() for at in wire.interruptions)

    def disturbed(self, now: float) -> bool:
        """Return whether a manager fault or a rejected write may still delay the manager's actions."""
        last = [wire.disturbed_at for wire in self.wires()] + [at for at, _ in self.world.wire.lost[-1:]]
        return max(last, default=float("-inf")) > now - STANDSTILL

    def refused(self, path: str, since: float) -> bool:
        """Return whether a controller's write to the object at a path failed with a conflict since then."""
        found = (entry for entry in self.world.trace.entries if entry.actor == "controllers" and entry.object == path)
        return any(entry.answer == "409" and entry.at >= since for entry in found)

    def wires(self) -> list[FaultyTransport]:
        """Return the transports of all managers, including previous managers."""
        return self.world.spent + self.transports()

    def pods(self) -> list[JSONObject]:
        """Return the pods of the set from the API server, sorted by name."""
        known = self.checks.facts.objects.get(PODS.group_resource, {})
        return [pod for _, pod in sorted(known.items()) if FOREIGN not in meta.annotations(pod)]

    def victim(self) -> JSONObject | None:
        """Select a pod."""
        pods = self.pods()
        return self.random.choice(pods) if pods else None

    async def edit(self, what: str, **spec: Any) -> None:
        """Merge fields into the spec, as a user who does not retry after a rejection."""
        self.note("user", what, str(spec))
        await self.attempt(self.world.patch({"spec": spec}))

    async def attempt(self, call: Awaitable[Any]) -> bool:
        """Send a request that the cluster may reject, and record rejections."""
        try:
            await call
        except KubeError as error:
            self.note("user", "refused", str(error)[:150])
            return False
        return True

    async def calm(self) -> None:
        """Repair all damage."""
        for loop in self.loops:
            loop.cancel()
        for transport in self.transports():
            transport.is_down = False
        if self.world.others is not None:
            self.world.others.is_down = False
        self.world.webhooks.is_down = False
        self.world.wire.permit()
        self.world.kubelet.release()
        foreign, self.foreign = self.foreign, []
        for resource, name in foreign:
            self.note("user", "removes", f"foreign {resource.kind} {name}")
            try:
                await self.world.delete(name, resource)
            except NotFoundError:
                self.checks.violations.append(f"the foreign {resource.kind} {name} is gone")
        if foreign:
            await self.touch()

    async def touch(self) -> None:
        """Change managed objects, because the controller detects freed names only at the next change."""
        touched: list[tuple[Resource, ObjectKey]] = [(LEADERWORKERSETS, KEY)]
        touched += [(PODS, meta.key(pod)) for pod in self.pods()]
        for resource, key in touched:
            for value in ("true", None):
                patch: JSONObject = {"metadata": {"annotations": {TOUCHED: value}}}
                await self.attempt(self.world.client.patch(resource, key, patch, kind="merge"))


Happening: TypeAlias = Callable[[Play], Awaitable[None]]
