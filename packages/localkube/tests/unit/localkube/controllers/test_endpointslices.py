"""Tests the endpoint slices of a Service."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from testkit import work
from testkit.fakes import SmallServer
from testkit.objects import merge
from testkit.virtualtime import VirtualClock, run
from tests.unit.localkube.controllers.objects import build_pod, ready_status

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import ENDPOINT_SLICES, PODS, SERVICES
from kuberuntime.objects.selectors import selects
from kuberuntime.plan import Create, Delete, Patch, Plan
from localkube.controllers import endpointslices


def build_service(**spec: Any) -> JSONObject:
    """Build a headless Service with the selector `app=web`."""
    head = {"name": "web", "namespace": "default", "uid": "s"}
    selected = {"clusterIP": "None", "selector": {"app": "web"}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": head, "spec": selected | spec}


def build_endpoint_pod(name: str, status: JSONObject | None = None, **metadata: Any) -> JSONObject:
    """Build a pod of the Service that has an address."""
    base = build_pod(name, {"metadata": {"labels": {"app": "web"}} | metadata, "status": {"podIP": "10.0.0.1"}})
    return merge(base, {"status": status or {}})


def conditions(service: JSONObject, pod: JSONObject) -> JSONObject:
    """Return the conditions of the pod's endpoint."""
    [one] = endpointslices.build(service, [pod])
    found: JSONObject = one["endpoints"][0]["conditions"]
    return found


def test_readiness_counts_unless_the_service_publishes_all() -> None:
    waiting = build_endpoint_pod("a")
    assert conditions(build_service(), waiting) == {"ready": False, "serving": False, "terminating": False}
    ready = build_endpoint_pod("a", ready_status())
    assert conditions(build_service(), ready) == {"ready": True, "serving": True, "terminating": False}
    going = build_endpoint_pod("a", ready_status(), deletionTimestamp="x")
    assert conditions(build_service(), going) == {"ready": False, "serving": True, "terminating": True}
    always = build_service(publishNotReadyAddresses=True)
    assert conditions(always, waiting) == {"ready": True, "serving": True, "terminating": False}


def test_pods_without_address_or_ended_are_omitted() -> None:
    pods = [build_pod("a", {"metadata": {"labels": {"app": "web"}}}), build_endpoint_pod("b", {"phase": "Succeeded"})]
    [one] = endpointslices.build(build_service(), pods)
    assert one["endpoints"] == []


def test_slices_have_a_hundred_endpoints() -> None:
    pods = [build_endpoint_pod(f"p{number:03}") for number in range(201)]
    slices = endpointslices.build(build_service(), pods)
    assert [(meta.name(one), len(one["endpoints"])) for one in slices] == [("web-0", 100), ("web-1", 100), ("web-2", 1)]


def test_named_ports_are_resolved_in_the_pods() -> None:
    pod = build_endpoint_pod("a")
    pod["spec"]["containers"] = [{"name": "main", "ports": [{"name": "http", "containerPort": 8080}]}]
    ports = [
        {"port": 80, "targetPort": "http"},
        {"name": "x", "port": 9, "targetPort": 99},
        {"port": 1, "targetPort": "?"},
    ]
    [one] = endpointslices.build(build_service(ports=ports), [pod])
    assert [(port["name"], port["port"]) for port in one["ports"]] == [("", 8080), ("x", 99)]


def test_only_differences_are_written() -> None:
    service, pod = build_service(), build_endpoint_pod("a")
    built = [
        merge(one, {"metadata": {"uid": "u", "resourceVersion": "3"}}) for one in endpointslices.build(service, [pod])
    ]
    assert endpointslices.slice_updates(service, [pod], built) == ()
    [create] = endpointslices.slice_updates(service, [pod], [])
    assert isinstance(create, Create)
    [patch] = endpointslices.slice_updates(service, [], built)
    assert isinstance(patch, Patch)
    surplus = merge(built[0], {"metadata": {"name": "web-9"}})
    [delete] = endpointslices.slice_updates(service, [pod], [*built, surplus])
    assert isinstance(delete, Delete)


def test_service_without_selector_selects_nothing() -> None:
    assert not selects(build_service(selector=None), build_endpoint_pod("a"))


def live(service: JSONObject, pods: list[JSONObject]) -> list[JSONObject]:
    """Return the endpoint slices of a Service as the API server stores them."""
    return [
        merge(one, {"metadata": {"uid": "u", "resourceVersion": "3"}}) for one in endpointslices.build(service, pods)
    ]


