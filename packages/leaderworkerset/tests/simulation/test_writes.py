"""Tests that the manager writes few statuses and events for many groups, and the last status in time."""

from collections import Counter
from typing import Final

import msgspec
import pytest
from bench import writes
from tests import builders
from tests.simulation.cluster import NAMESPACE, Settings, SimulatedCluster, simulated
from tests.simulation.faults import Schedule
from tests.simulation.workloads import SLOW, groups

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import EVENTS, PODS, STATEFULSETS
from leaderworkerset.api.conditions import AVAILABLE
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.controllers.leaderworkerset import STATUS_DELAY
from localkube.apiserver.storage.store import Change

GROUPS: Final = 20
SETS: Final = 20
TRAVEL: Final = 0.3
"""The time in seconds until the manager observes a change and writes, including intermediate writes."""


@simulated(Settings(managers=(SLOW,), others=SLOW))
async def test_many_groups_need_few_statuses_and_events(world: SimulatedCluster) -> None:
    moved: dict[str, float] = {}

    def leader_changed(change: Change) -> None:
        if meta.name(change.object).count("-") == 1:
            moved["pods"] = world.clock.monotonic()

    def set_changed(_: Change) -> None:
        moved["status"] = world.clock.monotonic()

    world.observe(PODS, leader_changed)
    world.observe(LEADERWORKERSETS, set_changed)
    assert meta.status(await world.bring_up(groups(replicas=GROUPS, size=2)))["readyReplicas"] == GROUPS
    created = [one for one in world.trace.of("manager-0") if one.object.endswith("/status")]
    assert len(created) <= 4
    notes = [event["note"] for event in await world.objects(EVENTS) if "worker statefulset" in event.get("note", "")]
    assert len(notes) <= 3
    await world.edit(replicas=1)
    status = meta.status(await world.ready())
    assert (status["replicas"], status["readyReplicas"], status["updatedReplicas"]) == (1, 1, 1)
    assert moved["status"] <= moved["pods"] + STATUS_DELAY + TRAVEL
    assert len([one for one in world.trace.of("manager-0") if one.object.endswith("/status")]) <= len(created) + 4


@pytest.mark.parametrize("latency", [(0.001, 0.02), (0.02, 0.05)])
def test_small_set_needs_two_statuses_until_available(latency: tuple[float, float]) -> None:
    """The first status contains the generation, the second one the ready group.

    The counts in between are not written.
    """

    @simulated(Settings(managers=(SLOW,), others=Schedule(latency=latency)))
    async def create_many(world: SimulatedCluster) -> None:
        for number in range(SETS):
            obj = groups(replicas=1, size=2)
            await world.create(obj | {"metadata": obj["metadata"] | {"name": f"web{number}"}})
        await world.at_rest()
        sets = await world.objects(LEADERWORKERSETS)
        assert all(meta.is_condition_true(one, AVAILABLE.type) for one in sets)
        written = Counter(one.object for one in world.trace.of("manager-0") if one.object.endswith("/status"))
        assert written == dict.fromkeys(written, 2)
        assert len(written) == len(sets) == SETS

    create_many()


@pytest.mark.long
def test_write_counts_stay_below_those_of_the_last_release() -> None:
    """The recorded numbers of writes, which are the same on every machine.

    `python -m bench.writes --renew` updates them.
    """
    baseline = msgspec.json.decode(writes.BASELINE.read_bytes(), type=writes.Baseline)
    found = writes.gate()
    assert found.keys() == baseline.phases.keys()
    assert writes.excess(found, baseline) == []


def test_excessive_write_count_is_reported() -> None:
    baseline = writes.Baseline(version="0.1.0", phases={"created": {"status": 3, "calls": 1000}})
    assert writes.excess({"created": {"status": 5, "calls": 1100}}, baseline) == []
    assert writes.excess({"created": {"status": 6, "calls": 1101, "pods": 3}}, baseline) == [
        "created: 1101 calls, but 1000 in 0.1.0",
        "created: 3 pods, but 0 in 0.1.0",
        "created: 6 status, but 3 in 0.1.0",
    ]


def _rich() -> JSONObject:
    """Return a pod template with values that the API server sets by default, and lists that it merges by key."""
    container = {
        "name": "main",
        "image": "app:1",
        "command": ["sleep", "infinity"],
        "ports": [{"containerPort": 8080}, {"containerPort": 8080, "protocol": "UDP", "name": "udp"}],
        "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}, {"name": "EMPTY"}],
        "resources": {"requests": {"cpu": "0.1", "memory": "64Mi"}},
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    }
    return {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [container], "volumes": [{"name": "scratch"}]}}


SHAPES: Final[dict[str, JSONObject]] = {
    "plain": groups(replicas=2, size=2),
    "rich": builders.leaderworkerset_object(
        replicas=2, size=2, template={"leaderTemplate": _rich(), "workerTemplate": _rich()}
    ),
    "own names": groups(replicas=2, size=2, networkConfig={"subdomainPolicy": "UniquePerReplica"}),
    "surge": groups(replicas=2, size=2, rolloutStrategy={"rollingUpdateConfiguration": {"maxSurge": "50%"}}),
    "random keys": groups(replicas=2, size=2, groupIdentity="Hash"),
}


@pytest.mark.parametrize("shape", SHAPES)
@simulated(Settings(managers=(SLOW,), others=SLOW))
async def test_new_leader_writes_nothing_when_nothing_differs(world: SimulatedCluster, shape: str) -> None:
    """A new leader compares the leader StatefulSet, and only applies it if it differs."""
    await world.create(SHAPES[shape])
    await world.at_rest()
    await world.stop_manager("manager-0")
    world.start_manager("next", SLOW)
    await world.at_rest()
    assert [str(entry) for entry in world.trace.of("next")] == []
    await world.edit(replicas=3)
    assert meta.status(await world.ready())["replicas"] == 3


@simulated(Settings(managers=(SLOW,), others=SLOW))
async def test_new_leader_reverts_edits_made_while_no_manager_ran(world: SimulatedCluster) -> None:
    await world.bring_up(groups(replicas=2, size=2))
    await world.stop_manager("manager-0")
    key = ObjectKey(NAMESPACE, "web")
    await world.client.patch(STATEFULSETS, key, {"spec": {"replicas": 1}}, kind="merge")
    world.start_manager("next", SLOW)
    await world.at_rest()
    assert meta.spec(await world.get(STATEFULSETS, "web"))["replicas"] == 2
