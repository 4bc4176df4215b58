"""Pauses a leader until another replica leads, resumes it, and counts its late writes.

The API server's audit log decides. Each replica has a user agent of its own; a write is late that the API server
received from a replica after another one took the lease from it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from tests.controlplane.audit import WRITES, described
from tests.kubernetes.manager.groups import CheckedNamespace
from tests.kubernetes.manager.replicas import Replica, until
from tests.kubernetes.manager.world import RENEWAL, InstalledCluster

from kuberuntime.errors import ConnectionFailedError, KubeError

NAMES: Final = ("aaaaaaa", "bbbbbbb")
"""The commits that the two replicas report, which identify them in the audit log."""

SETS: Final = 4
MOST_GROUPS: Final = 6
PAUSE: Final = 0.2
SETTLED: Final = 0.5
"""The time in seconds after which a resumed replica has sent all its pending requests."""


@dataclass(frozen=True)
class Counts:
    """The number of successful writes in the audit log, and the number of late writes among them."""

    writes: int
    late: tuple[str, ...]


async def rounds(world: InstalledCluster, *, count: int, client: dict[str, Any]) -> Counts:
    """Pause the leader `count` times. `client` is the `clientConnection` section of its configuration."""
    mark = world.audit.mark()
    replicas = [await _start(world, name, client) for name in NAMES]
    space = await CheckedNamespace(world.client, f"fencing-{client.get('qps', 'usual')}").open()
    async with _load(space):
        for _ in range(count):
            await _round(world, replicas)
    return judge(world.audit.events(mark))


def judge(events: Iterable[dict[str, Any]]) -> Counts:
    """Count the writes, and list writes that a replica sent after the other replica acquired the lease."""
    holder, taken, writes, late = "", "", 0, list[str]()
    for event in sorted(events, key=lambda event: str(event["requestReceivedTimestamp"])):
        name = event["userAgent"].rpartition(" ")[2]
        if name not in NAMES or event["verb"] not in WRITES or event["responseStatus"]["code"] >= 300:
            continue
        if described(event) in {RENEWAL, "create leases"}:
            if name != holder:
                holder, taken = name, event["stageTimestamp"]
        elif event["objectRef"].get("apiGroup") not in {"authentication.k8s.io", "authorization.k8s.io"}:
            writes += 1
            if holder not in {"", name} and event["requestReceivedTimestamp"] > taken:
                late.append(f"{described(event)} by {name} at {event['requestReceivedTimestamp']}, taken {taken}")
    return Counts(writes, tuple(late))


async def _start(world: InstalledCluster, name: str, client: dict[str, Any]) -> Replica:
    replica = await world.prepare(name, clientConnection=client)
    replica.environment["LWS_GIT_COMMIT"] = name
    replica.start()
    world.balancer.backends.append(replica.webhooks)
    await replica.await_ready()
    return replica


async def _round(world: InstalledCluster, replicas: list[Replica]) -> None:
    """Pause the leader, wait until another replica leads, and resume the first leader."""
    before, leader = await _leader(world, replicas)
    world.balancer.backends.remove(leader.webhooks)
    leader.freeze()
    try:

        async def changed() -> bool:
            return await world.holder() not in {before, ""}

        await until(changed, *replicas)
    finally:
        leader.thaw()
    await asyncio.sleep(SETTLED)
    world.balancer.backends.append(leader.webhooks)


async def _leader(world: InstalledCluster, replicas: list[Replica]) -> tuple[str, Replica]:
    """Wait until a replica leads. Return the lease holder, and its replica according to the log."""

    async def find() -> tuple[str, Replica] | None:
        holder = await world.holder()
        return next(((holder, one) for one in replicas if holder and holder in one.log.read_text()), None)

    found = await until(find, *replicas)
    assert found is not None
    return found


@asynccontextmanager
async def _load(space: CheckedNamespace) -> AsyncIterator[None]:
    """Continuously scale LeaderWorkerSets up and down to keep the controllers busy."""
    for index in range(SETS):
        await _despite_outages(space.create_groups(f"web-{index}", replicas=1, size=2))

    async def scale() -> None:
        step = 0
        while True:
            step += 1
            for index in range(SETS):
                await _despite_outages(space.scale(1 + step % MOST_GROUPS, f"web-{index}"))
            await asyncio.sleep(PAUSE)

    task = asyncio.create_task(scale())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _despite_outages(request: Any) -> None:
    """Send a request that webhooks may reject while one replica is paused and the other is not yet used."""
    try:
        await request
    except (KubeError, ConnectionFailedError):
        return
