"""More and fewer groups."""

import pytest
from tests.integration.clusters.objects import lws
from tests.integration.clusters.space import Space
from tests.integration.clusters.state import State, pod_names

from kuberuntime.objects import meta
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS


async def test_up_down_to_zero_and_up_again(space: Space) -> None:
    """R-ROLL-11, R-STAT-16, R-API-10: at rest in every size, and the groups that stay are untouched."""
    await space.create(lws(replicas=2, size=3))
    before = (await space.settled()).uids("web")
    for replicas in (5, 1, 0, 2):
        await space.edit(replicas=replicas)
        after = (await space.settled()).uids("web")
        if replicas:
            kept = before.keys() & after.keys()
            assert {pod: before[pod] for pod in kept} == {pod: after[pod] for pod in kept}
        before = after


async def test_through_the_scale_subresource(space: Space) -> None:
    """R-API-2, R-VAL-26: what an autoscaler reads and writes."""
    await space.create(lws(replicas=1, size=2))
    await space.settled()
    await space.scale(4)
    state = await space.settled()
    scale = await space.get(LEADERWORKERSETS, "web", subresource="scale")
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (4, 4)
    selector = scale["status"]["selector"]
    assert selector == f"{labels.NAME}=web,{labels.WORKER_INDEX}=0"
    counted = {pod for pod, obj in state.pods.items() if meta.labels(obj)[labels.WORKER_INDEX] == "0"}
    assert counted == {"web-0", "web-1", "web-2", "web-3"}


async def test_the_number_of_groups_is_written_beside_the_statefulset(space: Space) -> None:
    """R-LSTS-2, R-ARC-6: the annotation follows, and the controllers never write what the user wrote."""
    await space.create(lws(replicas=2, size=1))
    await space.settled()
    await space.edit(replicas=3)
    state = await space.settled()
    assert meta.annotations(state.statefulsets["web"])[labels.REPLICAS] == "3"
    assert meta.generation(state.leaderworkersets["web"]) == 2


@pytest.mark.parametrize("gated", [False, True], ids=["ready groups", "groups that are not ready"])
async def test_scaling_down_removes_the_highest_groups(space: Space, gated: bool) -> None:
    """R-ARC-2, R-ARC-5."""
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
