"""Tests that objects of one tenant do not stop the manager or delay another tenant."""

import asyncio
import re
import sys
from pathlib import Path
from statistics import median
from typing import Final

import pytest
from testkit.examples import examples
from testkit.repository import ROOT
from tests import hostile
from tests.controlplane import build
from tests.controlplane.process import Plane, control_plane
from tests.kubernetes.gang.conftest import scheduling
from tests.kubernetes.manager import installation
from tests.kubernetes.manager.conftest import prepare
from tests.kubernetes.manager.groups import CheckedNamespace
from tests.kubernetes.manager.replicas import until
from tests.kubernetes.manager.tenant import admit, roll
from tests.kubernetes.manager.world import InstalledCluster, opened
from yaml import safe_load_all as load_all

from kuberuntime.errors import ForbiddenError
from kuberuntime.objects import meta
from kuberuntime.objects.resources import NAMESPACES, ROLE_BINDINGS
from leaderworkerset.core.gang import native
from leaderworkerset.core.gang.gate import BUILT_IN
from leaderworkerset.kinds.managedkinds import managed_kinds
from lwsctl.diagnosis.observed import RESOURCE_QUOTAS

PAGE: Final = (ROOT / "docs/how-to/share-a-cluster.md").read_text()

RESYNC: Final = 120.0
"""The timeout in seconds until the quota controller detects new kinds. It checks every 30 s."""

pytestmark = pytest.mark.slow

SEED: Final = 1
OBJECTS: Final = examples(60)
"""The number of objects of each kind that the attacker stores. `EXAMPLES=20` uses more than a thousand."""

GROUPS: Final = 2

SHIPPED: Final = {"leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s"}
"""The same value as in Deployments. On two cores, a busy control plane must not cause the loss of a lease."""

FLOOR: Final = 30.0
"""The minimum rollout timeout in seconds, because the attack keeps the machine busy."""


async def attack(world: InstalledCluster, provider: str) -> None:
    """Repeatedly update the second tenant's LeaderWorkerSet. Fail if the manager process exits."""
    await installation.install(world.client, world.balancer.port, managed_kinds(provider))
    gangs = {"gangSchedulingManagement": {"schedulerProvider": provider}} if provider else {}
    replica = await world.start("a", leaderElection=SHIPPED, **gangs)
    await world.await_master(replica)
    victim = await CheckedNamespace(world.client, f"victim{provider}").open()
    await victim.create_groups("web", replicas=GROUPS, size=2)
    await victim.await_ready("web", GROUPS)
    before = await roll(victim, "web", GROUPS, "before", replica)
    memory = replica.resident_mebibytes()
    tenant = await admit(world, f"hostile{provider}", SEED)

    during: list[float] = []
    async with asyncio.TaskGroup() as tasks:
        storing = tasks.create_task(tenant.attack(OBJECTS))
        while not storing.done():
            during.append(await roll(victim, "web", GROUPS, f"during:{len(during)}", replica))

    groups = {native.POD_GROUPS, native.ALPHA_POD_GROUPS} & tenant.stored.keys()
    assert set(tenant.stored) - groups == hostile.KINDS, tenant.refused
    assert len(groups) == (provider == native.NAME), tenant.refused
    assert median(during) <= max(2 * before, FLOOR)
    await tenant.clear()
    await tenant.client.close()
    await roll(victim, "web", GROUPS, "after", replica)
    replica.check()
    assert replica.failures() == []
    assert replica.resident_mebibytes() <= 1.5 * memory
    await victim.await_retired(1)
    await victim.assert_whole("web", replicas=GROUPS, size=2)


@pytest.mark.parametrize("provider", ["", BUILT_IN.name], ids=["no gangs", "built-in gate"])
async def test_hostile_tenant_neither_stops_nor_slows_others(world: InstalledCluster, provider: str) -> None:
    await attack(world, provider)


def test_hostile_tenant_with_pod_groups_does_not_affect_others(tmp_path: Path) -> None:
    """In this case, the tenant also stores PodGroups, which the manager watches."""

    async def scenario(plane: Plane) -> None:
        async with opened(plane, tmp_path) as world:
            await attack(world, native.NAME)

    serve, gates = scheduling(build.CHOSEN)
    assets = build.assets(lambda text: print(text, file=sys.stderr, flush=True))  # noqa: T201 - progress
    with control_plane(assets, tmp_path, prepare, (serve,), gates=gates) as plane:
        asyncio.run(scenario(plane))


async def test_quota_of_the_page_limits_a_team(world: InstalledCluster) -> None:
    """An API server counts each kind on the page, and rejects objects above the quota."""
    replica = await world.start("a")
    await world.await_master(replica)
    tenant = await admit(world, "team-a", 1)
    documents = [
        one for text in re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL) for one in load_all(text)
    ]
    kinds = (NAMESPACES, ROLE_BINDINGS, RESOURCE_QUOTAS)
    for resource, obj in zip(kinds, documents, strict=True):
        await world.client.apply(resource, obj, manager="tests")
    quota = documents[-1]

    async def is_counted() -> bool:
        found = await world.client.get(RESOURCE_QUOTAS, meta.key(quota))
        used = meta.status(found).get("used") or {}
        # not every quota value is counted yet, and the next count would follow only minutes later
        if used and set(used) != set(quota["spec"]["hard"]):
            await world.client.delete(RESOURCE_QUOTAS, meta.key(quota))
            await world.client.apply(RESOURCE_QUOTAS, quota, manager="tests")
        return set(used) == set(quota["spec"]["hard"])

    await until(is_counted, seconds=RESYNC, poll=1)
    own = CheckedNamespace(tenant.client, "team-a")
    for number in range(int(quota["spec"]["hard"]["count/leaderworkersets.leaderworkerset.x-k8s.io"])):
        await own.create_groups(f"web-{number}", replicas=0, size=1)
    with pytest.raises(ForbiddenError, match="exceeded quota: groups"):
        await own.create_groups("more", replicas=0, size=1)
    with pytest.raises(ForbiddenError, match='cannot create resource "leaderworkersets"'):
        await CheckedNamespace(tenant.client, "default").create_groups("elsewhere", replicas=0, size=1)
    await tenant.client.close()
