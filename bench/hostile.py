"""A hostile tenant beside another one, on a real control plane: what the manager does, and what the other one waits for.

    python -m bench.hostile [--objects 200000]

The manager is a process as its Deployment starts it. The hostile tenant stores objects of many kinds that carry our
labels (`tests/hostile.py`), changes and deletes them; a bounded number is there at once. The other tenant creates
LeaderWorkerSets and waits for the first write that the manager makes for each, and rolls a set again and again. Prints
one JSON line for each phase:

    alone       nobody else is there
    attack      while so many objects go through the manager's watches
    keys_due    while two DisaggregatedSets of a thousand LeaderWorkerSets each are new, so that most keys are due
    end         everything hostile is deleted: memory, and whether every watch still brings what happens

Ends with 1 where the process ended, a watch brings nothing, memory at the end is above 1.5 times that before, or the
first write beside the due keys took longer than 2 s (p99).
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

import structlog
from bench.load import percentile
from bench.record import machine, report
from tests.attacker import Attacker
from tests.controlplane import build
from tests.controlplane.process import control_plane
from tests.disaggregated import disaggregatedset_object, role
from tests.integration.clusters.kubernetes import KubernetesCluster, set_up
from tests.integration.manager import installation
from tests.integration.manager.groups import Space, counter
from tests.integration.manager.replicas import Replica, until
from tests.integration.manager.tenant import admit, roll
from tests.integration.manager.world import World, opened

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.requests import Selection
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import STATEFULSETS
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS, ROLE_SCALERS

USUAL_ELECTION: Final = {"leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s"}
ALONE: Final = 60.0
"""Seconds for which the other tenant is alone."""

PAUSE: Final = 0.5
"""Seconds between two LeaderWorkerSets of the other tenant."""

AT_ONCE: Final = 16
GROUPS: Final = 2
PATIENCE: Final = 300.0
"""Seconds in which what is asked of the manager at the end must come true."""

ROLES, SLICES, SETTLED = 10, 100, 5
"""Of a DisaggregatedSet that makes a thousand LeaderWorkerSets; seconds without a due key after which they are made."""

GROWTH: Final = 1.5
FIRST_WRITE: Final = 2.0
"""Seconds that the first write for the other tenant may take, 99 of 100 times, beside 2,000 due keys."""


@dataclass
class Victim:
    """The other tenant: the seconds until the first write for each of its LeaderWorkerSets, and of each rollout."""

    space: Space
    manager: Replica
    first_writes: list[float] = field(default_factory=list)
    rollouts: list[float] = field(default_factory=list)
    rounds: int = 0

    async def meanwhile(self, work: Awaitable[Any]) -> dict[str, Any]:
        """Create and roll while something is done; return what was waited for."""
        self.first_writes, self.rollouts = [], []
        async with asyncio.TaskGroup() as group:
            busy = [group.create_task(self._create()), group.create_task(self._roll())]
            await work
            for task in busy:
                task.cancel()
        return {
            "first_writes": len(self.first_writes),
            "first_write_p50_ms": percentile(self.first_writes, 0.5),
            "first_write_p99_ms": percentile(self.first_writes, 0.99),
            "first_write_max_ms": percentile(self.first_writes, 1),
            "rollouts": len(self.rollouts),
            "rollout_median_s": round(median(self.rollouts), 2) if self.rollouts else None,
            "rollout_max_s": round(max(self.rollouts), 2) if self.rollouts else None,
        }

    async def _create(self) -> None:
        """Create LeaderWorkerSets without groups, one after the other; the manager creates a StatefulSet for each."""
        created: dict[str, asyncio.Event] = {}
        sets = Informer(self.space.client, Selection(STATEFULSETS, self.space.namespace))

        def follow(change: Change) -> None:
            if change.old is None and (event := created.get(meta.name(change.object))) is not None:
                event.set()

        sets.subscribe(follow)
        async with asyncio.TaskGroup() as group:
            group.create_task(sets.run())
            await sets.wait_synced()
            while True:
                self.rounds += 1
                name = f"probe-{self.rounds}"
                event = created[name] = asyncio.Event()
                begun = time.monotonic()
                await self.space.create(name, replicas=0, size=1)
                await event.wait()
                self.first_writes.append(time.monotonic() - begun)
                del created[name]
                await self.space.client.delete(LEADERWORKERSETS, ObjectKey(self.space.namespace, name))
                await asyncio.sleep(PAUSE)

    async def _roll(self) -> None:
        while True:
            self.rounds += 1
            self.rollouts.append(await roll(self.space, "web", GROUPS, f"app:{self.rounds}", self.manager))


async def measure(world: World, number: int) -> bool:
    """Measure all phases; return whether everything holds that must."""
    manager = await world.start("a", leaderElection=USUAL_ELECTION)
    await world.await_master(manager)
    space = Space(world.client, "victim")
    await space.open()
    await space.create("web", replicas=GROUPS, size=2)
    await space.await_ready("web", GROUPS)
    victim = Victim(space, manager)
    waited = await victim.meanwhile(asyncio.sleep(ALONE))
    before = manager.resident_mebibytes()
    report("alone", **waited, memory_mib=round(before, 1))
    tenant, begun = await admit(world, "hostile", 1), time.monotonic()
    waited = await victim.meanwhile(tenant.attack(number, at_once=AT_ONCE))
    report(
        "attack",
        **waited,
        seconds=round(time.monotonic() - begun),
        objects=tenant.stored.total(),
        stored={one.plural: count for one, count in tenant.stored.items()},
        refused=tenant.refused.total(),
        memory_mib=round(manager.resident_mebibytes(), 1),
        ignored=counter(await metrics(manager, world), "lws_ignored_objects_total").total(),
    )
    await tenant.clear()
    due: list[int] = []
    waited = await victim.meanwhile(make_keys_due(tenant, manager, world, due))
    report("keys_due", **waited, seconds=len(due), most_due=max(due), memory_mib=round(manager.resident_mebibytes(), 1))
    await tenant.clear()
    await tenant.client.close()
    await use_every_watch(space)
    manager.check()
    after = manager.resident_mebibytes()
    report("end", exits=0, stalled_watches=0, errors_logged=len(manager.failures()), memory_mib=round(after, 1))
    return after <= GROWTH * before and waited["first_write_p99_ms"] <= 1000 * FIRST_WRITE


async def metrics(manager: Replica, world: World) -> str:
    """Return the metrics of the manager."""
    _, text = await manager.metrics_with(await installation.token_of(world.client, installation.SCRAPER))
    return text


async def make_keys_due(tenant: Attacker, manager: Replica, world: World, due: list[int]) -> None:
    """Store few objects that make a thousand LeaderWorkerSets each; note each second how many keys wait, until none does."""
    for number in range(2):
        roles = [role(f"r{index}", 0) for index in range(ROLES)]
        whole = disaggregatedset_object(roles, name=f"many-{number}", slices=SLICES)
        metadata = {"name": f"many-{number}", "namespace": tenant.namespace}
        await tenant.client.create(DISAGGREGATED_SETS, whole | {"metadata": metadata})
    while len(due) < SETTLED or any(due[-SETTLED:]):
        await asyncio.sleep(1)
        due.append(counter(await metrics(manager, world), "workqueue_depth").total())


async def use_every_watch(space: Space) -> None:
    """Raise where something is not brought by its watch: a scaler that scales a role of a DisaggregatedSet, to its pods."""
    whole = disaggregatedset_object([role("decode", None, external=True), role("prefill", 1)])
    metadata = {"name": "last", "namespace": space.namespace}
    await space.client.create(DISAGGREGATED_SETS, whole | {"metadata": metadata})

    async def is_available(replicas: int) -> bool:
        found = await space.client.get(DISAGGREGATED_SETS, ObjectKey(space.namespace, "last"))
        roles = {one["name"]: one.get("readyReplicas") for one in meta.status(found).get("roleStatuses") or ()}
        return meta.is_condition_true(found, "Available") and roles.get("decode") == replicas

    async def is_scaled() -> bool:
        scalers = (await space.client.list(ROLE_SCALERS, namespace=space.namespace)).items
        for scaler in scalers:
            patch: JSONObject = {"spec": {"replicas": GROUPS}}
            await space.client.patch(ROLE_SCALERS, meta.key(scaler), patch, kind="merge", subresource="scale")
        return bool(scalers)

    await until(is_scaled, seconds=PATIENCE)
    await until(lambda: is_available(GROUPS), seconds=PATIENCE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=200_000)
    options = parser.parse_args()
    assets = build.assets(lambda text: print(text, file=sys.stderr, flush=True))
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    print(json.dumps(machine()), flush=True)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with control_plane(assets, directory) as plane:

            async def body() -> bool:
                await set_up(KubernetesCluster(plane.kubeconfig))
                async with opened(plane, directory) as world:
                    return await measure(world, options.objects)

            sys.exit(not asyncio.run(body()))


if __name__ == "__main__":
    main()
