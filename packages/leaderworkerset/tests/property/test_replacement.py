"""Tests that the replacement of outdated leaders never exceeds the limit of unavailable groups."""

import math

from hypothesis import given
from hypothesis import strategies as st
from tests import builders

from kuberuntime.objects.meta import UID, JSONObject
from leaderworkerset.core.leaderworkerset import outdatedleaders
from leaderworkerset.core.leaderworkerset.budget import Budget
from leaderworkerset.core.leaderworkerset.groupindex import index_groups
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts, Workers


def statefulset(replicas: int, partition: int) -> JSONObject:
    """Return a leader StatefulSet whose controller has not completed the update."""
    return {
        "metadata": {"generation": 1},
        "spec": {"replicas": replicas, "updateStrategy": {"rollingUpdate": {"partition": partition}}},
        "status": {"observedGeneration": 1, "updateRevision": "s-new", "currentRevision": "s-old"},
    }


@st.composite
def fleets(draw: st.DrawFn) -> list[GroupFacts]:
    """Return groups in random states, some of them missing."""
    indexes = draw(st.lists(st.integers(0, 12), unique=True, max_size=12))
    return [draw(a_group(index)) for index in indexes]


@st.composite
def a_group(draw: st.DrawFn, index: int) -> GroupFacts:
    is_new = draw(st.booleans())
    workers = Workers(draw(st.booleans()), draw(st.sampled_from(["new", "old"])), str(index))
    return GroupFacts(
        leader=f"web-{index}",
        group_index=str(index),
        index=index,
        is_leader_ready=draw(st.booleans()),
        revision="new" if is_new else "old",
        workers=draw(st.none() | st.just(workers)),
        uid=UID(f"uid-{index}"),
        is_deleting=draw(st.booleans()),
        statefulset_revision=draw(st.sampled_from(["s-new", "s-old", "s-abandoned"])),
    )


@st.composite
def budgets(draw: st.DrawFn) -> Budget:
    replicas = draw(st.integers(0, 12))
    return Budget(
        replicas=replicas, partition=0, unavailable=draw(st.integers(0, 12)), surge=draw(st.integers(0, replicas))
    )


def is_available(group: GroupFacts, replicas: int, size: int) -> bool:
    index = group.index
    is_there = index is not None and index < replicas and not group.is_deleting
    is_mixed = size > 1 and group.workers is not None and group.workers.revision != group.revision
    return is_there and builders.is_group_ready(group, size) and not is_mixed


@given(fleets(), budgets(), st.integers(0, 13), st.integers(0, 13), st.sampled_from([1, 2]))
def test_replacement_keeps_the_bound_in_any_state(
    groups: list[GroupFacts], limits: Budget, replicas: int, partition: int, size: int
) -> None:
    """If leaders are deleted, at least `replicas - maxUnavailable` groups remain available (R-ROLL-1)."""
    group_summary = index_groups(groups, "web")
    indexes = outdatedleaders.leaders_to_delete(
        outdatedleaders.RolloutLeaders.from_statefulset(
            statefulset(replicas, partition), group_summary, limits, size=size, key="new"
        )
    )
    chosen = [next(one for one in groups if one.index == index) for index in indexes]

    before = [one for one in groups if is_available(one, replicas, size)]
    after = [one for one in before if one not in chosen]
    assert len(after) >= min(len(before), limits.replicas - limits.unavailable)
    assert len({one.uid for one in chosen}) == len(chosen)
    for one in chosen:
        assert one.revision == "old"
        assert one.statefulset_revision != "s-new"
        assert not one.is_deleting
        assert one.index is not None
        assert one.index < replicas
        if one.index < partition:
            assert one.statefulset_revision == "s-abandoned"
            assert one not in before
    ready = [is_available(one, replicas, size) for one in chosen]
    assert ready == sorted(ready), "broken groups come first"


@given(st.lists(st.booleans(), max_size=20), st.integers(1, 8))
def test_rollout_takes_the_fewest_possible_waves(is_new: list[bool], unavailable: int) -> None:
    """Each wave has as many groups as the limit permits (R-ROLL-10)."""
    limits = Budget(replicas=len(is_new), partition=0, unavailable=unavailable, surge=0)
    fleet = [ready(index, "new" if new else "old") for index, new in enumerate(is_new)]
    waves = 0
    live = statefulset(len(fleet), 0)
    while chosen := outdatedleaders.leaders_to_delete(
        outdatedleaders.RolloutLeaders.from_statefulset(live, index_groups(fleet, "web"), limits, size=2, key="new")
    ):
        fleet = [ready(index, "new") if index in chosen else one for index, one in enumerate(fleet)]
        waves += 1
    assert all(one.revision == "new" for one in fleet)
    assert waves == math.ceil(is_new.count(False) / unavailable)


def ready(index: int, revision: str) -> GroupFacts:
    """Return a ready group of a revision."""
    workers = Workers(is_ready=True, revision=revision, group_index=str(index))
    return GroupFacts(f"web-{index}", str(index), index, True, revision, workers, UID(""), False, f"s-{revision}")
