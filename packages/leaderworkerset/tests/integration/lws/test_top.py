"""`lws top` on both clusters, and without a metrics API."""

from datetime import UTC, datetime

import pytest
from testkit.clusters.kubernetes import KubernetesCluster
from tests.integration.clusters.objects import lws
from tests.integration.clusters.space import Space
from tests.integration.lws.conftest import Running
from tests.integration.lws.metricsapi import serving
from tests.integration.lws.test_commands import session_of

from kuberuntime.objects import meta
from leaderworkerset.cli.commands.inspect import top
from leaderworkerset.cli.errors import CommandError
from leaderworkerset.cli.sets.shown import GetRequest
from leaderworkerset.views.selection import Selection

pytestmark = pytest.mark.slow

WANTED = GetRequest((Selection("web"),), None, everywhere=False, selector="", managed_fields=False)


async def test_top_shows_the_usage_of_each_rank(space: Space, running: Running) -> None:
    session = session_of(space)
    await space.bring_up(lws(replicas=1, size=2))
    if not isinstance(running.cluster, KubernetesCluster):
        lines = top.table(await top.measured(session, WANTED), datetime.now(UTC))
        assert [line.split()[0] for line in lines] == ["RANK", "web/0/0", "web/0/1", "2"]
        assert "-" not in lines[1].split()
        return
    with pytest.raises(CommandError, match=r"no metrics of pods \(metrics.k8s.io\): install metrics-server"):
        await top.measured(session, WANTED)
    async with serving(space.client) as api:
        api.load = lambda pod: 1250 if meta.name(pod) == "web-0" else 10
        lines = top.table(await top.measured(session, WANTED), datetime.now(UTC))
    assert [line.split()[-2:] for line in lines[1:]] == [["1.25", "1Mi"], ["0.01", "1Mi"], ["1.26", "2Mi"]]
