"""Tests the reading order through a LeaderWorkerSet controller plan and its decision (`walk.py`)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest
from tests import builders
from tests.decisions import decide
from tests.unit.leaderworkerset.controllers.cluster import NAMESPACE, NodelessCluster
from tests.unit.leaderworkerset.core.leaderworkerset import test_reconcile as cases
from tests.unit.leaderworkerset.core.leaderworkerset.test_reconcile_rollouts import rolling
from tests.unit.leaderworkerset.walk import Walk, complete, walk

from kuberuntime.objects.meta import ObjectKey
from leaderworkerset.controllers import indexes
from leaderworkerset.controllers.caches import Caches
from leaderworkerset.controllers.leaderworkerset import LeaderWorkerSetDriver
from leaderworkerset.core.leaderworkerset.decision import ObservedLeaderWorkerSet, PreviousResults
from leaderworkerset.core.leaderworkerset.groupindex import index_groups
from leaderworkerset.core.policies.gang import NO_GANG

KEY: Final = ObjectKey(NAMESPACE, "web")

EDITED: Final = builders.leaderworkerset_object(image="app:2", metadata={"generation": 2})
OLD: Final = builders.revision(builders.leaderworkerset_object(image="app:0"), number=7)


@pytest.mark.parametrize(
    ("observed", "most"),
    [
        (cases.at_rest(), Walk(28, 13, 15)),
        (rolling(cases.ready_groups(cases.LWS, 4, key="older")), Walk(62, 18, 44)),
        (cases.replace(cases.at_rest(), revisions=[OLD, builders.revision(cases.LWS, number=8)]), Walk(74, 21, 53)),
        (cases.replace(cases.at_rest(), leaderworkerset=EDITED), Walk(92, 31, 61)),
    ],
    ids=["at rest", "a step of a rollout", "the end of a rollout", "an edit"],
)
def test_decision_takes_few_functions(observed: ObservedLeaderWorkerSet, most: Walk) -> None:
    """ADR 13 lists the number of each step.

    A plan with writes also has the status for the case that one fails.
    """
    groups = index_groups(observed.groups.values(), "web")  # as the controller stores it
    known = PreviousResults(
        revision_generation=decide(observed, builders.NOW).revision_generation, applied=observed.known.applied
    )
    observed = cases.replace(observed, group_summary=groups, known=known)
    decide(observed, builders.NOW)  # values that are created on first use are not counted

    path = walk(lambda: decide(observed, builders.NOW))

    assert not path.exceeds(most), path


@asynccontextmanager
async def driver_of(cluster: NodelessCluster) -> AsyncIterator[LeaderWorkerSetDriver]:
    """Run the caches of a driver without performing a plan."""
    caches = Caches(cluster.client, (*indexes.CACHES, indexes.DEPLOYMENT_CACHE))
    driver = LeaderWorkerSetDriver(caches, cluster.client, cluster.clock, NO_GANG, {})
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(informer.run()) for informer in caches.all()]
        for informer in caches.all():
            await informer.wait_synced()
        yield driver
        for task in running:
            task.cancel()


@pytest.mark.virtual_time
async def test_plan_takes_few_functions(cluster: NodelessCluster) -> None:
    """The driver observes, reads on demand, and makes a decision. ADR 13 lists the number of each step."""
    async with cluster.managed():
        await cluster.bring_up(builders.leaderworkerset_object())
    paths: dict[str, Walk] = {}
    async with driver_of(cluster) as driver:
        for situation in ("after a start", "at rest"):
            paths[situation] = walk(lambda: complete(driver.plan(KEY)))
        await cluster.edit(leaderWorkerTemplate={"workerTemplate": builders.pod_template("app:2")})
        await cluster.settle(1)
        paths["an edit"] = walk(lambda: complete(driver.plan(KEY)))
    most = {"after a start": Walk(147, 42, 105), "at rest": Walk(43, 18, 25), "an edit": Walk(131, 42, 89)}

    assert [situation for situation, path in paths.items() if path.exceeds(most[situation])] == [], paths
