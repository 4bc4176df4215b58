"""Tests groups with the built-in gate on each cluster. Either all pods of a group are bound or none."""

import pytest
from tests.controlplane import build
from tests.integration.clusters.objects import lws
from tests.integration.clusters.pools import add_to_pool, bound, half_a_node, is_bound
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, pod_names
from tests.integration.lws.test_hash import HASH, leaders, settled

from kuberuntime.errors import ForbiddenError
from kuberuntime.objects import meta
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels
from leaderworkerset.core.gang.gate import is_gated

pytestmark = pytest.mark.parametrize("running", ["embedded", *build.CLUSTERS], indirect=True)


def gated(state: State, replicas: int) -> list[int]:
    """Return the number of pods in each group that wait for the gate."""
    return [sum(map(is_gated, state.group("web", index).values())) for index in range(replicas)]


async def test_groups_start_together_or_not_at_all(space: LiveScenario) -> None:
    """Of three groups of four pods on nodes for two, two run completely. The third starts after capacity is added."""
    await add_to_pool(space, range(4))
    await space.create(lws(replicas=3, size=4, template={"workerTemplate": half_a_node(space)}))

    def two_run(state: State) -> None:
        assert state.of("web").keys() == pod_names("web", 3, 4)
        assert sorted(bound(state, 3)) == [0, 4, 4]
        assert sorted(gated(state, 3)) == [0, 0, 4]

    await space.until(two_run)

    await add_to_pool(space, range(4, 6))

    await space.settled()
    assert bound(space.state, 3) == [4, 4, 4]
    assert gated(space.state, 3) == [0, 0, 0]


async def test_group_survives_a_recreation_a_rollout_and_scaling(space: LiveScenario) -> None:
    await add_to_pool(space, range(8, 12))
    await space.bring_up(lws(replicas=2, size=3, template={"workerTemplate": half_a_node(space)}))

    before = space.state.uids("web")
    await space.delete("web-1-2", PODS)
    await space.until(lambda state: _differs(before, state.uids("web"), "web-1"))
    await space.settled()

    await space.replace_worker_template(half_a_node(space, "app:2"))
    await space.settled()
    await space.edit(replicas=1)
    await space.settled()
    assert space.state.of("web").keys() == pod_names("web", 1, 3)
    assert bound(space.state, 1) == [3]
    await space.delete("web")
    await space.until(_is_empty)


async def test_groups_with_random_keys_start_together_or_not_at_all(space: LiveScenario) -> None:
    """With both gates, two groups of four pods share nodes for one.

    A failed group is replaced when all its pods fit.
    """
    await add_to_pool(space, range(14, 16))
    await space.create(lws(replicas=2, size=4, template={"workerTemplate": half_a_node(space)}, **HASH))

    def one_runs(state: State) -> None:
        assert sorted(bound_by_key(state)) == [0, 4]

    before = await space.until(one_runs)
    (running,) = (name for name in leaders(before) if is_bound(before.pods[name]))
    await space.delete(running, PODS)

    def another_runs(state: State) -> None:
        one_runs(state)
        assert running not in state.pods

    await space.until(another_runs)
    await add_to_pool(space, range(16, 18))
    await settled(space, 2, 4)


def bound_by_key(state: State) -> list[int]:
    """Return the number of scheduled pods in each complete group."""
    found: dict[str, list[bool]] = {}
    for pod in state.of("web").values():
        found.setdefault(meta.labels(pod)[labels.GROUP_KEY], []).append(is_bound(pod))
    assert {len(group) for group in found.values()} == {4}
    return [sum(group) for group in found.values()]


def _is_empty(state: State) -> None:
    assert not state.pods
    assert not state.statefulsets


def _differs(before: dict[str, str], after: dict[str, str], name: str) -> None:
    assert after.get(name, before[name]) != before[name]


async def test_pod_with_malformed_affinity_blocks_no_group(space: LiveScenario) -> None:
    """API servers store `Gt` with any string, and the gate reads each unscheduled pod in the cluster."""
    await add_to_pool(space, range(12, 14))
    term = {"matchExpressions": [{"key": "zone", "operator": "Gt", "values": ["abc"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "unreadable"},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "affinity": {"nodeAffinity": required},
        },
    }
    await space.create(pod, PODS)

    await space.create(lws(replicas=1, size=2, template={"workerTemplate": half_a_node(space)}))

    await space.settled()
    assert bound(space.state, 1) == [2]


async def test_unstartable_set_is_rejected(space: LiveScenario) -> None:
    """If workers were created after their leader is ready, leader and workers would wait for each other."""
    with pytest.raises(ForbiddenError, match=r"spec\.startupPolicy.*built-in.*gang-scheduler: none"):
        await space.create(lws(startupPolicy="LeaderReady"))
