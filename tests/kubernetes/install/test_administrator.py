"""Simulates an administrator's tasks: installation, two managers, groups, autoscaling, and a killed leader.

The managers have the permissions of the installed account, and the leader is killed during a scale-up. No object is
created twice, none is missing, and no request is forbidden.
"""

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest
from testkit.clusters.kubernetes import KubernetesCluster
from tests.kubernetes.install.conftest import Administrator
from tests.kubernetes.manager import installation
from tests.kubernetes.manager.balancer import Balancer
from tests.kubernetes.manager.groups import CheckedNamespace
from tests.kubernetes.manager.replicas import Replica, until
from tests.permissions import Need, missing, unused

from kuberuntime.client.client import Client
from kuberuntime.objects.resources import STATEFULSETS
from kuberuntime.policyrules import Permission
from kuberuntime.serving import permissions as kube
from leaderworkerset.api.metadata import LEASE
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.controllers.permissions import REMOVE_POD_POLICIES
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.webhooks import configurations as webhooks

pytestmark = pytest.mark.slow

NAMESPACE = "sample"
SIZE = 2
PERMISSIONS = (
    *MANAGED.permissions,
    *webhooks.CLUSTER,
    *webhooks.NAMESPACE,
    *kube.leader_election(LEASE),
    *kube.METRICS,
    *REMOVE_POD_POLICIES,
)
FALLBACK = "list"
"""A verb for API servers without streaming lists, which this server supports."""


def autoscaler(minimum: int) -> dict[str, Any]:
    """Return an autoscaler that scales only to its lower limit, because the cluster has no metrics."""
    target = {"apiVersion": LEADERWORKERSETS.api_version, "kind": LEADERWORKERSETS.kind, "name": "web"}
    resource = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": minimum,
            "maxReplicas": minimum + 1,
            "metrics": [{"type": "Resource", "resource": resource}],
        },
    }


def route_webhooks(administrator: Administrator, port: int) -> None:
    """Route the webhook Service to this machine, on which the managers run as processes."""
    external = {"spec": {"type": "ExternalName", "externalName": "localhost", "clusterIP": None, "clusterIPs": None}}
    namespace = ("-n", "lws-system")
    patch = json.dumps(external)
    administrator.kubectl("patch", "service/lws-webhook-service", *namespace, "--type=merge", "-p", patch)
    for kind in ("mutating", "validating"):
        operations = [
            {"op": "add", "path": f"/webhooks/{index}/clientConfig/service/port", "value": port} for index in range(2)
        ]
        name = f"{kind}webhookconfiguration/lws-{kind}-webhook-configuration"
        administrator.kubectl("patch", name, "--type=json", "-p", json.dumps(operations))


def needs_of(events: Iterable[dict[str, Any]]) -> set[Need]:
    """Return the permissions that the manager's requests require."""
    references = [(event["verb"], event["objectRef"]) for event in events if "objectRef" in event]
    return {
        Need(
            reference.get("apiGroup", ""),
            "/".join([reference["resource"], *([reference["subresource"]] if "subresource" in reference else [])]),
            verb,
            reference.get("name", ""),
        )
        for verb, reference in references
    }


def without(verb: str, permissions: Iterable[Permission]) -> list[Permission]:
    return [
        Permission(one.resource, tuple(each for each in one.verbs if each != verb), one.subresource, one.names)
        for one in permissions
    ]


async def walk(administrator: Administrator, client: Client, port: int, managers: list[Replica]) -> None:
    """Create groups and scale them with an autoscaler. Kill the leading manager in the meantime."""
    leading, other = managers
    await installation.allow_scraping(client)
    leading.start()
    await leading.await_ready()

    async def leads() -> bool:
        return "leader_election_master_status{" in await metrics(client, leading) and await is_leading(client, leading)

    await until(leads, leading)
    other.start()
    await other.await_ready()
    space = await CheckedNamespace(client, NAMESPACE).open()
    await space.create_groups("web", replicas=3, size=SIZE)
    await space.await_ready("web", 3)
    await space.assert_whole("web", replicas=3, size=SIZE)

    administrator.kubectl("create", "-f", "-", objects=[autoscaler(12)])

    async def has_begun() -> bool:
        return len(await space.names(STATEFULSETS)) > 5

    await until(has_begun, *managers, seconds=90, poll=0.05)
    leading.kill()
    await space.await_ready("web", 12)
    await space.assert_whole("web", replicas=12, size=SIZE)
    assert await is_leading(client, other)


async def metrics(client: Client, replica: Replica) -> str:
    status, text = await replica.metrics_with(await installation.token_of(client, installation.SCRAPER))
    assert status == 200, text
    return text


async def is_leading(client: Client, replica: Replica) -> bool:
    return 'leader_election_master_status{name="b8b2488c.x-k8s.io"} 1.0' in await metrics(client, replica)


def test_installation_with_two_managers_has_no_duplicates(fresh: Administrator) -> None:
    """Two managers run 3 groups, then 12 groups after autoscaling (R-ARC-1, R-MGR-3, contract 12.5)."""

    async def scenario() -> None:
        client = Client(KubernetesCluster(fresh.plane.kubeconfig).transport("tests"))
        kubeconfig = fresh.directory / "manager.kubeconfig"
        await installation.write_kubeconfig(client, fresh.plane.kubeconfig, kubeconfig)
        managers = [Replica(fresh.directory, name, kubeconfig) for name in ("one", "two")]
        async with Balancer() as balancer:
            balancer.backends = [manager.webhooks for manager in managers]
            route_webhooks(fresh, balancer.port)
            try:
                await walk(fresh, client, balancer.port, managers)
            finally:
                for manager in managers:
                    manager.end()
                await client.close()

    fresh.install()
    asyncio.run(scenario())

    events = fresh.audit.events()
    refused = [event for event in events if event["annotations"].get("authorization.k8s.io/decision") == "forbid"]
    assert refused == []
    needs = needs_of(events)
    assert missing(PERMISSIONS, needs) == []
    declared_here = (*webhooks.CLUSTER, *webhooks.NAMESPACE, *kube.leader_election(LEASE), *kube.METRICS)
    # The manager recreates a deleted secret, but no secret is deleted in this test.
    assert unused(without(FALLBACK, declared_here), needs) == ["create secrets"]
