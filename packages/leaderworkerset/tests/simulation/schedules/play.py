"""A random schedule in progress: its cluster, its checks, and its source of randomness.

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
"""Seconds for which a manager stands still at most, or goes without its lease."""


@dataclass
class Play:
    """A schedule in progress: the cluster, its checks, and its randomness."""

    world: LeanCluster
    checks: Invariants
    random: Random
    foreign: list[tuple[Resource, str]] = field(default_factory=list)
    loops: list[asyncio.Task[None]] = field(default_factory=list)

    def note(self, actor: str, what: str, about: str = "") -> None:
        """Write a line into the trace."""
        self.world.trace.note(self.world.clock.monotonic(), actor, what, about)

    def transports(self) -> list[FaultyTransport]:
        """Return the wires of the managers."""
        return list(self.world.managers.values())

    def lost(self, leader: str, since: float) -> int:
        """Return how many writes of managers about a leader and the record of its recreations failed since then."""
        about = (f"/pods/{leader}", f"/controllerrevisions/{leader}{SUFFIX}")
        lost = [*self.world.wire.lost, *((at, path) for wire in self.wires() for at, path in wire.lost)]
        return sum(at >= since and path.endswith(about) for at, path in lost)

    def interrupted(self, begin: float, end: float) -> bool:
        """Return whether a manager died, was paused or lost its lease between two moments, or shortly before them."""
        return any(begin - STANDSTILL <= at <= end for wire in self.wires() for at in wire.interruptions)

    def disturbed(self, now: float) -> bool:
        """Return whether a fault of a manager, or a refused write, may still delay what it does."""
        last = [wire.disturbed_at for wire in self.wires()] + [at for at, _ in self.world.wire.lost[-1:]]
        return max(last, default=float("-inf")) > now - STANDSTILL

    def refused(self, path: str, since: float) -> bool:
        """Return whether a write of Kubernetes' controllers to the object of a path was refused as a conflict since then."""
        found = (entry for entry in self.world.trace.entries if entry.actor == "controllers" and entry.object == path)
        return any(entry.answer == "409" and entry.at >= since for entry in found)

    def wires(self) -> list[FaultyTransport]:
        """Return the transports of all managers, including the previous ones."""
        return self.world.spent + self.transports()

    def pods(self) -> list[JSONObject]:
        """Return our pods as the API server has them, in the order of their names."""
        known = self.checks.facts.objects.get(PODS.group_resource, {})
        return [pod for _, pod in sorted(known.items()) if FOREIGN not in meta.annotations(pod)]

    def victim(self) -> JSONObject | None:
        """Pick a pod."""
        pods = self.pods()
        return self.random.choice(pods) if pods else None

    async def edit(self, what: str, **spec: Any) -> None:
        """Merge fields into the spec, as a user who gives up after a refusal."""
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
        """Change our objects, because freed names are noticed with the next change only."""
        touched: list[tuple[Resource, ObjectKey]] = [(LEADERWORKERSETS, KEY)]
        touched += [(PODS, meta.key(pod)) for pod in self.pods()]
        for resource, key in touched:
            for value in ("true", None):
                patch: JSONObject = {"metadata": {"annotations": {TOUCHED: value}}}
                await self.attempt(self.world.client.patch(resource, key, patch, kind="merge"))


Happening: TypeAlias = Callable[[Play], Awaitable[None]]
