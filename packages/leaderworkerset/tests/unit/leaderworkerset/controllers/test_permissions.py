"""Tests that the controllers use exactly the declared permissions."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import pytest
from tests import builders
from tests.disaggregated import disaggregatedset_object, role, with_image
from tests.permissions import Need, RecordingTransport, missing, unused
from tests.unit.leaderworkerset.controllers.cluster import NAMESPACE, NodelessCluster

from kuberuntime.client.client import Client
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import MUTATING_WEBHOOK_CONFIGURATIONS, PODS, SERVICES
from leaderworkerset.api import labels
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS
from leaderworkerset.capabilities import names
from leaderworkerset.capabilities.moves.maintenancesettings import MaintenanceSettings
from leaderworkerset.controllers import permissions
from leaderworkerset.core.admission import podpolicy
from leaderworkerset.core.gang.gangs import SCHEDULING
from leaderworkerset.core.gang.volcano import VOLCANO
from leaderworkerset.kinds.managedkinds import MANAGED, managed_kinds
from leaderworkerset.manager.controllers import Controllers
from localkube.apiserver.inprocess import InProcessTransport

pytestmark = pytest.mark.virtual_time

Life: TypeAlias = Callable[[NodelessCluster], Coroutine[Any, Any, None]]


async def live_through_everything(cluster: NodelessCluster) -> None:
    """Trigger all writes for groups, failures, rollouts, history, Services and exclusive placement."""
    await cluster.bring_up(builders.leaderworkerset_object(replicas=2, size=2))
    for _ in range(2):  # the second recreation is recorded and delayed
        await cluster.fail("web-0-1")
        await cluster.settle(60)
    await cluster.edit(leaderWorkerTemplate={"workerTemplate": builders.pod_template("app:2")})
    await cluster.settle(120)
    no_history = {"metadata": {"annotations": {labels.REVISION_HISTORY_LIMIT: "0"}}}
    await cluster.patch(no_history)
    await cluster.make_unready("web-0-1")
    await cluster.edit(leaderWorkerTemplate={"workerTemplate": builders.pod_template("app:3")})
    await cluster.settle(120)
    for mistake in ("a", "b"):  # the same error occurs twice
        patch = {"metadata": {"annotations": {labels.LEADER_NAME: mistake}}}
        await cluster.patch(patch, "web-0", resource=PODS)
        await cluster.settle(60)
    orphaned = {"metadata": {"ownerReferences": None}}
    await cluster.patch(orphaned, resource=SERVICES)
    await cluster.edit(replicas=3)
    await cluster.settle()
    await cluster.client.delete(LEADERWORKERSETS, ObjectKey(NAMESPACE, "web"))
    await cluster.settle()
    own = {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}
    exclusive = {"annotations": {labels.EXCLUSIVE_TOPOLOGY: "rack"}}
    await cluster.bring_up(builders.leaderworkerset_object(replicas=1, size=2, metadata=exclusive, spec=own))
    await cluster.bind("web-0", "n1")
    await cluster.settle()
    await cluster.live_with_random_keys()
    await cluster.exhaust_and_recover()
    await cluster.end_together()
    await cluster.come_back()
    await roll_roles(cluster)


async def roll_roles(cluster: NodelessCluster) -> None:
    """Trigger all writes of the DisaggregatedSet controller for roles, a scaler, Services and a rollout."""
    external = disaggregatedset_object([role("prefill", external=True), role("decode", size=2)])
    metadata = {name: external["metadata"][name] for name in ("name", "namespace")}
    await cluster.client.create(DISAGGREGATED_SETS, external | {"metadata": metadata})
    await cluster.settle()
    key = ObjectKey(NAMESPACE, "split")
    await cluster.client.patch(DISAGGREGATED_SETS, key, {"spec": with_image(external, "app:2")}, kind="merge")
    await cluster.settle(120)
    static = {"roles": [role("prefill", image="app:2"), role("decode", size=2, image="app:2")]}
    await cluster.client.patch(DISAGGREGATED_SETS, key, {"spec": static}, kind="merge")
    await cluster.settle()


async def needs_of_controllers(cluster: NodelessCluster, life: Life, *, is_old: bool) -> set[Need]:
    """Run the controllers during some events. Return the required permissions."""
    transport = RecordingTransport(InProcessTransport(cluster.server, "manager"), is_old=is_old)
    async with asyncio.TaskGroup() as tasks:
        running = Controllers(MANAGED, Client(transport), clock=cluster.clock, instance="test")
        task = tasks.create_task(running.run())
        await life(cluster)
        task.cancel()
    return transport.needs


@pytest.mark.slow
async def test_controllers_use_exactly_the_declared_permissions() -> None:
    """The permissions are a subset of contract 12.5.

    Older API servers are listed, and newer ones stream their lists.
    """
    async with NodelessCluster().running() as cluster:
        needs = await needs_of_controllers(cluster, live_through_everything, is_old=False)
        needs |= await needs_of_controllers(cluster, NodelessCluster.settle, is_old=True)
    assert missing(MANAGED.permissions, needs) == []
    assert unused(MANAGED.permissions, needs) == []


def test_gang_schedulers_add_only_their_own_permissions() -> None:
    """Without a provider, no permission is added. With a provider, only its permissions are added (R-GANG-7)."""
    kinds = managed_kinds("volcano")
    own = {one for one in kinds.permissions if one.resource == VOLCANO.group_object}

    assert {verb for one in own for verb in one.verbs} == {"create", "delete", "list", "watch"}
    assert set(kinds.permissions) - own == set(MANAGED.permissions)


def test_kube_scheduler_groups_add_patch_permissions() -> None:
    """Groups of kube-scheduler need additional patch permissions (N-K8S-7, N-K8S-10)."""
    further = set(managed_kinds("kubernetes").permissions) - set(MANAGED.permissions)

    assert {one.resource for one in further} == {*SCHEDULING, LEADERWORKERSETS}
    assert {one.verbs for one in further if one.resource == LEADERWORKERSETS} == {("patch",)}
    verbs = {verb for one in further if one.resource in SCHEDULING for verb in one.verbs}
    assert verbs == {"create", "delete", "list", "patch", "watch"}


def test_moving_groups_adds_node_permissions() -> None:
    further = set(managed_kinds(configured={names.MOVES: MaintenanceSettings()}).permissions) - set(MANAGED.permissions)

    assert further == set(permissions.MAINTENANCE)


def test_pod_policies_add_permissions_for_their_names_only() -> None:
    further = set(managed_kinds(configured={names.POD_ADMISSION: True}).permissions) - set(MANAGED.permissions)
    verbs = {verb for permission in further if permission.resource in podpolicy.KINDS for verb in permission.verbs}

    assert verbs == {verb for permission in permissions.ALL_OF_POD_POLICIES for verb in permission.verbs}
    assert all(permission.names for permission in further)
    others = [permission for permission in further if permission.resource not in podpolicy.KINDS]
    assert [(permission.resource, permission.verbs) for permission in others] == [
        (MUTATING_WEBHOOK_CONFIGURATIONS, ("list", "watch"))
    ]
