"""Tests `lws top` and the usage in `lws get -o wide` on both clusters, and without a metrics API."""

from datetime import UTC, datetime

import pytest
from testkit.clusters.kubernetes import KubernetesCluster
from tests.integration.clusters.fixtures import Running
from tests.integration.clusters.objects import lws
from tests.integration.clusters.space import LiveScenario
from tests.integration.lws.metricsapi import serving
from tests.integration.lwsctl.test_commands import session_of

from kuberuntime.objects import meta
from lwsctl.cli.commands.get import with_usage
from lwsctl.cli.commands.inspect import top
from lwsctl.cli.errors import CommandError
from lwsctl.cli.sets.shown import GetRequest, observe, read
from lwsctl.observation.lists import Lists
from lwsctl.views import rankusage
from lwsctl.views.selection import Selection

pytestmark = pytest.mark.slow

WANTED = GetRequest((Selection("web"),), None, everywhere=False, selector="", managed_fields=False)


async def test_top_shows_the_usage_of_each_rank(space: LiveScenario, running: Running) -> None:
    session = session_of(space)

    async def lines() -> list[str]:
        cluster = await read(session, WANTED)
        return top.table(await top.measure_ranks(session, WANTED, cluster), datetime.now(UTC))

    async def cells() -> list[list[str]]:
        _, cluster = await observe(session, WANTED)
        (view,) = await with_usage(Lists(session.client), [*cluster.views], space.namespace)
        resources = rankusage.resources(view.ranks)
        return sorted(rankusage.usage_cells(rank, resources, datetime.now(UTC)) for rank in view.ranks)

    await space.bring_up(lws(replicas=1, size=2))
    if not isinstance(running.cluster, KubernetesCluster):
        shown = await lines()
        assert [line.split()[0] for line in shown] == ["RANK", "web/0/0", "web/0/1", "2"]
        assert "-" not in shown[1].split()
        assert [len(row) for row in await cells()] == [2, 2]
        return
    with pytest.raises(
        CommandError, match=r"the cluster does not provide pod metrics \(metrics.k8s.io\); install metrics-server"
    ):
        await lines()
    assert await cells() == [[], []]
    async with serving(space.client) as api:
        api.load = lambda pod: 1250 if meta.name(pod) == "web-0" else 10
        shown = await lines()
        assert await cells() == [["0.01", "1Mi"], ["1.25", "1Mi"]]
    assert [line.split()[-2:] for line in shown[1:]] == [["1.25", "1Mi"], ["0.01", "1Mi"], ["1.26", "2Mi"]]
