"""Tests that stored values that bypassed the webhooks do not block later work (ADR 29)."""

import pytest
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.lws.recreation import replaced
from tests.integration.lws.test_deletion import assert_nothing

from kuberuntime.errors import APIError

QUARTER = {"maxUnavailable": "25%", "maxSurge": 0}


async def test_value_stored_by_scale_blocks_no_later_change(space: LiveScenario) -> None:
    """25 % of 2 groups rounds to zero.

    Labels, rollouts, recreations by the manager and foreground deletion still work.
    """
    await space.bring_up(lws(replicas=4, size=2, rollout=QUARTER, template={"maxGroupRestarts": 3}))
    await space.scale(2)
    before = await space.settled()

    await space.patch({"metadata": {"labels": {"team": "a"}, "finalizers": ["tests.example.com/kept"]}})
    await space.fail("web-1-1")  # the manager records the number of restarts on the LeaderWorkerSet
    await replaced(space, before, "web-1", "web-1-1")
    await space.replace_worker_template(pod_template("app:2"))
    rolled = (await space.settled()).uids("web")
    assert not set(rolled.values()) & set(before.uids("web").values())

    await space.patch({"metadata": {"finalizers": None}})
    await space.delete("web", propagation="Foreground")
    await space.until(assert_nothing)


async def test_update_that_adds_an_error_is_rejected(space: LiveScenario) -> None:
    await space.bring_up(lws(replicas=4, size=1, rollout=QUARTER))
    await space.scale(2)

    with pytest.raises(APIError, match="size must be equal or greater than 1"):
        await space.edit_template(size=0)
    with pytest.raises(APIError, match='Invalid value: "10%": must not be 0 when `maxSurge` is 0'):
        await space.edit(rolloutStrategy={"rollingUpdateConfiguration": {"maxUnavailable": "10%"}})
