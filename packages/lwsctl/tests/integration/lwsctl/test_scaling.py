"""Tests that LeaderWorkerSets are scaled up and down."""

import asyncio

import pytest
from msgspec.structs import replace
from tests.integration.clusters.objects import lws
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, pod_names
from tests.integration.lwsctl.test_commands import session_of

from kuberuntime.objects import meta
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from lwsctl.cli.commands.scale import ScaleRequest, scale_broken_first
from lwsctl.cli.errors import CommandError


async def test_scaling_keeps_the_remaining_groups_untouched(space: LiveScenario) -> None:
    """Scaled sets become stable, and remaining groups are unchanged (R-ROLL-11, R-STAT-16, R-API-10)."""
    before = (await space.bring_up(lws(replicas=2, size=3))).uids("web")
    for replicas in (5, 1, 0, 2):
        await space.edit(replicas=replicas)
        after = (await space.settled()).uids("web")
        if replicas:
            kept = before.keys() & after.keys()
            assert {pod: before[pod] for pod in kept} == {pod: after[pod] for pod in kept}
        before = after


async def test_scale_subresource_scales_groups(space: LiveScenario) -> None:
    """An autoscaler reads and writes these fields (R-API-2, R-VAL-26)."""
    await space.bring_up(lws(replicas=1, size=2))
    await space.scale(4)
    state = await space.settled()
    scale = await space.get(LEADERWORKERSETS, "web", subresource="scale")
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (4, 4)
    selector = scale["status"]["selector"]
    assert selector == f"{labels.NAME}=web,{labels.WORKER_INDEX}=0"
    counted = {pod for pod, obj in state.pods.items() if meta.labels(obj)[labels.WORKER_INDEX] == "0"}
    assert counted == {"web-0", "web-1", "web-2", "web-3"}


@pytest.mark.parametrize("gated", [False, True], ids=["ready groups", "groups that are not ready"])
async def test_scaling_down_removes_the_highest_groups(space: LiveScenario, gated: bool) -> None:
    """Scaling down removes the highest groups (R-ARC-2, R-ARC-5)."""
    await space.create(lws(replicas=3, size=2, gated=gated))
    await space.until(lambda state: _assert_there(state, 3))
    await space.edit(replicas=1)
    state = await space.until(lambda state: _assert_there(state, 1))
    assert "web-2" not in state.pods
    if gated:
        await space.release("web-0", "web-0-1")
    await space.settled()


def _assert_there(state: State, replicas: int) -> None:
    assert state.pods.keys() == pod_names("web", replicas, 2)


@pytest.mark.parametrize("stays", [True, False], ids=["one that is not ready stays", "one that is not ready goes"])
async def test_scaling_down_reports_and_recreates_unready_groups(
    space: LiveScenario, capsys: pytest.CaptureFixture[str], stays: bool
) -> None:
    """The highest indexes are deleted first (R-ARC-2).

    The group that is not ready receives the capacity of the deleted group.
    """
    await space.create(lws(replicas=2, size=2, gated=True, rollout={"maxUnavailable": 2}))
    async with space.releasing():
        before = (await space.settled()).uids("web")
    broken = "web-0-1" if stays else "web-1-1"
    await space.close(broken)
    await space.until(lambda state: _assert_unready(state, broken))
    session, wanted = session_of(space), ScaleRequest(1, prefer_broken=True, is_trial=True)
    await scale_broken_first(session, "web", wanted)
    said = capsys.readouterr().out.splitlines()
    goes = (
        "web: group 1 is deleted although ready, because groups with an index are deleted in descending order"
        if stays
        else "web: group 1 is deleted (not ready)"
    )
    assert said[:2] == ["web scaled from 2 to 1 group (dry run)", goes]
    assert ("web: group 0 remains (not ready)" in said) is stays
    assert space.state.uids("web") == before
    again = replace(wanted, is_trial=False, recreate_broken=True, timeout=60)
    scaling = asyncio.create_task(scale_broken_first(session, "web", again))
    await space.until(lambda state: _assert_gone(state, before[broken]))
    async with space.releasing():
        await scaling
        after = (await space.settled()).uids("web")
    assert after.keys() == {"web-0", "web-0-1"}
    assert bool(set(after.values()) & set(before.values())) is not stays
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == ("web group 0 restarted" if stays else "web: all remaining groups are ready")


def _assert_unready(state: State, pod: str) -> None:
    assert not meta.is_condition_true(state.pods[pod], "Ready")


def _assert_gone(state: State, uid: str) -> None:
    assert uid not in state.uids("web").values()


async def test_prefer_broken_is_rejected_when_scaling_up(space: LiveScenario) -> None:
    await space.bring_up(lws(replicas=1, size=1))
    with pytest.raises(
        CommandError, match="web has 1 group, and --prefer-broken requires a smaller value of --replicas"
    ):
        await scale_broken_first(session_of(space), "web", ScaleRequest(2, prefer_broken=True))
