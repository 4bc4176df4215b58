"""Tests workers that terminate together with their leader, or after their leader."""

from typing import Any, Final

import pytest
from tests.integration.clusters.objects import lws
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State
from tests.integration.lws.test_hash import settled as settled_by_key

from kuberuntime.errors import InvalidError
from kuberuntime.objects import meta
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Propagation
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.resources import LEADERWORKERSETS

HOLD = "tests.example.com/hold"
PARALLEL = {labels.POD_TERMINATION_POLICY: "Parallel"}
BY_ANNOTATION: Final[dict[str, Any]] = {"annotations": PARALLEL}
BY_FIELD: Final[dict[str, Any]] = {"podTerminationPolicy": "Parallel"}


async def hold(space: LiveScenario, leader: str, *, held: bool = True) -> None:
    """Delay the termination of a leader as long as the test needs, or complete it."""
    await space.patch({"metadata": {"finalizers": [HOLD] if held else None}}, leader, resource=PODS)


@pytest.mark.parametrize("policy", [BY_ANNOTATION, BY_FIELD], ids=["annotation", "field"])
@pytest.mark.parametrize("identity", ["Ordinal", "Hash"])
async def test_workers_of_a_scaled_down_group_end_before_the_leader(
    space: LiveScenario, identity: str, policy: dict[str, Any]
) -> None:
    """Workers of a scaled-down group terminate before their leader (N-PT-1, N-PT-2)."""
    await space.create(lws(replicas=2, size=3, groupIdentity=identity, **policy))
    state = await settled_by_key(space, 2, 3) if identity == "Hash" else await space.settled()
    leaders = [name for name, pod in state.pods.items() if groupname.is_leader(pod)]
    for leader in leaders:
        await hold(space, leader)
    await space.edit(replicas=1)

    def only_a_leader_is_left(state: State) -> None:
        assert len(state.pods) == 4
        assert [groupname.is_leader(pod) for pod in state.pods.values() if meta.is_deleting(pod)] == [True]

    await space.until(only_a_leader_is_left)
    for leader in leaders:
        await hold(space, leader, held=False)
    await (settled_by_key(space, 1, 3) if identity == "Hash" else space.settled())


async def test_index_is_reused_when_leader_and_workers_are_gone(space: LiveScenario) -> None:
    """The index is not reused before the workers terminate, even if their leader is faster (N-PT-2, N-PT-4)."""
    before = await space.bring_up(lws(replicas=1, size=2, annotations=PARALLEL))
    await hold(space, "web-0")
    await hold(space, "web-0-1")
    await space.delete("web-0", PODS)

    def workers_are_going(state: State) -> None:
        assert meta.is_deleting(state.statefulsets["web-0"])

    await space.until(workers_are_going)
    await hold(space, "web-0", held=False)

    def next_leader_waits(state: State) -> None:
        assert meta.uid(state.pods["web-0"]) != meta.uid(before.pods["web-0"])
        assert meta.is_deleting(state.pods["web-0-1"])
        assert meta.is_deleting(state.statefulsets["web-0"])

    await space.until(next_leader_waits)
    await hold(space, "web-0-1", held=False)
    state = await space.settled()
    assert not set(state.uids("web").values()) & set(before.uids("web").values())


@pytest.mark.parametrize("policy", [BY_ANNOTATION, BY_FIELD], ids=["annotation", "field"])
@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_deleted_set_removes_all_pods_at_once(
    space: LiveScenario, propagation: Propagation, policy: dict[str, Any]
) -> None:
    """Workers do not wait for their leaders if the LeaderWorkerSet is deleted (N-PT-3)."""
    await space.bring_up(lws(replicas=1, size=2, **policy))
    await hold(space, "web-0")
    await space.delete("web", propagation=propagation)
    await space.until(lambda state: _assert_pods(state, {"web-0"}))
    await hold(space, "web-0", held=False)
    await space.until(lambda state: _assert_pods(state, set()))


def _assert_pods(state: State, names: set[str]) -> None:
    assert state.pods.keys() == names


@pytest.mark.parametrize("change", [{"metadata": BY_ANNOTATION}, {"spec": BY_FIELD}], ids=["annotation", "field"])
async def test_workers_end_after_their_leader_until_parallel_is_set(
    space: LiveScenario, change: dict[str, Any]
) -> None:
    """The policy can be set later. It then applies immediately without a rollout (N-PT-1, in contrast to N-PT-5)."""
    before = await space.bring_up(lws(replicas=2, size=2))
    await hold(space, "web-1")
    await space.edit(replicas=1)
    await space.until(lambda state: _assert_going(state, {"web-1"}))
    assert "web-1-1" in space.state.pods
    await space.patch(change)
    await space.until(lambda state: _assert_pods(state, {"web-0", "web-0-1", "web-1"}))
    await hold(space, "web-1", held=False)
    state = await space.settled()
    assert state.pods["web-0"]["metadata"]["uid"] == before.pods["web-0"]["metadata"]["uid"]


async def test_policy_is_checked_and_has_no_stored_default(space: LiveScenario) -> None:
    """Only the two valid values are stored. Without the field, the annotation applies (N-VAL-7)."""
    with pytest.raises(InvalidError, match="podTerminationPolicy"):
        await space.create(lws(podTerminationPolicy="Fast"))
    await space.create(lws(replicas=0))
    assert "podTerminationPolicy" not in meta.spec(await space.get(LEADERWORKERSETS, "web"))
    await space.edit(podTerminationPolicy="")
    assert meta.spec(await space.get(LEADERWORKERSETS, "web"))["podTerminationPolicy"] == "Default"


def _assert_going(state: State, names: set[str]) -> None:
    assert {name for name, pod in state.pods.items() if meta.is_deleting(pod)} == names
