"""Defines the work for managers in `bench.scale`, in phases.

Each form receives the bench and the command-line options.
"""

import argparse
import asyncio
import statistics
import time
from typing import Final

import aiohttp
import msgspec
from bench.capacity import capacity
from bench.maintenance import month
from bench.phases import LIMIT, POLL, SETTLE, USUAL_ELECTION, Bench, in_turn
from bench.processes import memory_mib
from bench.record import Line, report
from tests.integration.clusters import objects
from tests.kubernetes.manager.replicas import until

from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import PODS
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.webhooks.handlers import MUTATE_POD

STEADY: Final = 30.0
REVIEWS_PER_SECOND: Final = 300
REVIEWED_SECONDS: Final = 20
SLOW_SECONDS: Final = 20
SLOW_GROUPS: Final = 20
QUARTER: Final = {"maxUnavailable": "25%"}


async def created(bench: Bench, _: argparse.Namespace) -> None:
    """Measure only the first of the rows."""
    async with bench.phase("100 x 4 created"):
        await bench.create("web", 100, 4, rollout=QUARTER)
        await bench.wait_until_complete("web", 100)


async def rows(bench: Bench, options: argparse.Namespace) -> None:
    """Measure the rows of the table in docs/explanation/performance-of-the-manager.md."""
    await created(bench, options)
    async with bench.phase("100 x 4 rolled, 25 %"):
        await roll(bench, 100)
    async with bench.phase("a worker deleted in 20 of 100 groups"):
        await delete_workers(bench, 20, of=100, size=4)
    async with bench.phase("100 x 4 to none"):
        await bench.space.scale(0)
        await bench.pods(0)
    async with bench.phase("100 sets of 1 x 2 created"):
        names = [f"small-{index}" for index in range(100)]
        await in_turn(names, lambda name: bench.create(name, 1, 2))
        for name in names:
            await bench.wait_until_complete(name, 1)


async def roll(bench: Bench, groups: int) -> None:
    """Change the image of the workers, and wait until all groups have it and are ready."""
    patch = {"spec": {"leaderWorkerTemplate": {"workerTemplate": objects.pod_template("app:2")}}}
    await bench.space.client.patch(LEADERWORKERSETS, ObjectKey(bench.space.namespace, "web"), patch, kind="merge")
    await asyncio.sleep(1)  # until then, the status can be outdated
    await bench.wait_until_complete("web", groups)


async def delete_workers(bench: Bench, groups: int, *, of: int, size: int) -> None:
    """Delete one worker in each of `groups` groups. Wait until all pods are replaced and all groups are ready."""
    client, namespace = bench.space.client, bench.space.namespace
    old = {f"web-{group}-1" for group in range(groups)}
    uids = {meta.uid(pod) for pod in (await client.list(PODS, namespace=namespace)).items if meta.name(pod) in old}
    for name in sorted(old):
        await client.delete(PODS, ObjectKey(namespace, name))

    async def are_replaced() -> bool:
        pods = (await client.list(PODS, namespace=namespace)).items
        return len(pods) == of * size and not uids & {meta.uid(pod) for pod in pods}

    await until(are_replaced, *bench.world.replicas, seconds=LIMIT, poll=POLL)
    await bench.wait_until_complete("web", of)


