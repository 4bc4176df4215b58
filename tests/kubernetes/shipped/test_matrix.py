"""Tests the lifecycle of a LeaderWorkerSet with each manager setting, and the effect of the setting.

With `THOROUGH=1`, as in `make nightly`, with every pair of settings, and each gang scheduler also on the other
Kubernetes.
"""

import socket
import ssl
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Final

import aiohttp
import pytest
from testkit.clusters.kubernetes import KubernetesCluster
from testkit.examples import IS_THOROUGH
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario, space_of
from tests.integration.clusters.state import State, pod_names
from tests.kubernetes.gang.test_gangs import link_of, until_gone
from tests.kubernetes.manager.deployed import LOOPBACK, deployed
from tests.kubernetes.manager.replicas import Replica
from tests.kubernetes.manager.test_start import negotiated
from tests.shipped import factors, pairs
from tests.shipped.factors import HOSTS, Row

from kuberuntime.client.client import Client
from kuberuntime.objects import meta
from kuberuntime.objects.resources import LEASES, PODS
from kuberuntime.serving.bindaddresses import DISABLED
from leaderworkerset.api import labels
from leaderworkerset.core.gang.gangs import DETECTABLE
from leaderworkerset.core.gang.gate import BUILT_IN, is_gated
from leaderworkerset.core.gang.native import KUBERNETES
from leaderworkerset.core.policies.gang import NONE
from leaderworkerset.install.installsettings import NAMESPACE
from leaderworkerset.manager import goflags, managerflags
from leaderworkerset.manager.config.configuration import TLS13, Configuration

pytestmark = pytest.mark.slow


ROWS: Final = pairs.rows()
TRIED: Final = [
    *(("kubernetes", number) for number in (range(len(ROWS)) if IS_THOROUGH else pairs.usual())),
    *(("other_version", number) for number in pairs.of_schedulers() if IS_THOROUGH),
]


@pytest.mark.parametrize(
    ("cluster", "row"),
    [pytest.param(cluster, ROWS[number], id=f"{cluster}-{number}") for cluster, number in TRIED],
    indirect=["cluster"],
    scope="package",  # Without this, the scope is per row, because only one of two parameters comes from a fixture.
)
async def test_manager_with_these_settings_runs_a_set(row: Row, cluster: KubernetesCluster, tmp_path: Path) -> None:
    replica = Replica(tmp_path, "manager", tmp_path / "manager.kubeconfig")
    places = {"directory": tmp_path, "metrics": replica.metrics, "probes": replica.probes}
    replica.configuration, replica.flags = factors.document(row, **places), factors.flags(row, **places)
    client = Client(cluster.transport("tests"))
    async with deployed(cluster, replica) as manager, space_of(cluster, manager, client) as space:
        chosen = replica.chosen()
        await live(space, chosen.gang_provider, factors.annotations(row))
        await check_serving(replica, chosen)
        check_versions(replica, chosen)
        check_log(replica)
        await check_lease(client, chosen)
    await client.close()


async def live(space: LiveScenario, provider: str, annotations: Mapping[str, str]) -> None:
    """Create a LeaderWorkerSet, recreate and update its group, add a second group, and delete all groups."""
    created = await space.bring_up(lws(replicas=1, size=2, annotations=annotations))
    if annotations.get(labels.GANG_SCHEDULER) == NONE:
        provider = ""
    links = {link_of(pod) for pod in created.pods.values()}
    assert (links == {""}) == (provider in {"", BUILT_IN.name, KUBERNETES})
    assert any(is_gated(change.object) for change in space.changes) == (provider == BUILT_IN.name)
    if labels.EXCLUSIVE_TOPOLOGY in annotations:
        leader, worker = (meta.spec(created.pods[name]) for name in ("web-0", "web-0-1"))
        assert worker["nodeSelector"] == {HOSTS: leader["nodeName"]}

    await space.delete("web-0-1", PODS)
    await space.until(lambda state: _is_replaced(created, state))
    recreated = await space.settled()

    await space.replace_worker_template(pod_template("app:2"))
    await space.until(lambda state: _is_replaced(recreated, state))
    await space.edit(replicas=2)
    rolled = await space.settled()
    assert rolled.pods.keys() == pod_names("web", 2, 2)
    assert {meta.spec(pod)["containers"][0]["image"] for pod in rolled.pods.values()} == {"app:2"}

    await space.delete("web")
    for scheduler in DETECTABLE:
        await until_gone(space, scheduler)


async def check_serving(replica: Replica, chosen: Configuration) -> None:
    """Assert that metrics and probes are served on their ports."""
    for port, address in (
        (replica.metrics, chosen.metrics.bind_address),
        (replica.probes, chosen.health.health_probe_bind_address),
    ):
        with socket.socket() as probe:
            assert (probe.connect_ex((LOOPBACK, port)) != 0) == (address in DISABLED)
    if chosen.health.health_probe_bind_address not in DISABLED:
        path = chosen.health.liveness_endpoint_name.lstrip("/")
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://{LOOPBACK}:{replica.probes}/{path}") as live,
        ):
            assert live.status == 200


def check_versions(replica: Replica, chosen: Configuration) -> None:
    """Assert that webhooks and metrics use TLS 1.2, unless a newer version is configured."""
    has_metrics = chosen.metrics.bind_address not in DISABLED
    for port in (replica.webhooks, replica.metrics)[: 1 + has_metrics]:
        assert negotiated(port) == "TLSv1.3"
        refuses = pytest.raises(ssl.SSLError) if chosen.tls.min_version == TLS13 else nullcontext()
        with refuses:
            assert negotiated(port, ssl.TLSVersion.TLSv1_2) == "TLSv1.2"


def check_log(replica: Replica) -> None:
    """Assert that log lines have the configured format, and that the log contains no unexpected error."""
    is_json = managerflags.log_settings(goflags.parse(replica.flags, managerflags.FLAGS)).encoder == "json"
    lines = replica.log.read_text().splitlines()
    assert [line for line in lines if line.startswith("{") != is_json] == []
    assert replica.failures() == []


async def check_lease(client: Client, chosen: Configuration) -> None:
    """Assert that the lease has a holder if leader election is enabled, or does not exist otherwise."""
    election = chosen.leader_election
    leases = (await client.list(LEASES, namespace=NAMESPACE)).items
    held = {meta.name(lease) for lease in leases if meta.spec(lease).get("holderIdentity")}
    assert held == ({election.resource_name} if election.leader_elect else set())


def _is_replaced(before: State, after: State) -> None:
    assert meta.uid(after.pods["web-0"]) != meta.uid(before.pods["web-0"])
