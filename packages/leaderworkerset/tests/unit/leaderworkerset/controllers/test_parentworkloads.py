"""Tests that the Workload of an owner is found through owner references, or that a reason is returned."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from testkit import virtualtime
from testkit.virtualtime import VirtualClock
from tests.gangdefinitions import define

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response
from kuberuntime.errors import ForbiddenError, InternalError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from leaderworkerset.controllers import gangobjects
from leaderworkerset.core.gang.native import WORKLOADS
from leaderworkerset.core.policies.policy import Parent, SchedulingFailure
from localkube.apiserver import builtin
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.server import ApiServer
from localkube.apiserver.storage.store import Store

ANY: JSONObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
APPROVED = {"api-approved.kubernetes.io": "unapproved, for tests"}


class Guarded(InProcessTransport):
    """A connection that returns an error for some paths."""

    errors: dict[str, Exception]

    async def request(self, request: Request) -> Response:
        for path, error in self.errors.items():
            if request.path.split("?")[0].endswith(path):
                raise error
        return await super().request(request)


async def create(
    client: Client, kind: Resource, name: str, owner: JSONObject | None = None, **fields: Any
) -> JSONObject:
    owners = [] if owner is None else [meta.controller_reference(owner)]
    body = {"apiVersion": kind.api_version, "kind": kind.kind}
    metadata = {"name": name, "namespace": "default", "ownerReferences": owners}
    return await client.create(kind, body | {"metadata": metadata} | fields)


async def owned(client: Client, name: str, owner: JSONObject) -> JSONObject:
    """Create a Workload that an owner controls and that refers to this owner."""
    group = owner["apiVersion"].rpartition("/")[0]
    reference = {"kind": owner["kind"], "name": meta.name(owner)} | ({"apiGroup": group} if group else {})
    return await create(client, WORKLOADS, name, owner, spec={"controllerRef": reference})


def lws_of(owner: JSONObject | None) -> JSONObject:
    owners = [] if owner is None else [meta.controller_reference(owner)]
    return {"kind": "LeaderWorkerSet", "metadata": {"name": "web", "namespace": "default", "ownerReferences": owners}}


async def nobodys(_client: Client) -> JSONObject | None:
    return None


async def alone(client: Client) -> JSONObject:
    return await create(client, CONFIG_MAPS, "pipeline")


async def next_owner(client: Client) -> JSONObject:
    owner = await alone(client)
    await owned(client, "w", owner)
    return owner


async def upper_owner(client: Client) -> JSONObject:
    return await create(client, CONFIG_MAPS, "stage", await next_owner(client))


async def two(client: Client) -> JSONObject:
    owner = await next_owner(client)
    await owned(client, "w2", owner)
    return owner


async def gone(_client: Client) -> JSONObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "gone", "uid": "u"}}


async def another(client: Client) -> JSONObject:
    made = await alone(client)
    return made | {"metadata": made["metadata"] | {"uid": "earlier"}}


async def unserved(_client: Client) -> JSONObject:
    return {"apiVersion": "v1", "kind": "Pipeline", "metadata": {"name": "p", "uid": "u"}}


def found_by(make: Callable[[Client], Coroutine[Any, Any, JSONObject | None]], **errors: Exception) -> Parent:
    """Return the parent Workload that is found for a LeaderWorkerSet with this owner."""

    async def scenario() -> Parent:
        server = ApiServer(Store(), builtin.kinds(), VirtualClock())
        try:
            await server.start()
            client = Client(InProcessTransport(server, "tester"))
            fields = {"controllerRef": ANY, "podGroupTemplates": {"type": "array", "items": ANY}}
            await client.apply(CUSTOM_RESOURCE_DEFINITIONS, define(WORKLOADS, fields, APPROVED), manager="tests")
            guarded = Guarded(server, "manager")
            owner = await make(client)
            guarded.errors = errors
            return await gangobjects.find_parent(Client(guarded), lws_of(owner))
        finally:
            await server.close()

    return virtualtime.run(scenario())


@pytest.mark.parametrize("make", [next_owner, upper_owner])
def test_workload_is_found_through_the_owners(make: Any) -> None:
    """A Workload is found through the owners (N-K8S-16)."""
    found = found_by(make)

    assert not isinstance(found, SchedulingFailure)
    assert found is not None
    assert meta.name(found) == "w"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (nobodys, "owners of LeaderWorkerSet default/web do not have a Workload yet"),
        (alone, "owners of LeaderWorkerSet default/web do not have a Workload yet"),
        (two, "several Workloads are controlled by ConfigMap pipeline"),
        (gone, "cannot read an owner: "),
        (another, "ConfigMap pipeline is not the owner, because its UID differs"),
        (unserved, "the API server does not serve Pipeline of v1"),
    ],
)
def test_missing_workload_has_a_reason(make: Any, text: str) -> None:
    """A reason is returned for a missing Workload (N-K8S-10, N-K8S-16)."""
    found = found_by(make)

    assert isinstance(found, SchedulingFailure)
    assert found.reason == "ParentWorkloadNotReady"
    assert found.message.startswith(text)


def test_unreadable_owner_is_a_failure_reason() -> None:
    """The controllers do not wait for a kind that the manager may not read (N-AT-15)."""
    found = found_by(upper_owner, stage=ForbiddenError({"code": 403, "message": "no get of configmaps"}))

    assert isinstance(found, SchedulingFailure)
    assert found.message == "cannot read an owner: no get of configmaps"


def test_server_error_while_reading_owners_is_raised() -> None:
    with pytest.raises(InternalError):
        found_by(upper_owner, stage=InternalError({"code": 500, "message": "etcd"}))
