"""Simulates a month of maintenance for managers in `bench.scale`. Nodes are emptied one after the other.

Pods need a second to end. A group is whole while its leader and the workers that were first created for it live. The numbers are the seconds in which
not all groups are whole, the sum of these over groups, and how many groups were recreated.
"""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from bench.phases import Bench
from testkit.clusters.kubernetes import HUNG
from tests.integration.clusters import objects

from kuberuntime.errors import ConflictError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES, PODS, Resource
from leaderworkerset.api import groupname
from leaderworkerset.api.resources import LEADERWORKERSETS


def _template(image: str = "app:1") -> JSONObject:
    """Return a template of pods that need one second to terminate."""
    return {"metadata": {"annotations": {objects.END_DELAY_ANNOTATION: "1s"}}} | objects.pod_template(image)


GROUPS: Final = 4
SIZE: Final = 4
STEPS: Final = 8
"""The number of nodes that are emptied."""
DISTURBED: Final = 2
"""The number of groups with pods on an emptied node, so that all managers have the same work."""
POLL: Final = 0.05
RECOVERY: Final = 30.0
"""The time in seconds after which an incomplete group is considered stuck."""
NODE_LOST: Final = 1.0
"""The time in seconds from the deletion of the pods on a lost node until they are force-deleted."""
ABSENCE: Final = 2.0
"""The time in seconds between the kill of a manager and the start of the next manager."""
TEMPLATES: Final = {"leaderTemplate": _template(), "workerTemplate": _template()}
TAINTS: Final = [{"key": "maintenance", "effect": "NoExecute"}]
Way: TypeAlias = Callable[[Bench, str, Sequence[JSONObject]], Awaitable[None]]
"""A function that empties a node with these pods."""
SURGE: Final = {"maxUnavailable": 0, "maxSurge": 1}


@dataclass
class Wholeness:
    """Counts the complete groups at each poll."""

    first: dict[tuple[str, str], str] = field(default_factory=dict)
    """The UIDs of the first workers, by StatefulSet UID and pod name."""
    leaders: set[str] = field(default_factory=set)
    seconds: float = 0.0
    group_seconds: float = 0.0
    since: float = field(default_factory=time.monotonic)

    def observe(self, pods: Sequence[JSONObject]) -> int:
        """Count the incomplete groups, and add the time since the last poll."""
        for pod in pods:
            owner = meta.controller_of(pod)
            if int(groupname.group_label(pod)) >= GROUPS:
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

    def accept(self, pods: Sequence[JSONObject]) -> None:
        """Use the current workers as the first workers, because a stuck group never becomes complete."""
        self.first.clear()
        self.observe(pods)

    def _is_whole(self, pods: Sequence[JSONObject], index: int) -> bool:
        own = [pod for pod in pods if groupname.group_label(pod) == str(index)]
        known = {*self.leaders, *self.first.values()}
        return len(own) == SIZE and all(
            meta.uid(pod) in known and meta.is_condition_true(pod, "Ready") and not meta.is_deleting(pod) for pod in own
        )


@dataclass(frozen=True)
class Scenario:
    """A method of emptying nodes, and concurrent events: a rollout, an autoscaler, and manager kills."""

    way: Way
    rolls: bool = False
    scales: bool = False
    steps: int = STEPS
    kills: frozenset[int] = frozenset()
    """The steps in which the manager is killed. Another manager starts after `ABSENCE`."""


async def month(bench: Bench, options: argparse.Namespace) -> None:
    """Run the selected scenarios, one after another."""
    for title, scenario in SCENARIOS.items():
        if options.scenarios and title not in options.scenarios:
            continue
        name = title.translate(str.maketrans("", "", ",")).replace(" ", "-")
        await bench.create(name, GROUPS, SIZE, rollout=SURGE, template=TEMPLATES)
        await bench.wait_until_complete(name, GROUPS)
        async with bench.phase(f"month: {title}", nodes=scenario.steps) as line:
            line.update(await _play(bench, name, scenario))
        await bench.space.client.delete(LEADERWORKERSETS, ObjectKey(bench.space.namespace, name))
        await bench.pods(0)


async def _play(bench: Bench, name: str, scenario: Scenario) -> dict[str, float]:
    completeness, key = Wholeness(), ObjectKey(bench.space.namespace, name)
    completeness.observe(await _pods(bench))
    before, disturbed, stuck = len(completeness.leaders), 0, 0
    for number in range(scenario.steps):
        if scenario.rolls and number == 2:
            patch = {"spec": {"leaderWorkerTemplate": {"workerTemplate": _template("app:2")}}}
            await bench.space.client.patch(LEADERWORKERSETS, key, patch, kind="merge")
        pods = await _pods(bench)
        node, lost = _choose(pods)
        lost = lost[:1] if scenario.way is _delete else lost
        completeness.observe(pods)
        disturbed += len(_measured(lost))
        await scenario.way(bench, node, lost)
        if number in scenario.kills:
            await bench.restart(ABSENCE)
        if scenario.scales:
            await bench.space.scale(GROUPS + 1 + number % 2, name)
        try:
            await _recovered(bench, completeness, {meta.uid(pod) for pod in lost})
        except TimeoutError:  # a group whose worker was replaced separately never becomes complete
            stuck += 1
            completeness.accept(await _pods(bench))
        opened = {"spec": {"taints": None, "unschedulable": None}}
        await bench.space.client.patch(NODES, ObjectKey("", node), opened, kind="merge")
    recreated = len(completeness.leaders) - before
    return {
        "not_whole_seconds": round(completeness.seconds, 2),
        "group_seconds": round(completeness.group_seconds, 2),
        "disturbed": disturbed,
        "recreated": recreated,
        "stuck": stuck,
    }