def names(endpoint_slice: JSONObject) -> list[str]:
    """Return the pods in an endpoint slice."""
    return [endpoint["targetRef"]["name"] for endpoint in endpoint_slice["endpoints"]]


def test_changed_pod_changes_one_slice() -> None:
    service, pods = build_service(), [build_endpoint_pod(f"p{number:03}") for number in range(300)]
    existing = live(service, pods)
    first, last = build_endpoint_pod("a"), build_endpoint_pod("z")

    [gone] = endpointslices.slice_updates(service, pods[1:], existing)
    [replaced] = endpointslices.slice_updates(service, [first, *pods[1:]], existing)
    [further] = endpointslices.slice_updates(service, [first, *pods, last], existing)

    assert isinstance(gone, Patch)
    assert names(gone.patch) == [f"p{number:03}" for number in range(1, 100)]
    assert isinstance(replaced, Patch)
    assert names(replaced.patch) == [*names(gone.patch), "a"]
    assert isinstance(further, Create)
    assert (meta.name(further.object), names(further.object)) == ("web-3", ["a", "z"])


def test_slice_without_pods_is_deleted() -> None:
    service, pods = build_service(), [build_endpoint_pod(f"p{number:03}") for number in range(300)]
    [delete] = endpointslices.slice_updates(service, [*pods[:100], *pods[200:]], live(service, pods))
    assert isinstance(delete, Delete)
    assert delete.key.name == "web-1"


class BusyClock(VirtualClock):
    """A clock that makes a plan appear to take 0.2 seconds."""

    time = 0.0

    def monotonic(self) -> float:
        self.time += 0.2
        return self.time


def with_driver(
    pods: int,
    service: JSONObject,
    check: Callable[[endpointslices.EndpointSliceController], None],
    clock: type[VirtualClock] = VirtualClock,
) -> None:
    """Call `check` with the driver for a Service and its pods, whose endpoint slices are up to date."""

    async def scenario() -> None:
        servers = {resource: SmallServer() for resource in (SERVICES, PODS, ENDPOINT_SLICES)}
        servers[SERVICES].put("web", **service)
        selected = [build_endpoint_pod(f"p{number:03}") for number in range(pods)]
        for resource, objects in ((PODS, selected), (ENDPOINT_SLICES, endpointslices.build(service, selected))):
            for obj in objects:
                servers[resource].put(meta.name(obj), **obj)
        by_namespace = {endpointslices.BY_NAMESPACE: endpointslices.namespace_index}
        indexes = {ENDPOINT_SLICES: {endpointslices.BY_SERVICE: endpointslices.service_index}}
        made = {
            resource: Informer(Client(server), resource, indexes=indexes.get(resource, by_namespace))
            for resource, server in servers.items()
        }
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(one.run()) for one in made.values()]
            for one in made.values():
                await one.wait_synced()
            driver = endpointslices.EndpointSliceController(
                services=made[SERVICES], pods=made[PODS], slices=made[ENDPOINT_SLICES], clock=clock()
            )
            check(driver)
            for task in running:
                task.cancel()

    run(scenario())


def plan(driver: endpointslices.EndpointSliceController) -> Plan:
    """Return the plan of the Service, which must not contain a delay."""
    with pytest.raises(StopIteration) as caught:
        driver.plan(ObjectKey("default", "web")).send(None)
    found: Plan = caught.value.value
    return found


def test_service_is_planned_once_a_second() -> None:
    costs: dict[int, list[int]] = {}

    def check(driver: endpointslices.EndpointSliceController) -> None:
        costs[len(driver.pods.store)] = [work.lines(partial(plan, driver)) for _ in range(2)]

    for pods in (10, 300):
        with_driver(pods, build_service(), check)

    assert costs[300][0] > 10 * costs[10][0]
    assert costs[300][1] == costs[10][1]


def test_planning_takes_a_twentieth_of_the_time() -> None:
    def check(driver: endpointslices.EndpointSliceController) -> None:
        assert [plan(driver).requeue_after for _ in range(3)] == [None, pytest.approx(3.6), pytest.approx(3.4)]

    with_driver(10, build_service(), check, BusyClock)


def test_readiness_does_not_enqueue_services_that_publish_all() -> None:
    change = Change(build_endpoint_pod("p0"), build_endpoint_pod("p0", ready_status()))

    def keys(service: JSONObject) -> list[ObjectKey]:
        found: list[ObjectKey] = []
        with_driver(1, service, lambda driver: found.extend(driver.watches()[1].keys(change)))
        return found

    assert keys(build_service(publishNotReadyAddresses=True)) == []
    assert keys(build_service()) == [ObjectKey("default", "web")]
