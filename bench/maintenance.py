"""A month of maintenance for managers in `bench.scale`: nodes are emptied one after another under groups of four.

A group is whole while its leader and the workers that were first created for it live. The numbers are the seconds in which
not all groups are whole, the sum of these over groups, and how many groups were recreated.
"""

import argparse
import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from bench.phases import Bench
from tests.integration.clusters import objects

from kuberuntime.errors import NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES, PODS, Resource
from leaderworkerset.api import groupname
from leaderworkerset.api.resources import LEADERWORKERSETS

GROUPS: Final = 4
SIZE: Final = 4
STEPS: Final = 8
"""Nodes that are emptied."""
POLL: Final = 0.05
TAINTS: Final = [{"key": "maintenance", "effect": "NoExecute"}]
SURGE: Final = {"maxUnavailable": 0, "maxSurge": 1}


@dataclass
class Wholeness:
    """Counts the whole groups at each poll."""

    first: dict[tuple[str, str], str] = field(default_factory=dict)
    """The UIDs of the first workers, by the UID of their StatefulSet and their name."""
    leaders: set[str] = field(default_factory=set)
    seconds: float = 0.0
    group_seconds: float = 0.0
    since: float = field(default_factory=time.monotonic)

    def observe(self, pods: Sequence[JSONObject]) -> int:
        """Count the groups that are not whole, and add the time since the last poll."""
        for pod in pods:
            owner = meta.controller_of(pod)
            if int(groupname.label(pod)) >= GROUPS:
                continue  # a surge group
            if groupname.is_leader(pod):
                self.leaders.add(meta.uid(pod))
            elif owner is not None:
                self.first.setdefault((owner["uid"], meta.name(pod)), meta.uid(pod))
        broken = GROUPS - sum(self._is_whole(pods, index) for index in range(GROUPS))
        now = time.monotonic()
        self.seconds += (now - self.since) * bool(broken)
        self.group_seconds += (now - self.since) * broken
        self.since = now
        return broken

    def _is_whole(self, pods: Sequence[JSONObject], index: int) -> bool:
        own = [pod for pod in pods if groupname.label(pod) == str(index)]
        known = {*self.leaders, *self.first.values()}
        return len(own) == SIZE and all(
            meta.uid(pod) in known and meta.is_condition_true(pod, "Ready") and not meta.is_deleting(pod) for pod in own
        )


async def month(bench: Bench, _: argparse.Namespace) -> None:
    """Empty nodes by evictions and by taints, and by evictions in the middle of a rollout with surge."""
    for way in ("drained", "tainted", "drained in a rollout"):
        name = way.replace(" ", "-")
        await bench.create(name, GROUPS, SIZE, rollout=SURGE)
        await bench.whole(name, GROUPS)
        async with bench.phase(f"month: nodes {way}", nodes=STEPS) as line:
            line.update(await _empty(bench, name, way))
        await bench.space.scale(name, 0)
        await bench.pods(0)


async def _empty(bench: Bench, name: str, way: str) -> dict[str, float]:
    whole = Wholeness()
    whole.observe(await _pods(bench))
    before = len(whole.leaders)
    for number in range(STEPS):
        if way.endswith("rollout") and number == 2:
            patch = {"spec": {"leaderWorkerTemplate": {"workerTemplate": objects.pod_template("app:2")}}}
            key = ObjectKey(bench.space.namespace, name)
            await bench.space.client.patch(LEADERWORKERSETS, key, patch, kind="merge")
        pods = await _pods(bench)
        node = str(meta.spec(pods[number % len(pods)])["nodeName"])
        change: JSONObject = {"taints": TAINTS} if way == "tainted" else {"unschedulable": True}
        await bench.space.client.patch(NODES, ObjectKey("", node), {"spec": change}, kind="merge")
        lost = [pod for pod in pods if meta.spec(pod).get("nodeName") == node]
        if way != "tainted":
            await asyncio.gather(*(_evict(bench, pod) for pod in lost))
        await _recovered(bench, whole, {meta.uid(pod) for pod in lost})
        opened = {"spec": {"taints": None, "unschedulable": None}}
        await bench.space.client.patch(NODES, ObjectKey("", node), opened, kind="merge")
    recreated = len(whole.leaders) - before
    return {
        "not_whole_seconds": round(whole.seconds, 2),
        "group_seconds": round(whole.group_seconds, 2),
        "recreated": recreated,
    }


async def _recovered(bench: Bench, whole: Wholeness, lost: set[str]) -> None:
    """Wait until the lost pods are gone, and all groups are whole."""
    async with asyncio.timeout(120):
        while True:
            pods = await _pods(bench)
            if not whole.observe(pods) and lost.isdisjoint(map(meta.uid, pods)):
                return
            await asyncio.sleep(POLL)


async def _pods(bench: Bench) -> list[JSONObject]:
    return list((await bench.space.client.list(PODS, namespace=bench.space.namespace)).items)


async def _evict(bench: Bench, pod: JSONObject) -> None:
    key = meta.key(pod)
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": key.name, "namespace": key.namespace},
    }
    try:
        await bench.space.client.create(Resource("", "v1", f"pods/{key.name}/eviction", "Eviction"), eviction)
    except NotFoundError:  # it has ended with its group
        return
