"""Tests the start of a manager with disabled parts, and errors that prevent the start (R-MGR-2, R-CERT-1)."""

import socket
import ssl
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest
from tests.kubernetes.manager import installation
from tests.kubernetes.manager.balancer import Balancer
from tests.kubernetes.manager.groups import space_with_groups
from tests.kubernetes.manager.replicas import until
from tests.kubernetes.manager.world import InstalledCluster

from kuberuntime.objects.resources import SECRETS
from leaderworkerset.core.gang.gangs import AUTO
from leaderworkerset.kinds.managedkinds import managed_kinds
from leaderworkerset.webhooks import certificates

pytestmark = pytest.mark.slow


async def test_manager_runs_without_election_and_metrics(world: InstalledCluster) -> None:
    replica = await world.start(
        "a",
        leaderElection={"leaderElect": False},
        metrics={"bindAddress": "0"},
        tls={"minVersion": "VersionTLS13"},
    )
    await space_with_groups(world.client, "works-alone", replicas=2, size=2)
    assert await world.holder() == ""
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", replica.metrics)) != 0
    assert negotiated(replica.webhooks) == "TLSv1.3"
    with pytest.raises(ssl.SSLError):
        negotiated(replica.webhooks, ssl.TLSVersion.TLSv1_2)


async def test_manager_without_webhooks_needs_no_certificates(world: InstalledCluster) -> None:
    await installation.clear(world.client)
    await world.client.delete(SECRETS, installation.SECRET)
    replica = await world.prepare("a")
    replica.environment["ENABLE_WEBHOOKS"] = "false"
    replica.start()
    await replica.await_ready()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", replica.webhooks)) != 0


async def test_webhooks_wait_until_gang_schedulers_are_known(world: InstalledCluster) -> None:
    """The certificate exists, but the API server is unavailable.

    Pods that are admitted at this time would not have a group.
    """
    async with Balancer() as away:
        await installation.install(world.client, world.balancer.port, managed_kinds(AUTO))
        authority = certificates.create_authority(datetime.now(UTC))
        installation.write_certificate(world.directory / "certs", authority)
        replica = await world.prepare(
            "a",
            gangSchedulingManagement={"schedulerProvider": AUTO},
            internalCertManagement={"enable": False},
            webhook={"certDir": str(world.directory / "certs")},
        )
        server = world.plane.server
        text = replica.kubeconfig.read_text().replace(server, f"https://127.0.0.1:{away.port}")
        replica.kubeconfig.write_text(text)
        replica.start()

        async def has_asked() -> bool:
            return "API server does not respond" in replica.log.read_text()

        await until(has_asked, replica)
        assert "gang schedulers are not detected yet, webhooks are not served yet" in await replica.readiness()
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", replica.webhooks)) != 0

        away.backends.append(urlsplit(server).port or 0)
        await replica.await_ready()
        assert negotiated(replica.webhooks)


async def test_missing_secret_is_created_by_the_manager(world: InstalledCluster) -> None:
    await world.client.delete(SECRETS, installation.SECRET)
    first = await world.start("a")
    await world.client.delete(SECRETS, installation.SECRET)
    second = await world.start("b")
    assert (await world.client.get(SECRETS, installation.SECRET))["data"]["tls.crt"]
    assert first.failures() == second.failures() == []


@pytest.mark.parametrize("server", ["webhooks", "metrics", "probes"])
async def test_port_in_use_stops_the_manager(world: InstalledCluster, server: str) -> None:
    replica = await world.prepare("a")
    port = getattr(replica, server)
    with socket.create_server(("127.0.0.1", port)):
        replica.start()
        assert await replica.await_end() == 1
    assert f"127.0.0.1:{port}" in replica.tail()
    assert "problem running manager" in replica.tail()


def negotiated(port: int, highest: ssl.TLSVersion = ssl.TLSVersion.MAXIMUM_SUPPORTED) -> str | None:
    """Return the TLS version that a client negotiates."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.maximum_version = highest
    with socket.create_connection(("127.0.0.1", port)) as plain, context.wrap_socket(plain) as wrapped:
        return wrapped.version()
