"""Tests foreign Services that have the names of single-pod groups."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from testkit.fakes import ScriptedTransport, respond
from tests import builders
from tests.unit.leaderworkerset.controllers.cluster import CountingTransport, NodelessCluster

from kuberuntime.cache.cache import Store
from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import SERVICES
from leaderworkerset.api import labels
from leaderworkerset.controllers import groupservices

UNIQUE = {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}
LWS = builders.leaderworkerset_object(template={"size": 1}, spec=UNIQUE)
LEADER = builders.leader_pod(LWS, annotations={labels.SIZE: "1"})
THING = {"kind": "Thing", "name": "other", "uid": "u", "controller": True}


class ServiceReads(CountingTransport):
    """Counts the lists of Services."""

    number = 0

    async def request(self, request: Request) -> Response:
        self.number += request.method == "GET" and request.path.endswith("/services")
        return await super().request(request)


def service(*owners: Mapping[str, Any], **spec: object) -> JSONObject:
    return {"metadata": {"name": "web-0", "namespace": "default", "ownerReferences": list(owners)}, "spec": spec}


def unreachable(lws: JSONObject, leader: JSONObject, *existing: JSONObject) -> tuple[set[str], int]:
    """Return the leaders, and the number of requests."""
    listing = respond(200, {"metadata": {"resourceVersion": "7"}, "items": list(existing)})
    transport = ScriptedTransport(listing)
    found = asyncio.run(groupservices.unreachable_leaders(Client(transport), lws, [leader], Store({})))
    return set(found), len(transport.requests)


@pytest.mark.parametrize(
    ("existing", "expected"),
    [
        ([], set()),
        ([service(meta.controller_reference(LEADER))], set()),
        ([service(clusterIP="None")], set()),
        ([service(selector={labels.NAME: "web"})], set()),
        ([service(selector={"app": "other"})], {"web-0"}),
        ([service(THING, clusterIP="None")], {"web-0"}),
    ],
    ids=["none", "own", "headless", "selects the pods", "of a user", "of another owner"],
)
def test_service_of_a_different_owner_makes_a_group_unreachable(existing: list[JSONObject], expected: set[str]) -> None:
    assert unreachable(LWS, LEADER, *existing) == (expected, 1)


@pytest.mark.parametrize(
    ("lws", "leader"),
    [
        (LWS, builders.leader_pod(LWS, annotations={labels.SIZE: "2"})),
        (LWS, builders.leader_pod(LWS, annotations={labels.SIZE: "1"}, ready=False)),
    ],
    ids=["with workers", "not ready"],
)
def test_services_are_not_read_without_need(lws: JSONObject, leader: JSONObject) -> None:
    assert unreachable(lws, leader) == (set(), 0)


@pytest.mark.virtual_time
@pytest.mark.parametrize(("policy", "reads"), [("Shared", False), ("UniquePerReplica", True)])
async def test_services_are_read_only_if_groups_have_them(
    cluster: NodelessCluster, policy: str, *, reads: bool
) -> None:
    """A user's Service has the name of the group, so the group has no Service."""
    cluster.transport = transport = ServiceReads(cluster.server, "manager")
    own = service(selector={labels.NAME: "web"}, ports=[{"port": 80}])
    await cluster.client.create(SERVICES, own | SERVICES.type_meta)
    async with cluster.managed():
        network = {"networkConfig": {"subdomainPolicy": policy}}
        await cluster.bring_up(builders.leaderworkerset_object(replicas=1, template={"size": 1}, spec=network))
        transport.number = 0
        await cluster.edit(replicas=2)
        await cluster.settle()

    assert bool(transport.number) is reads
