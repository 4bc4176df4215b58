"""Tests that the manager recovers from temporary failures without a restart."""

import pytest
from tests.controlplane import process
from tests.kubernetes.manager import installation
from tests.kubernetes.manager.groups import CheckedNamespace, space_with_groups
from tests.kubernetes.manager.world import InstalledCluster

from kuberuntime.objects.resources import PODS
from leaderworkerset.api.metadata import MANAGER

pytestmark = pytest.mark.slow


async def test_managers_survive_a_restart_of_the_api_server(world: InstalledCluster) -> None:
    first = await world.start("a")
    await world.start("b")
    await world.await_master(first)
    space = await space_with_groups(world.client, "restarted-server", replicas=2, size=2)
    process.kill(world.plane, "kube-apiserver")
    process.start_again(world.plane, "kube-apiserver")
    process.await_ready(world.plane)
    for replica in world.replicas:
        await replica.await_ready()
    await space.scale(5)
    await space.await_ready("web", 5)
    await space.assert_whole("web", replicas=5, size=2)
    assert all(replica.process.poll() is None for replica in world.replicas)


async def test_rejected_token_is_reread(world: InstalledCluster) -> None:
    """The kubelet renews the file. The old token becomes invalid when its account is recreated."""
    replica = await world.start("a")
    await world.await_master(replica)
    space = await space_with_groups(world.client, "renewed-token", replicas=1, size=2)
    await installation.recreate_account(world.client)
    await installation.write_token(world.client, MANAGER, replica.kubeconfig.with_suffix(".token"))
    await space.scale(3)
    await space.await_ready("web", 3)
    assert replica.process.poll() is None


async def test_error_in_one_leaderworkerset_does_not_stop_another(world: InstalledCluster) -> None:
    """A quota rejects the pods of one LeaderWorkerSet. Another LeaderWorkerSet is scaled in the meantime."""
    await world.await_master(await world.start("a"))
    poor, rich = CheckedNamespace(world.client, "no-quota"), CheckedNamespace(world.client, "with-quota")
    await poor.open()
    await rich.open()
    await poor.forbid_statefulsets()
    await poor.create_groups("web", replicas=2, size=2)
    await rich.create_groups("web", replicas=2, size=2)
    await rich.await_ready("web", 2)
    assert await poor.names(PODS) == []
