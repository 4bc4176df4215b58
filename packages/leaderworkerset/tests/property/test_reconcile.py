"""Tests that the controllers of a model cluster always reach a stable state that matches the spec."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testkit.examples import examples
from tests.property.world import Crashed, ModeledCluster

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS, SERVICES, STATEFULSETS
from kuberuntime.plan import Plan
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS

specs = st.fixed_dictionaries(
    {
        "replicas": st.integers(0, 4),
        "size": st.integers(1, 3),
        "image": st.sampled_from(["app:1", "app:2", "app:3"]),
        "rollout": st.fixed_dictionaries(
            {
                "partition": st.integers(0, 2),
                "maxUnavailable": st.sampled_from([0, 1, 2, "25%"]),
                "maxSurge": st.sampled_from([0, 1, "50%"]),
            }
        ),
        "spec": st.sampled_from(
            [{}, {"startupPolicy": "LeaderReady"}, {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}]
        ),
    }
)


def created(spec: dict[str, Any]) -> ModeledCluster:
    world = ModeledCluster()
    world.edit(**spec)
    return world


def partition_of(spec: dict[str, Any]) -> int:
    return int(spec["rollout"]["partition"])


def assert_at_rest(world: ModeledCluster, spec: dict[str, Any]) -> None:
    """Assert that every plan is empty, and that each requested group exists with a single revision."""
    assert world.plan_leaderworkerset() == Plan()
    leaders = world.all(PODS, worker_index="0")
    assert all(world.plan_group(leader) == Plan() for leader in leaders)
    wanted = range(spec["replicas"])
    assert {int(meta.labels(one)[labels.GROUP_INDEX]) for one in leaders} >= set(wanted)
    for leader in leaders:
        assert_whole(world, leader)
    if partition_of(spec) == 0:
        assert len(leaders) == len(wanted)
        assert len({revision_of(one) for one in leaders}) <= 1
        assert len(revisions_of(world)) == 1
    assert world.get(LEADERWORKERSETS, "web") is not None


def assert_whole(world: ModeledCluster, leader: JSONObject) -> None:
    """Assert that the group has the number of pods that its leader specifies, all with the leader's revision."""
    index = meta.labels(leader)[labels.GROUP_INDEX]
    pods = world.all(PODS, name="web", group_index=index)
    assert {revision_of(pod) for pod in pods} == {revision_of(leader)}
    assert len(pods) == int(meta.annotations(leader)[labels.SIZE])


def revision_of(obj: JSONObject) -> str:
    return meta.labels(obj)[labels.TEMPLATE_REVISION_HASH]


def revisions_of(world: ModeledCluster) -> list[JSONObject]:
    found = world.all(CONTROLLER_REVISIONS, name="web")
    return [one for one in found if labels.TEMPLATE_REVISION_HASH in meta.labels(one)]


@pytest.mark.slow
@given(specs)
@settings(max_examples=examples(10))
def test_new_leaderworkerset_settles(spec: dict[str, Any]) -> None:
    """Exactly the specified pods exist, the status reports them, and writes stop (R-ARC-2, R-STAT-8)."""
    world = created(spec)
    world.settle()
    assert_at_rest(world, spec)
    lws = world.get(LEADERWORKERSETS, "web")
    assert lws is not None
    assert meta.is_condition_true(lws, "Available")
    assert len(world.all(STATEFULSETS)) == 1 + (spec["replicas"] if spec["size"] > 1 else 0)
    per_group = bool(spec["spec"].get("networkConfig"))
    assert len(world.all(SERVICES)) == (spec["replicas"] if per_group else 1)


@pytest.mark.slow
@given(st.lists(specs, min_size=2, max_size=4), st.lists(st.integers(0, 3), min_size=4, max_size=4))
@settings(max_examples=examples(10))
def test_edits_at_any_moment_settle(history: list[dict[str, Any]], pauses: list[int]) -> None:
    """The requirement includes changes and reverts during a rollout (R-ROLL-10, W-19, Q-5)."""
    play_edits(history, pauses)


def edit(replicas: int, size: int, image: str, **rollout: int) -> dict[str, Any]:
    strategy = {"partition": 0, "maxUnavailable": 0, "maxSurge": 0} | rollout
    return {"replicas": replicas, "size": size, "rollout": strategy, "image": image, "spec": {}}


@pytest.mark.parametrize("pauses", [[2, 2, 0], [1, 2, 0], [1, 1, 1], [1, 3, 3], [0, 1, 1]])
def test_groups_below_a_partition_are_created_from_zero(
    pauses: list[int],
) -> None:
    """Groups below the partition are created from the previous template, so its revision is needed (R-REV-14).

    The set is scaled to zero with another template, and back with a partition before the StatefulSet controller has
    finished.
    """
    none, back = edit(0, 1, "app:1"), edit(3, 1, "app:1", partition=2)
    play_edits([edit(3, 2, "app:1"), none, back, edit(2, 1, "app:2", maxSurge=1)], pauses)


