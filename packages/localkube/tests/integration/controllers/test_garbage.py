"""Tests garbage collection on the embedded API server."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from testkit.objects import merge
from testkit.transports import ForwardingTransport
from tests.integration.controllers.world import NAMESPACE, ControlledServer, cluster
from tests.unit.localkube.controllers.objects import build_statefulset, build_template

from kuberuntime.client.transport import Request, Response, StreamResponse
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    PODS,
    SERVICES,
    STATEFULSETS,
    Resource,
)
from kuberuntime.plan import Propagation
from localkube.controllers.garbage.controller import IGNORED
from localkube.controllers.garbage.deletableresources import discover

pytestmark = pytest.mark.slow

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


async def create(world: ControlledServer, resource: Resource, name: str, *owners: JSONObject) -> JSONObject:
    """Create an object with owners."""
    references = [meta.controller_reference(owner) | {"controller": index == 0} for index, owner in enumerate(owners)]
    obj = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "namespace": NAMESPACE} | ({"ownerReferences": references} if references else {}),
    }
    return await world.client.create(resource, obj)


async def delete(world: ControlledServer, resource: Resource, name: str, propagation: Propagation) -> None:
    """Delete an object."""
    await world.client.delete(resource, ObjectKey(NAMESPACE, name), propagation=propagation)


@dataclass
class Gathering(ForwardingTransport):
    """A transport that delays ConfigMap PATCH requests until two of them are in progress."""

    both: asyncio.Barrier = field(default_factory=lambda: asyncio.Barrier(2))

    async def request(self, request: Request) -> Response:
        if request.method == "PATCH" and "/configmaps/leaf" in request.path:
            await self.both.wait()
        return await self.inner.request(request)


async def test_dependents_are_orphaned_at_the_same_time(tmp_path: Path) -> None:
    """If pods were deleted one after the other, the StatefulSet status would change for a long time."""
    async with cluster(tmp_path, through=Gathering) as world:
        top = await create(world, CONFIG_MAPS, "top")
        await create(world, CONFIG_MAPS, "leaf-0", top)
        await create(world, CONFIG_MAPS, "leaf-1", top)
        await delete(world, CONFIG_MAPS, "top", "Orphan")
        left = await world.until_named(CONFIG_MAPS, "leaf-0", "leaf-1")
        assert not any(meta.metadata(one).get("ownerReferences") for one in left)


@pytest.mark.parametrize(
    ("change", "goes"),
    [
        pytest.param({"uid": "never-was"}, True, id="a UID that is not there"),
        pytest.param({"name": "other"}, True, id="a name that does not fit the UID"),
        pytest.param({"kind": "Unheard", "uid": "never-was"}, False, id="a kind that is not served: doubtful"),
    ],
)
async def test_object_created_with_a_wrong_owner_is_deleted(
    world: ControlledServer, *, change: JSONObject, goes: bool
) -> None:
    owner = await create(world, CONFIG_MAPS, "a")
    reference = meta.controller_reference(owner) | change
    head = {"name": "b", "namespace": NAMESPACE, "ownerReferences": [reference]}
    await world.client.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": head})
    witness = await create(world, CONFIG_MAPS, "w", owner)
    await delete(world, CONFIG_MAPS, "a", "Background")
    await world.until(CONFIG_MAPS, lambda found: meta.uid(witness) not in map(meta.uid, found))
    await world.until_named(CONFIG_MAPS, *([] if goes else ["b"]))


async def test_cyclic_owners_are_deleted_in_the_foreground(world: ControlledServer) -> None:
    one = await create(world, CONFIG_MAPS, "a")
    two = await create(world, CONFIG_MAPS, "b", one)
    change = {"metadata": {"ownerReferences": [meta.controller_reference(two)]}}
    await world.patch(CONFIG_MAPS, "a", change)
    await delete(world, CONFIG_MAPS, "a", "Foreground")
    await world.until_named(CONFIG_MAPS)


async def test_custom_resources_can_be_owners_and_dependents(world: ControlledServer) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    await world.client.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
    await world.until(
        CUSTOM_RESOURCE_DEFINITIONS, lambda found: any(meta.is_condition_true(o, "Established") for o in found)
    )
    owner = await create(world, WIDGETS, "w")
    await create(world, CONFIG_MAPS, "a", owner)
    await delete(world, WIDGETS, "w", "Foreground")
    await world.until_named(CONFIG_MAPS)
    await world.until_named(WIDGETS)


async def test_leader_is_deleted_after_the_set_it_owns(world: ControlledServer) -> None:
    world.start_kubelet()
    head = {"name": "leader", "namespace": NAMESPACE, "labels": {"app": "leader"}}
    spec = {"terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": "x"}]}
    leader = await world.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": spec})
    owner = {"ownerReferences": [meta.controller_reference(leader)]}
    sent = build_statefulset(replicas=2, podManagementPolicy="Parallel")
    await world.client.create(STATEFULSETS, sent | {"metadata": {"name": "web", "namespace": NAMESPACE} | owner})
    await world.until(PODS, lambda pods: [meta.status(pod).get("phase") for pod in pods] == ["Running"] * 3)
    seen: list[list[str]] = []

    def all_gone(pods: Sequence[JSONObject]) -> bool:
        seen.append([meta.name(pod) for pod in pods])
        return not pods

    await delete(world, PODS, "leader", "Foreground")
    await world.until(PODS, all_gone)
    await world.until_named(STATEFULSETS)
    assert all("leader" in names for names in seen[:-1])


@dataclass
class Counting(ForwardingTransport):
    """A transport that counts requests."""

    counts: Counter[str]

    async def request(self, request: Request) -> Response:
        self.counts[request.method] += 1
        return await self.inner.request(request)


async def test_deletion_of_fifty_groups_needs_few_requests(tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    async with cluster(tmp_path, through=lambda inner: Counting(inner, counts)) as world:
        world.start_kubelet()
        owner = await create(world, CONFIG_MAPS, "lws")
        for number in range(50):
            labels = {"app": f"web-{number}"}
            sent = build_statefulset(
                {"metadata": {"name": f"web-{number}", "ownerReferences": [meta.controller_reference(owner)]}},
                replicas=4,
                podManagementPolicy="Parallel",
                selector={"matchLabels": labels},
                template=merge(build_template("v1"), {"metadata": {"labels": labels}}),
            )
            for name in ("uid", "resourceVersion", "generation"):
                del sent["metadata"][name]
            await world.client.create(STATEFULSETS, sent)
        await world.until(PODS, lambda found: len(found) == 200 and all(meta.spec(p).get("nodeName") for p in found))
        counts.clear()
        await delete(world, CONFIG_MAPS, "lws", "Foreground")
        await world.until_named(CONFIG_MAPS)
        await world.until_named(PODS)
        # an upper bound; in practice, there are 4 requests per object
        assert counts.total() < 6 * (1 + 50 * (1 + 1 + 4))


@dataclass
class Watching(ForwardingTransport):
    """A transport that records the paths of metadata watches."""

    paths: list[str]

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        if "PartialObjectMetadata" in request.headers.get("accept", ""):
            self.paths.append(request.path)
        return self.inner.stream(request)


async def test_kinds_are_watched_in_the_order_of_discovery(tmp_path: Path) -> None:
    """Otherwise, the order differs between processes, and a seed of a simulation does not repeat a schedule."""
    paths: list[str] = []
    async with cluster(tmp_path, through=lambda inner: Watching(inner, paths)) as world:
        served = [resource for resource in await discover(world.client) if resource.group_resource not in IGNORED]
    assert paths == [resource.path() for resource in served]


async def test_service_is_deleted_with_its_owner(world: ControlledServer) -> None:
    owner = await create(world, CONFIG_MAPS, "a")
    head = {
        "name": "s",
        "namespace": NAMESPACE,
        "ownerReferences": [meta.controller_reference(owner)],
    }
    service = {"apiVersion": "v1", "kind": "Service", "metadata": head, "spec": {"clusterIP": "None"}}
    await world.client.create(SERVICES, service)
    await delete(world, CONFIG_MAPS, "a", "Background")
    await world.until(SERVICES, lambda found: "s" not in map(meta.name, found))
