"""Tests the content of metrics, and which users may read them (R-MGR-5, R-MGR-6)."""

import re

import pytest
from testkit.repository import ROOT
from tests.kubernetes.manager.installation import SCRAPER, token_of
from tests.kubernetes.manager.world import InstalledCluster

from kuberuntime.objects.resources import SERVICE_ACCOUNTS
from leaderworkerset.install.installsettings import NAMESPACE

pytestmark = pytest.mark.slow

REFERENCE = ROOT / "docs/reference/manager.md"


def documented() -> set[str]:
    """Return the metrics in the reference. A name that starts with `_` continues the first name in its row."""
    _, _, section = REFERENCE.read_text().partition("## Metrics\n")
    found = set()
    for row in re.findall(r"^\| `.*", section, re.MULTILINE):
        first, *others = re.findall(r"`(\w+)`", row.split(" | ")[0])
        parts = ["_".join(first.split("_")[:end]) for end in range(1, first.count("_") + 1)]
        found |= {first, *(part + one if one.startswith("_") else one for one in others for part in parts)}
    return found


async def test_metrics_require_permission(world: InstalledCluster) -> None:
    """Metrics and the log line use the names of controller-runtime (R-MGR-5, R-MGR-6, R-OP-44, R-OP-83 (D6))."""
    replica = await world.start("a")
    await world.await_master(replica)
    stranger = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody"}}
    await world.client.apply(
        SERVICE_ACCOUNTS,
        stranger | {"metadata": {"name": "nobody", "namespace": NAMESPACE}},
        manager="tests",
    )
    assert (await replica.metrics_with(""))[0] == 401
    assert (await replica.metrics_with("invented"))[0] == 401
    assert (await replica.metrics_with(await token_of(world.client, "nobody")))[0] == 403
    status, text = await replica.metrics_with(await token_of(world.client, SCRAPER))
    assert status == 200
    names = set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))
    assert names - documented() == set(), "docs/reference/manager.md and install/board.py have all metrics"
    for name in (
        "controller_runtime_webhook_requests_total",
        'controller_runtime_reconcile_total{controller="leaderworkerset"',
        'workqueue_depth{controller="pod",name="pod"}',
        "rest_client_requests_total",
        "rest_client_rate_limiter_duration_seconds_count",
        "process_resident_memory_bytes",
        "process_open_fds",
        'lws_build_info{commit="unknown",python="',
        'leader_election_master_status{name="b8b2488c.x-k8s.io"} 1.0',
        "lws_group_recreations_total",
        "lws_groups_failing",
        "lws_api_requests_total",
        'lws_certificate_expiry_timestamp_seconds{server="webhooks"}',
    ):
        assert name in text, name
    assert "controller-runtime.metrics\tServing metrics server" in replica.log.read_text()