async def groups(bench: Bench, options: argparse.Namespace) -> None:
    """Measure one large LeaderWorkerSet with groups of two, and scaling cycles."""
    count = options.groups
    facts = {"groups": count, "pods": 2 * count}
    async with bench.phase("groups: created", **facts) as line:
        start = time.monotonic()
        await bench.create("web", count, 2, rollout=QUARTER)
        await bench.pods(2 * count)
        line["created_seconds"] = round(time.monotonic() - start, 2)
        await bench.wait_until_complete("web", count)
    async with bench.phase("groups: at rest", **facts):
        await asyncio.sleep(STEADY)
    async with bench.phase("groups: rolled, 25 %", **facts):
        await roll(bench, count)
    async with bench.phase("groups: a worker deleted in a fifth", **facts):
        await delete_workers(bench, count // 5, of=count, size=2)
    async with bench.phase("groups: to none", **facts):
        await bench.space.scale(0)
        await bench.pods(0)
    await bench.space.scale(count // 2)
    await bench.wait_until_complete("web", count // 2)
    for cycle in range(options.cycles):
        for phase, replicas in (("grows", count), ("shrinks", count // 2)):
            async with bench.phase(f"groups: {phase}", cycle=cycle, **facts):
                await bench.space.scale(replicas)
                await bench.pods(2 * replicas)
                await bench.wait_until_complete("web", replicas)
    async with bench.phase("groups: deleted", **facts):
        await bench.space.client.delete(LEADERWORKERSETS, ObjectKey(bench.space.namespace, "web"))
        await bench.pods(0)


async def arrivals(bench: Bench, options: argparse.Namespace) -> None:
    """Create sets at a rate, and measure the time of each from creation to Ready, with a precision of 0.2 s."""
    count, replicas = options.sets, options.pods // 2
    starts: dict[str, float] = {}
    took: dict[str, float] = {}
    facts = {"sets": count, "pods_each": 2 * replicas, "arrivals_per_second": options.rate}
    async with bench.phase("arrivals: all ready", **facts) as line:
        follower = asyncio.create_task(follow(bench, replicas, count, starts, took))
        start = time.monotonic()
        for index in range(count):
            await asyncio.sleep(max(0.0, start + index / options.rate - time.monotonic()))
            starts[f"web-{index}"] = time.monotonic()
            await bench.create(f"web-{index}", replicas, 2)
        await follower
        shares = statistics.quantiles(took.values(), n=100, method="inclusive")
        line |= {f"p{share}_seconds": round(shares[share - 1], 2) for share in (50, 90, 99)}


async def follow(bench: Bench, replicas: int, count: int, starts: dict[str, float], took: dict[str, float]) -> None:
    """Record the time at which each set becomes ready, until all are ready."""

    async def all_are() -> bool:
        for lws in (await bench.space.client.list(LEADERWORKERSETS, namespace=bench.space.namespace)).items:
            name = meta.name(lws)
            if name not in took and meta.status(lws).get("readyReplicas") == replicas:
                took[name] = time.monotonic() - starts[name]
        return len(took) == count

    await until(all_are, *bench.world.replicas, seconds=LIMIT, poll=POLL)


async def many(bench: Bench, options: argparse.Namespace) -> None:
    """Create many sets of five pods in two steps. The memory between them is the cost of additional sets."""
    before = 0
    memory: dict[int, float] = {}
    for count in (options.many // 10, options.many):
        async with bench.phase("many: all ready", sets=count, pods=5 * count) as line:
            names = [f"web-{index}" for index in range(before, count)]
            await in_turn(names, lambda name: bench.create(name, 1, 5))
            for name in names:
                await bench.wait_until_complete(name, 1)
            await asyncio.sleep(SETTLE)
            memory[count] = line["mebibytes"] = memory_mib(bench.process)
            if before:
                line["kibibytes_per_set"] = round(1024 * (memory[count] - memory[before]) / (count - before), 1)
        before = count


async def slow(bench: Bench, _: argparse.Namespace) -> None:
    """Roll out a set with slowly starting pods, five of its groups at a time, in four waves."""
    template = objects.slow_template(SLOW_SECONDS)
    waves = {"waves": 4, "pod_seconds": SLOW_SECONDS, "groups": SLOW_GROUPS}
    await bench.create("web", SLOW_GROUPS, 2, rollout=QUARTER, template={"workerTemplate": template})
    await bench.wait_until_complete("web", SLOW_GROUPS)
    (container,) = template["spec"]["containers"]
    rolled = template | {"spec": template["spec"] | {"containers": [container | {"image": "app:2"}]}}
    patch = {"spec": {"leaderWorkerTemplate": {"workerTemplate": rolled}}}
    async with bench.phase("slow pods rolled, 25 %", **waves) as line:
        start = time.monotonic()
        await bench.space.client.patch(LEADERWORKERSETS, ObjectKey(bench.space.namespace, "web"), patch, kind="merge")
        await asyncio.sleep(1)
        await bench.wait_until_complete("web", SLOW_GROUPS)
        line["share_of_waves"] = round((time.monotonic() - start) / (4 * SLOW_SECONDS), 3)


async def reviews(bench: Bench, _: argparse.Namespace) -> None:
    """Send requests to the pod webhook at a constant rate, as an API server does."""
    await bench.create("web", 1, 2)
    await bench.wait_until_complete("web", 1)
    leader = await bench.space.client.get(PODS, ObjectKey(bench.space.namespace, "web-0"))
    request = {"uid": "bench", "operation": "CREATE", "namespace": bench.space.namespace, "object": leader}
    body = msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    url = f"https://127.0.0.1:{bench.webhooks}{MUTATE_POD}"
    took: list[float] = []
    async with (
        bench.phase("reviews of pods", per_second=REVIEWS_PER_SECOND) as line,
        aiohttp.ClientSession() as session,
    ):
        start = time.monotonic()

        async def ask(index: int) -> None:
            await asyncio.sleep(max(0.0, start + index / REVIEWS_PER_SECOND - time.monotonic()))
            begun = time.monotonic()
            async with session.post(
                url, data=body, ssl=False, headers={"content-type": "application/json"}
            ) as response:
                verdict = msgspec.json.decode(await response.read())
            assert verdict["response"]["allowed"], verdict
            took.append(1000 * (time.monotonic() - begun))

        async with asyncio.TaskGroup() as group:
            for index in range(REVIEWS_PER_SECOND * REVIEWED_SECONDS):
                group.create_task(ask(index))
        shares = statistics.quantiles(took, n=100, method="inclusive")
        line |= {f"p{share}_milliseconds": round(shares[share - 1], 2) for share in (50, 99)}


async def start(bench: Bench, _: argparse.Namespace) -> None:
    """Start a second manager with 100 sets. It takes over from the first manager, which is stopped."""
    if bench.manager == "go":
        return  # one process without a lease
    names = [f"web-{index}" for index in range(100)]
    await in_turn(names, lambda name: bench.create(name, 1, 2))
    for name in names:
        await bench.wait_until_complete(name, 1)
    (first,) = bench.world.replicas
    line: Line = {"measurement": "a second manager next to 100 sets", "server": bench.manager, "run": bench.run}
    start = time.monotonic()
    second = await bench.world.start(f"{first.name}-second", leaderElection=USUAL_ELECTION)
    line["ready_seconds"] = round(time.monotonic() - start, 2)
    start = time.monotonic()
    line["first_ended_seconds"] = round(await first.stop(), 2)
    await bench.create("late", 1, 2)
    await bench.wait_until_complete("late", 1)
    line["new_set_whole_seconds"] = round(time.monotonic() - start, 2)
    bench.process = second.process.pid
    report(**line)
    bench.lines.append(line)


FORMS: Final = {
    "created": created, "rows": rows, "groups": groups, "arrivals": arrivals, "many": many, "slow": slow, "reviews": reviews, "start": start,
    "month": month, "capacity": capacity,
}  # fmt: skip
