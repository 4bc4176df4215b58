"""Tests CRDs, roles, webhooks and managers after an upgrade from version 0.1.0 and a downgrade."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests import predecessor
from tests.disaggregated import disaggregatedset_object, role
from tests.integration.clusters import objects
from tests.kubernetes.manager import installation
from tests.kubernetes.manager.groups import CheckedNamespace
from tests.kubernetes.manager.replicas import Replica, until
from tests.kubernetes.manager.world import InstalledCluster

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS, Resource
from leaderworkerset.api import labels
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS
from leaderworkerset.install.installsettings import InstallSettings
from leaderworkerset.install.objects import build_all
from leaderworkerset.kinds.managedkinds import MANAGED

pytestmark = pytest.mark.slow

Objects = Sequence[tuple[Resource, JSONObject]]

SETS = ("web", "keyed")
OLD_PROGRAM = ("-Bu", "-m", "leaderworkerset.cli", "manager")


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return predecessor.sources(tmp_path_factory.mktemp("earlier"))


async def change(world: InstalledCluster, to: Objects, replica: Replica) -> None:
    """Apply the objects of a version, and update its manager. The new manager is ready before the others exit."""
    former = [one for one in world.replicas if one is not replica]
    await installation.apply(world.client, world.balancer.port, to)
    await world.begin(replica)
    for one in former:
        world.balancer.backends.remove(one.webhooks)
        await one.stop()
        world.replicas.remove(one)
    await world.await_master(replica)
    await world.rest()


async def create(space: CheckedNamespace) -> None:
    """Create LeaderWorkerSets with indexes and with random keys, and a DisaggregatedSet.

    Wait until all are ready.
    """
    await space.create_groups("web", replicas=2, size=2)
    keyed = objects.lws("keyed", replicas=2, size=2, groupIdentity="Hash")
    split = disaggregatedset_object([role("prefill"), role("decode", size=2)])
    for resource, obj in ((LEADERWORKERSETS, keyed), (DISAGGREGATED_SETS, split)):
        metadata = {"name": meta.name(obj), "namespace": space.namespace}
        await space.client.create(resource, obj | {"metadata": metadata})
    for name in SETS:
        await space.await_ready(name, 2)
    await until(lambda: _is_split_ready(space))


async def _is_split_ready(space: CheckedNamespace) -> bool:
    parts = (await space.client.list(LEADERWORKERSETS, namespace=space.namespace)).items
    own = [one for one in parts if meta.name(one) not in SETS]
    return len(own) == 2 and all(meta.is_condition_true(one, "Available") for one in own)


async def roll(space: CheckedNamespace, name: str, image: str) -> None:
    """Update a LeaderWorkerSet, and wait until the rollout completes."""
    template = objects.pod_template(image)
    patch: JSONObject = {"spec": {"leaderWorkerTemplate": {"workerTemplate": template}}}
    await space.client.patch(LEADERWORKERSETS, ObjectKey(space.namespace, name), patch, kind="merge")

    async def is_rolled() -> bool:
        selector = f"{labels.NAME}={name}"
        pods = (await space.client.list(PODS, namespace=space.namespace, label_selector=selector)).items
        return len(pods) == 4 and {meta.spec(pod)["containers"][0]["image"] for pod in pods} == {image}

    await until(is_rolled)
    await space.await_ready(name, 2)


async def test_running_sets_survive_an_upgrade_and_a_downgrade(world: InstalledCluster, earlier: Path) -> None:
    """The manager does not write idle LeaderWorkerSets.

    Each version updates, scales and recreates those of the other version.
    """
    before, now = predecessor.objects(earlier), build_all(MANAGED, InstallSettings())
    await installation.apply(world.client, world.balancer.port, before)
    old = await world.prepare("old")
    old.program, old.environment = OLD_PROGRAM, predecessor.environment(earlier)
    await world.begin(old)
    await world.await_master(old)
    space = await CheckedNamespace(world.client, "upgraded").open()
    await create(space)
    await world.rest()
    left = await space.versions()
    await change(world, now, await world.prepare("new"))
    assert await space.versions() == left
    for name in SETS:
        await roll(space, name, "app:2")
    await world.rest()
    left = await space.versions()
    again = await world.prepare("again")
    again.program, again.environment = OLD_PROGRAM, predecessor.environment(earlier)
    await change(world, before, again)
    assert await space.versions() == left
    for name in SETS:
        await roll(space, name, "app:3")
    await space.scale(3)
    await space.await_ready("web", 3)
    assert [line for one in (old, again) for line in one.failures()] == []