def play_edits(history: list[dict[str, Any]], pauses: list[int]) -> None:
    world = created(history[0])
    world.settle()
    for spec, pause in zip(history[1:], pauses, strict=False):
        world.edit(**spec)
        for _ in range(pause):
            world.reconcile()
            world.collect_garbage()
            world.run_statefulsets()
    world.settle(200)
    world.edit(**(history[-1] | {"rollout": history[-1]["rollout"] | {"partition": 0}}))
    world.settle(200)
    assert_at_rest(world, history[-1] | {"rollout": {"partition": 0}})


@pytest.mark.slow
@given(specs, specs, st.integers(0, 12))
@settings(max_examples=examples(15))
def test_next_manager_completes_after_a_death_at_any_write(
    before: dict[str, Any], after: dict[str, Any], writes: int
) -> None:
    """The next manager continues with the existing objects, and never creates a revision twice (Q-6, Q-32)."""
    world = created(before)
    world.settle()
    world.edit(**after)
    world.writes_left = writes
    try:
        world.settle(200)
    except Crashed:
        keys = [revision_of(one) for one in revisions_of(world)]
        assert len(keys) == len(set(keys))
        world.restart()
    world.writes_left = None
    world.settle(200)
    assert world.plan_leaderworkerset() == Plan()


@pytest.mark.parametrize("vanished", [True, False], ids=["deleted without grace", "restarted"])
def test_failed_worker_recreates_only_its_group(*, vanished: bool) -> None:
    """The group has new UIDs, and the pods of other groups are unchanged (R-POD-5, R-POD-9, R-POD-11)."""
    world = created({"replicas": 3, "size": 3})
    world.settle()
    before = {meta.name(pod): meta.uid(pod) for pod in world.all(PODS)}
    victim, leader = world.get(PODS, "web-1-2"), world.get(PODS, "web-1")
    assert victim is not None
    assert leader is not None
    if vanished:
        world.remove(victim)
        world.perform(world.plan_group(leader, gone=(victim,)))
    else:
        world.set_ready(victim, ready=True, restarts=1)
        world.perform(world.plan_group(leader))
    world.settle()
    after = {meta.name(pod): meta.uid(pod) for pod in world.all(PODS)}
    assert world.deleted_leaders == ["web-1"]
    assert before.keys() == after.keys()
    assert {name for name in before if before[name] != after[name]} == {"web-1", "web-1-1", "web-1-2"}


def test_crashing_group_is_recreated_with_growing_delays() -> None:
    """An hour of crashes causes a dozen recreations instead of thousands (docs/adr/0003-recreation-backoff.md)."""
    world = created({"replicas": 1, "size": 2})
    world.settle()
    end = world.now + timedelta(hours=1)
    while world.now < end:
        victim, leader = world.get(PODS, "web-0-1"), world.get(PODS, "web-0")
        assert victim is not None
        assert leader is not None
        world.set_ready(victim, ready=True, restarts=1)
        plan = world.plan_group(leader)
        world.perform(plan)
        world.now += timedelta(seconds=plan.requeue_after or 1)
        if plan.requeue_after is None:
            world.settle()
    assert 10 <= len(world.deleted_leaders) <= 20


@pytest.mark.slow
@given(st.integers(1, 9), st.integers(1, 3), st.integers(1, 4), st.integers(0, 2))
@settings(max_examples=examples(12))
def test_rollout_keeps_availability_and_replaces_each_group_once(
    replicas: int, size: int, unavailable: int, surge: int
) -> None:
    """If StatefulSets do not support maxUnavailable, groups are replaced in waves. (R-ROLL-1, R-ROLL-7, R-POD-10)"""
    spec: dict[str, Any] = {
        "replicas": replicas,
        "size": size,
        "rollout": {"maxUnavailable": unavailable, "maxSurge": surge},
    }
    world = created(spec)
    world.settle()
    before = {meta.uid(pod) for pod in world.all(PODS)}
    world.edit(**spec, image="app:2")
    leaders: dict[str, set[str]] = {}
    for _ in range(60):
        known = dict(world.objects)
        for act in ROUND:
            act(world)
            assert world.available(size) >= replicas - unavailable
            for pod in world.all(PODS, worker_index="0"):
                leaders.setdefault(meta.name(pod), set()).add(meta.uid(pod))
        if world.objects == known:
            break
    assert before.isdisjoint(meta.uid(pod) for pod in world.all(PODS))
    assert {len(leaders[f"web-{index}"]) for index in range(replicas)} == {2}
    world.settle()


ROUND = [
    ModeledCluster.reconcile,
    ModeledCluster.collect_garbage,
    ModeledCluster.run_statefulsets,
    ModeledCluster.start_pods,
    ModeledCluster.report_statefulsets,
]
