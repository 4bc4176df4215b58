"""Tests that the real coscheduling plugin binds either all pods of a group or none."""

import pytest
from tests.integration.clusters.objects import lws
from tests.integration.clusters.pools import add_to_pool, bound, half_a_node, is_bound
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, pod_names
from tests.kubernetes.coscheduling.conftest import SCHEDULER
from tests.kubernetes.gang.test_gangs import assert_groups, differs, until_gone

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels

pytestmark = pytest.mark.slow


def template(space: LiveScenario, image: str = "app:1") -> JSONObject:
    """Return a pod template for the coscheduling scheduler. Two pods fill a node in the test's pool."""
    made = half_a_node(space, image)
    made["spec"]["schedulerName"] = SCHEDULER
    return made


async def test_groups_start_completely_or_not_at_all(space: LiveScenario) -> None:
    """R-GANG-2 to R-GANG-7, R-KQ-120, R-KQ-121. Three groups of 4 run on nodes for 2 groups, then on enough nodes.

    Then they are recreated, rolled out, scaled and deleted.
    """
    await add_to_pool(space, range(4))
    await space.create(lws(replicas=3, size=4, template={"workerTemplate": template(space)}))

    def two_run(state: State) -> None:
        assert state.of("web").keys() == pod_names("web", 3, 4)
        assert sorted(bound(state, 3)) == [0, 4, 4]

    state = await space.until(two_run)
    waiting = str(bound(state, 3).index(0))
    of_waiting = [one.object for one in space.changes if meta.labels(one.object)[labels.GROUP_INDEX] == waiting]
    assert len({meta.name(pod) for pod in of_waiting}) == 4
    assert not any(map(is_bound, of_waiting))

    await add_to_pool(space, range(4, 6))
    await space.settled()
    groups = await assert_groups(space, "coscheduling", minimum=4, names=pod_names("web", 3, 4))

    before = space.state.uids("web")
    await space.delete("web-1-2", PODS)
    await space.until(lambda state: differs(before, state.uids("web"), "web-1"))
    await space.settled()
    recreated = await assert_groups(space, "coscheduling", minimum=4, names=pod_names("web", 3, 4))
    assert len(set(groups.values()) & set(recreated.values())) == 2

    await space.replace_worker_template(template(space, "app:2"))
    await space.settled()
    await space.edit(replicas=1)
    await space.settled()
    await assert_groups(space, "coscheduling", minimum=4, names=pod_names("web", 1, 4))
    await space.delete("web")
    await until_gone(space, "coscheduling")
