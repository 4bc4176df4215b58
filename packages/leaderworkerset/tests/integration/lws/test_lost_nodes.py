"""Tests the effect of a lost node on groups with a pod on this node (contract 8.2).

There is one LeaderWorkerSet for each restart policy and role, with two groups each. One group has its leader, or its
worker, on the lost node. A third node is free for recreated pods.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Final

import pytest
from testkit.clusters.cluster import deleted_node, wait_for_node
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State
from tests.integration.lws.recreation import assert_notes, created_leaders, replaced

from kuberuntime.objects import meta, ordinals
from kuberuntime.objects.meta import JSONObject

LOST: Final = "node-60"
OTHER: Final = "node-61"
SPARE: Final = "node-62"
NODES: Final = (LOST, OTHER, SPARE)

COLLECTION: Final = 150.0
"""The time until kube-controller-manager detects pods on a deleted node, in seconds.

It waits for 40, and checks every 20.
"""

POLICIES: Final = {"pod-restart": "RecreateGroupOnPodRestart", "after-start": "RecreateGroupAfterStart", "none": "None"}


@dataclass(frozen=True)
class Victim:
    """A LeaderWorkerSet and its pod on the lost node."""

    name: str
    pod: str

    @property
    def is_worker(self) -> bool:
        """Return whether the pod is a worker."""
        return self.name.endswith("worker")

    @property
    def leader(self) -> str:
        """Return the leader of the pod's group."""
        ordinal = ordinals.split(self.pod)
        assert ordinal is not None
        return ordinal.parent if self.is_worker else self.pod

    @property
    def hit(self) -> tuple[str, ...]:
        """Return the recreated pods.

        Under any policy, the workers of a recreated leader are recreated too (R-ARC-4).
        """
        is_alone = self.is_worker and self.name.startswith("none")
        return (self.pod,) if is_alone else (self.leader, f"{self.leader}-1")

    @property
    def notes(self) -> list[str]:
        """Return the recreation event, or None if the leader itself is deleted (R-POD-5 step 4)."""
        if len(self.hit) == 1 or not self.is_worker:
            return []
        index = self.leader.rsplit("-", 1)[1]
        return [f"Worker pod {self.pod} failed, deleted leader pod {self.leader} to recreate group {index}"]


async def test_groups_on_a_deleted_node_are_recreated_once(space: LiveScenario) -> None:
    """The pods are deleted before a kubelet can terminate them (R-POD-3 to R-POD-5, R-POD-9 to R-POD-11)."""
    before, victims = await settle(space)
    async with deleted_node(space.client, LOST):
        for victim in victims:
            await replaced(space, before, *victim.hit, name=victim.name, limit=COLLECTION)
    await assert_recreated_once(space, victims)


@pytest.mark.parametrize("ready", ["False", "Unknown"])
async def test_groups_on_a_hanging_node_wait_for_its_pods(space: LiveScenario, ready: str) -> None:
    """Evicted pods that do not terminate block their replacements until a forced deletion.

    See R-POD-4, R-POD-5, R-POD-9.
    """
    before, victims = await settle(space)
    async with space.cluster.hung_node(space.client, LOST, ready):
        await space.until(lambda state: assert_held(before, state, victims))
        assert created_leaders_of(space, victims) == []
        for victim in victims:
            await space.force(victim.pod)
        for victim in victims:
            await replaced(space, before, *victim.hit, name=victim.name)
    await assert_recreated_once(space, victims)


async def settle(space: LiveScenario) -> tuple[State, list[Victim]]:
    """Create the workloads. After reconciliation, permit scheduling on the spare node.

    Return the state and the affected pods.
    """
    names = [f"{short}-{role}" for short, role in product(POLICIES, ("leader", "worker"))]
    for node in NODES:
        await wait_for_node(space.client, node)
    await space.cordon(SPARE)
    for name in names:
        await space.create(exposed(name))
    for name in names:
        await space.settled(name)
    await space.cordon(SPARE, unschedulable=False)
    state = space.state
    there = {name: [pod for pod, obj in state.of(name).items() if meta.spec(obj)["nodeName"] == LOST] for name in names}
    assert {len(pods) for pods in there.values()} == {1}, there
    space.changes.clear()
    return state, [Victim(name, pods[0]) for name, pods in there.items()]


def exposed(name: str) -> JSONObject:
    """Return a LeaderWorkerSet of two groups of two, whose leaders or workers run on different nodes."""
    short, role = name.rsplit("-", 1)
    templates = {
        "leaderTemplate": template(name, is_exposed=role == "leader"),
        "workerTemplate": template(name, is_exposed=role == "worker"),
    }
    return lws(name, replicas=2, size=2, template=templates | {"restartPolicy": POLICIES[short]})


def template(name: str, *, is_exposed: bool) -> JSONObject:
    """Return a template of pods that either run on different nodes of this test, or avoid these nodes.

    Pods on these nodes tolerate their loss only briefly.
    """
    hostname = "kubernetes.io/hostname"
    place = {"key": hostname, "operator": "In" if is_exposed else "NotIn", "values": [*NODES]}
    nodes = {"nodeSelectorTerms": [{"matchExpressions": [place]}]}
    affinity: JSONObject = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": nodes}}
    if not is_exposed:
        return pod_template(affinity=affinity)
    apart = {"labelSelector": {"matchLabels": {"exposed": name}}, "topologyKey": hostname}
    affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
    lost = [
        {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
        for what in ("not-ready", "unreachable")
    ]
    return {"metadata": {"labels": {"exposed": name}}} | pod_template(affinity=affinity, tolerations=lost)


def assert_held(before: State, state: State, victims: Iterable[Victim]) -> None:
    """Assert that all pods of the node are being deleted, and also each leader that is recreated for a worker.

    The other pods of a group are kept while its leader does not end (R-POD-7), and with the policy None.
    """
    for victim in victims:
        pods = state.of(victim.name)
        assert meta.uid(pods[victim.pod]) == before.uids(victim.name)[victim.pod]
        going = {victim.pod, victim.leader} if victim.notes else {victim.pod}
        assert {pod for pod, obj in pods.items() if meta.is_deleting(obj)} == going, victim
        assert_notes(state, victim.notes, victim.name)


def created_leaders_of(space: LiveScenario, victims: Iterable[Victim]) -> list[str]:
    """Return all created leaders of these LeaderWorkerSets."""
    return [leader for victim in victims for leader in created_leaders(space, victim.name)]


async def assert_recreated_once(space: LiveScenario, victims: Iterable[Victim]) -> None:
    """Assert that each group was recreated once, with an event if the pod controller recreated it."""

    def is_told(state: State) -> None:
        for victim in victims:
            assert_notes(state, victim.notes, victim.name)

    for victim in victims:
        expected = [victim.leader] if victim.leader in victim.hit else []
        assert created_leaders(space, victim.name) == expected, "\n".join(space.story())
    await space.until(is_told)
