"""Tests foreign Services that have the names of single-pod groups."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from testkit.fakes import ScriptedTransport, respond
from tests import builders

from kuberuntime.cache.cache import Store
from kuberuntime.client.client import Client
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.controllers import groupservices

UNIQUE = {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}
LWS = builders.leaderworkerset_object(template={"size": 1}, spec=UNIQUE)
LEADER = builders.leader_pod(LWS, annotations={labels.SIZE: "1"})
THING = {"kind": "Thing", "name": "other", "uid": "u", "controller": True}


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
        (builders.leaderworkerset_object(template={"size": 1}), LEADER),
        (LWS, builders.leader_pod(LWS, annotations={labels.SIZE: "2"})),
        (LWS, builders.leader_pod(LWS, annotations={labels.SIZE: "1"}, ready=False)),
    ],
    ids=["shared service", "with workers", "not ready"],
)
def test_services_are_not_read_without_need(lws: JSONObject, leader: JSONObject) -> None:
    assert unreachable(lws, leader) == (set(), 0)
