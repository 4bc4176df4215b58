"""Tests that no request is rejected while certificates are renewed (R-CERT-1, R-CERT-2)."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from tests.kubernetes.manager import installation
from tests.kubernetes.manager.groups import CheckedNamespace
from tests.kubernetes.manager.replicas import until
from tests.kubernetes.manager.stream import Stream
from tests.kubernetes.manager.world import InstalledCluster

from kuberuntime.errors import KubeError
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import MUTATING_WEBHOOK_CONFIGURATIONS, SECRETS
from leaderworkerset.install.installsettings import NAMESPACE
from leaderworkerset.webhooks import certificates, configurations, rotation
from leaderworkerset.webhooks.configurations import SERVICE_NAME
from leaderworkerset.webhooks.rotation import CertificateSecret

pytestmark = pytest.mark.slow

HOST = f"{SERVICE_NAME}.{NAMESPACE}.svc"


async def material(world: InstalledCluster) -> CertificateSecret:
    secret = await world.client.get(SECRETS, installation.SECRET)
    return rotation.read(secret.get("data") or {})


async def await_served(world: InstalledCluster, count: int) -> None:
    """Wait until each replica has loaded its certificate `count` times."""

    async def served() -> bool:
        return all(one.log.read_text().count("serving a new certificate") >= count for one in world.replicas)

    await until(served, *world.replicas)


async def test_new_serving_certificate_does_not_reject_requests(world: InstalledCluster) -> None:
    await world.start("a")
    await world.start("b")
    space = await CheckedNamespace(world.client, "renewed-certificate").open()
    stream = Stream(space)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(stream.run())
        for round_number in range(1, 4):
            await stream.go_on(10)
            before = await material(world)
            await world.client.patch(
                SECRETS, installation.SECRET, {"data": {"tls.crt": None, "tls.key": None}}, kind="merge"
            )
            await await_served(world, round_number + 1)
            assert (await material(world)).authority == before.authority
            await stream.go_on(10)
        running.cancel()
    assert stream.refused == []


async def test_new_ca_does_not_reject_requests(world: InstalledCluster) -> None:
    """The CA of the managers must be renewed some seconds later."""
    await world.start("a")
    await world.start("b")
    now = datetime.now(UTC)
    validity = rotation.LOOKAHEAD + timedelta(seconds=8)
    authority = certificates.create_authority(now, algorithm="rsa", validity=validity)
    serving = certificates.issue(authority, [HOST], now, algorithm="rsa", validity=validity)
    data = {"data": rotation.write(CertificateSecret(authority, serving))}
    await world.client.patch(SECRETS, installation.SECRET, data, kind="merge")
    space = await CheckedNamespace(world.client, "renewed-authority").open()
    await await_served(world, 2)
    stream = Stream(space)

    async def is_renewed() -> bool:
        return (await material(world)).authority != authority

    async with asyncio.TaskGroup() as group:
        running = group.create_task(stream.run())
        await until(is_renewed, *world.replicas)
        await stream.go_on(20)
        running.cancel()
    assert stream.refused == []
    renewed = await material(world)
    assert certificates.split(renewed.bundle)[1:] == (authority.certificate,)


async def test_removed_authority_is_injected_again(world: InstalledCluster) -> None:
    await world.start("a")
    key = ObjectKey("", configurations.MUTATING_NAME)
    found = await world.client.get(MUTATING_WEBHOOK_CONFIGURATIONS, key)
    for webhook in found["webhooks"]:
        del webhook["clientConfig"]["caBundle"]
    await world.client.update(MUTATING_WEBHOOK_CONFIGURATIONS, found)

    async def is_back() -> bool:
        now = await world.client.get(MUTATING_WEBHOOK_CONFIGURATIONS, key)
        return all("caBundle" in webhook["clientConfig"] for webhook in now["webhooks"])

    await until(is_back, *world.replicas)


async def test_certificate_files_are_read_again(world: InstalledCluster) -> None:
    """No restart is required (R-CERT-2, R-OP-76)."""
    directory = world.directory / "certs"
    authority = certificates.create_authority(datetime.now(UTC))
    await installation.trust(world.client, authority.certificate)
    installation.write_certificate(directory, authority)
    await world.start(
        "a",
        internalCertManagement={"enable": False},
        webhook={"certDir": str(directory)},
    )
    space = await CheckedNamespace(world.client, "certificate-files").open()
    await space.create_groups("before", replicas=0, size=1)
    other = certificates.create_authority(datetime.now(UTC))
    await installation.trust(world.client, authority.certificate + other.certificate)
    installation.write_certificate(directory, other)
    await trust_only_when_served(world, other.certificate, space)


async def trust_only_when_served(world: InstalledCluster, authority: bytes, space: CheckedNamespace) -> None:
    """Wait until requests succeed with only this CA trusted."""
    await installation.trust(world.client, authority)

    async def passes() -> bool:
        try:
            await space.create_groups("after", replicas=0, size=1)
        except KubeError:
            return False
        return True

    await until(passes, *world.replicas)