def _choose(pods: Sequence[JSONObject]) -> tuple[str, Sequence[JSONObject]]:
    """Return a node with pods of `DISTURBED` measured groups, or of nearly as many, and all its pods."""
    nodes: dict[str, list[JSONObject]] = {}
    for pod in pods:
        if node := meta.spec(pod).get("nodeName"):
            nodes.setdefault(node, []).append(pod)
    return min(nodes.items(), key=lambda item: (abs(len(_measured(item[1])) - DISTURBED), item[0]))


def _measured(pods: Sequence[JSONObject]) -> set[str]:
    """Return the indexes of the groups of these pods, without surge groups and groups of an autoscaler."""
    return {label for label in map(groupname.group_label, pods) if int(label) < GROUPS}


async def _drain(bench: Bench, node: str, pods: Sequence[JSONObject]) -> None:
    await _change_node(bench, node, {"unschedulable": True})
    await asyncio.gather(*(_evict(bench, pod) for pod in pods))


async def _taint(bench: Bench, node: str, _: Sequence[JSONObject]) -> None:
    await _change_node(bench, node, {"taints": TAINTS})


async def _preempt(bench: Bench, node: str, pods: Sequence[JSONObject]) -> None:
    """Delete the pods as the scheduler does for pods with a higher priority."""
    await _delete_explained(bench, node, pods, "PreemptionByScheduler")


async def _lose(bench: Bench, node: str, pods: Sequence[JSONObject]) -> None:
    """Delete the pods as for an unreachable node, and later force-delete them as for an out-of-service node."""
    for pod in pods:  # no kubelet terminates them
        hung: JSONObject = {"metadata": {"annotations": {HUNG: "true"}}}
        await bench.space.client.patch(PODS, meta.key(pod), hung, kind="merge")
    await _delete_explained(bench, node, pods, "DeletionByTaintManager")
    await asyncio.sleep(NODE_LOST)
    for pod in pods:
        with suppress(NotFoundError, ConflictError):  # its group was deleted, and can have a successor
            await bench.space.client.delete(PODS, meta.key(pod), grace_period=0, uid=meta.uid(pod))


async def _delete(bench: Bench, _: str, pods: Sequence[JSONObject]) -> None:
    """Delete pods manually."""
    for pod in pods:
        await bench.space.client.delete(PODS, meta.key(pod))


async def _delete_explained(
    bench: Bench, node: str, pods: Sequence[JSONObject], reason: str, grace_period: int | None = None
) -> None:
    await _change_node(bench, node, {"unschedulable": True})
    target = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    for pod in pods:
        with suppress(NotFoundError):  # it was deleted with its group
            change: JSONObject = {"status": {"conditions": [*meta.status(pod)["conditions"], target]}}
            await bench.space.client.patch(PODS, meta.key(pod), change, kind="merge", subresource="status")
            await bench.space.client.delete(PODS, meta.key(pod), grace_period=grace_period)


async def _change_node(bench: Bench, node: str, spec: JSONObject) -> None:
    await bench.space.client.patch(NODES, ObjectKey("", node), {"spec": spec}, kind="merge")


async def _recovered(bench: Bench, completeness: Wholeness, lost: set[str]) -> None:
    """Wait until the lost pods are deleted, and all groups are complete."""
    async with asyncio.timeout(RECOVERY):
        while True:
            pods = await _pods(bench)
            if not completeness.observe(pods) and lost.isdisjoint(map(meta.uid, pods)):
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
    with suppress(NotFoundError):  # it was deleted with its group
        await bench.space.client.create(Resource("", "v1", f"pods/{key.name}/eviction", "Eviction"), eviction)


SCENARIOS: Final = {
    "nodes drained": Scenario(_drain),
    "nodes tainted": Scenario(_taint),
    "pods preempted": Scenario(_preempt),
    "nodes lost": Scenario(_lose),
    "pods deleted by hand": Scenario(_delete, steps=4),
    "nodes drained in a rollout with surge": Scenario(_drain, rolls=True),
    "nodes tainted in a rollout with surge": Scenario(_taint, rolls=True),
    "nodes drained, with an autoscaler": Scenario(_drain, scales=True),
    "nodes drained, the manager killed twice": Scenario(_drain, kills=frozenset({2, 5})),
}
