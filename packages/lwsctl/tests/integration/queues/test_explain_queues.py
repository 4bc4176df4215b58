"""Tests `lws explain` for groups that wait for queue quota."""

from tests.integration.clusters.space import LiveScenario
from tests.integration.kueue.test_run_leaderworkerset import queued, run_leader_only
from tests.integration.lwsctl.explanations import diagnosis, named
from tests.kueue.reconciler import Kueue

from lwsctl.model.health import Verdict


async def test_explain_names_the_queue_when_a_group_waits_for_quota(space: LiveScenario, kueue: Kueue) -> None:
    kueue.quota = 1
    await space.create(queued(replicas=2))
    await space.until(run_leader_only)
    told = await named(space, "LWS-E030")
    assert "Kueue has not admitted pod web-1 (and 2 more ranks) (queue team)" in told.sentence
    assert (await diagnosis(space, "web/0")).verdict is Verdict.HEALTHY
