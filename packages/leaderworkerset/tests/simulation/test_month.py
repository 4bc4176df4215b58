"""Simulates a month of maintenance, in which nodes are disrupted and their groups are recreated.

A group is whole while its leader and the workers that were first made for it are ready. The tests measure how long not
all groups are whole, and the sum over groups. A disturbed group needs the time in which its pods end twice: workers end
after their leader. The slack is for the requests.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

import pytest
from tests.fuzz.seeds import first_tier
from tests.simulation.cluster import Settings, SimulatedCluster, simulate
from tests.simulation.workloads import SLOW, groups, template

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, EVENTS, NODES, PODS
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from localkube.apiserver.storage.store import Change
from localkube.controllers.nodes.nodes import NodeSettings
from localkube.kubelet.processes.simulatedrunner import Program

GROUPS: Final = 4
SIZE: Final = 4
NODE_COUNT: Final = 8
TERM: Final = 1.0
"""The time in seconds in which a pod terminates."""
SLACK: Final = 0.6
ABSENCE: Final = 2.0
"""The time in seconds between the crash of a manager and the start of the next one."""
MANAGER: Final = "manager-0"


@dataclass
class Whole:
    """Counts the complete groups, and measures how long groups are incomplete."""

    world: SimulatedCluster
    pods: dict[str, JSONObject] = field(default_factory=dict)
    first: dict[tuple[str, str], str] = field(default_factory=dict)
    """The UIDs of the first workers, by StatefulSet UID and pod name."""
    leaders: set[str] = field(default_factory=set)
    """The UIDs of all leaders of the measured groups."""
    missing: int = 0
    since: float = 0.0
    seconds: float = 0.0
    group_seconds: float = 0.0

    def begin(self) -> None:
        """Start the measurement."""
        self.seconds = self.group_seconds = 0.0
        self.since = self.world.clock.monotonic()
        self.leaders = {meta.uid(pod) for pod in self.pods.values() if groupname.is_leader(pod)}

    def changed(self, change: Change) -> None:
        """Add the time since the last change, and recount the groups."""
        pod, now = change.object, self.world.clock.monotonic()
        self.seconds += (now - self.since) * bool(self.missing)
        self.group_seconds += (now - self.since) * self.missing
        self.since = now
        if change.type == "DELETED":
            self.pods.pop(meta.uid(pod), None)
        else:
            self.pods[meta.uid(pod)] = pod
            owner = meta.controller_of(pod)
            if groupname.is_leader(pod):
                if int(groupname.group_label(pod)) < GROUPS:
                    self.leaders.add(meta.uid(pod))
            elif owner is not None:
                self.first.setdefault((owner["uid"], meta.name(pod)), meta.uid(pod))
        self.missing = GROUPS - sum(self.is_whole(index) for index in range(GROUPS))

    def is_whole(self, index: int) -> bool:
        """Return whether the leader and all first workers of a group are ready."""
        own = [pod for pod in self.pods.values() if groupname.group_label(pod) == str(index)]
        first = [pod for pod in own if groupname.is_leader(pod) or meta.uid(pod) in self.first.values()]
        return len(own) == len(first) == SIZE and all(
            meta.is_condition_true(pod, "Ready") and not meta.is_deleting(pod) for pod in own
        )


async def taint(world: SimulatedCluster, node: str) -> None:
    """Evict the pods of a node with a taint."""
    before = {meta.uid(pod) for pod in await world.pods_on(node)}
    change = {"spec": {"taints": [{"key": "maintenance", "effect": "NoExecute"}]}}
    await world.client.patch(NODES, ObjectKey("", node), change, kind="merge")
    await world.until_objects(PODS, lambda pods: all(meta.is_deleting(pod) for pod in pods if meta.uid(pod) in before))


async def preempt(world: SimulatedCluster, node: str) -> None:
    """Delete the pods of a node as the scheduler does when it preempts them."""
    await _delete_explained(world, node, "PreemptionByScheduler", grace_period=None)


async def lose(world: SimulatedCluster, node: str) -> None:
    """Delete the pods of a node without a grace period, as the pod garbage collector does for a deleted node."""
    await _delete_explained(world, node, "DeletionByPodGC", grace_period=0)


async def take_out_of_service(world: SimulatedCluster, node: str) -> None:
    """Prevent the termination of a node's pods during the eviction.

    Force their deletion later, as the out-of-service taint does.
    """
    pods = await world.pods_on(node)
    world.runner.hung |= {meta.uid(pod) for pod in pods}
    await taint(world, node)
    await asyncio.sleep(TERM)
    assert {meta.uid(pod) for pod in pods} <= {meta.uid(pod) for pod in await world.pods_on(node)}
    for pod in pods:
        await world.client.delete(PODS, meta.key(pod), uid=meta.uid(pod), grace_period=0)


async def _delete_explained(world: SimulatedCluster, node: str, reason: str, grace_period: int | None) -> None:
    await world.cordon(node)
    target = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    for pod in await world.pods_on(node):
        change = {"status": {"conditions": [*meta.status(pod)["conditions"], target]}}
        await world.client.patch(PODS, meta.key(pod), change, kind="merge", subresource="status")
        await world.client.delete(PODS, meta.key(pod), grace_period=grace_period)


async def reopen(world: SimulatedCluster, node: str) -> None:
    """Uncordon a node."""
    change = {"spec": {"unschedulable": False, "taints": None}}
    await world.client.patch(NODES, ObjectKey("", node), change, kind="merge")


Step = Callable[[SimulatedCluster, str], Awaitable[None]]


async def complete(world: SimulatedCluster, whole: Whole) -> None:
    """Wait until all groups are complete, and the status reports it."""

    def is_complete(found: list[JSONObject]) -> bool:
        return meta.is_condition_true(found[0], "Available")

    await world.until_objects(PODS, lambda _: not whole.missing)
    await world.until_objects(LEADERWORKERSETS, is_complete)


async def replace_manager(world: SimulatedCluster) -> None:
    """Kill the manager, and restart it later."""
    await world.kill_manager(MANAGER)
    await asyncio.sleep(ABSENCE)
    world.start_manager(MANAGER, SLOW)


async def roll(world: SimulatedCluster) -> None:
    """Change the image, with a surge of one group."""
    rolling = {"partition": 0, "maxUnavailable": 0, "maxSurge": 1}
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling}
    await world.edit(rolloutStrategy=strategy, leaderWorkerTemplate={"workerTemplate": template("app:2")})


async def month(
    world: SimulatedCluster, step: Step, *, kills: int = 0, scales: bool = False, rolls: bool = False
) -> tuple[Whole, int]:
    """Disrupt all nodes one after another. Return the measured times and the number of recreations."""
    whole = Whole(world)
    world.observe(PODS, whole.changed)
    lws = groups(replicas=GROUPS, size=SIZE)
    await world.create(lws)
    await complete(world, whole)
    whole.begin()
    for number in range(NODE_COUNT):
        node = f"node-{number}"
        await step(world, node)
        if number in (2, 5)[:kills]:
            await replace_manager(world)
        if rolls and number == 3:
            await roll(world)
        if scales:
            await world.edit(replicas=GROUPS + 1 + number % 2)
        await complete(world, whole)
        await reopen(world, node)
    await assert_uncounted(world)
    return whole, len(whole.leaders) - GROUPS


async def assert_uncounted(world: SimulatedCluster) -> None:
    """Assert that no recreation was counted as a failure or delayed."""
    counts = {meta.annotations(record).get(labels.RECREATIONS) for record in await world.objects(CONTROLLER_REVISIONS)}
    assert counts <= {None, "0"}
    assert not [event for event in await world.objects(EVENTS) if "BackOff" in event.get("reason", "")]


def play(step: Step, *, kills: int = 0, scales: bool = False, rolls: bool = False, start: float = 0.0) -> None:
    """Simulate a month, and compare its times with the duration of the recreations.

    A process needs `start` seconds to start.

    The rollout recreates each group once more, one after the other.
    """

    async def scenario(world: SimulatedCluster) -> None:
        whole, recreated = await month(world, step, kills=kills, scales=scales, rolls=rolls)
        assert recreated >= NODE_COUNT
        per_group = 2 * TERM + start + SLACK
        assert whole.group_seconds <= recreated * per_group + 2 * kills * ABSENCE
        assert whole.seconds <= (NODE_COUNT + rolls * GROUPS) * per_group + kills * ABSENCE

    simulate(
        scenario,
        Settings(
            managers=(SLOW,),
            others=SLOW,
            nodes=NodeSettings(count=NODE_COUNT),
            script=lambda _: Program(term=TERM, start_delay=start),
        ),
    )


@pytest.mark.parametrize("step", first_tier([SimulatedCluster.drain, taint, preempt, lose, take_out_of_service]))
def test_disturbed_groups_are_recreated_at_once(step: Step) -> None:
    play(step)


@pytest.mark.long
def test_month_with_two_deaths_of_the_manager() -> None:
    """Timestamps have a resolution of one second, so the order of faster starts is not visible (ADR 14)."""
    play(SimulatedCluster.drain, kills=2, start=1.0)


@pytest.mark.long
def test_month_with_an_autoscaler() -> None:
    play(SimulatedCluster.drain, scales=True)


@pytest.mark.long
@pytest.mark.parametrize("step", [SimulatedCluster.drain, taint])
def test_month_with_a_rollout_with_surge(step: Step) -> None:
    play(step, rolls=True)
