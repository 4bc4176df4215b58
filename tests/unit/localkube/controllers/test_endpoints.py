"""Endpoint slices of a service."""

from typing import Any

from tests.unit.localkube.controllers.objects import build_pod, merge, ready_status

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Create, Delete, Patch
from localkube.controllers import endpoints


def build_service(**spec: Any) -> JSONObject:
    """Build a headless service over `app=web`."""
    head = {"name": "web", "namespace": "default", "uid": "s"}
    selected = {"clusterIP": "None", "selector": {"app": "web"}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": head, "spec": selected | spec}


def build_endpoint_pod(name: str, status: JSONObject | None = None, **metadata: Any) -> JSONObject:
    """Build a pod of the service with an address."""
    base = build_pod(name, {"metadata": {"labels": {"app": "web"}} | metadata, "status": {"podIP": "10.0.0.1"}})
    return merge(base, {"status": status or {}})


def conditions(service: JSONObject, pod: JSONObject) -> JSONObject:
    """Return the conditions of the pod's endpoint."""
    [one] = endpoints.build(service, [pod])
    found: JSONObject = one["endpoints"][0]["conditions"]
    return found


def test_readiness_decides_unless_the_service_publishes_all() -> None:
    waiting = build_endpoint_pod("a")
    assert conditions(build_service(), waiting) == {"ready": False, "serving": False, "terminating": False}
    ready = build_endpoint_pod("a", ready_status())
    assert conditions(build_service(), ready) == {"ready": True, "serving": True, "terminating": False}
    going = build_endpoint_pod("a", ready_status(), deletionTimestamp="x")
    assert conditions(build_service(), going) == {"ready": False, "serving": True, "terminating": True}
    always = build_service(publishNotReadyAddresses=True)
    assert conditions(always, waiting) == {"ready": True, "serving": True, "terminating": False}


def test_pods_without_address_or_at_their_end_are_left_out() -> None:
    pods = [build_pod("a", {"metadata": {"labels": {"app": "web"}}}), build_endpoint_pod("b", {"phase": "Succeeded"})]
    [one] = endpoints.build(build_service(), pods)
    assert one["endpoints"] == []


def test_slices_hold_a_hundred_endpoints() -> None:
    pods = [build_endpoint_pod(f"p{number:03}") for number in range(201)]
    slices = endpoints.build(build_service(), pods)
    assert [(meta.name(one), len(one["endpoints"])) for one in slices] == [("web-0", 100), ("web-1", 100), ("web-2", 1)]


def test_named_ports_are_looked_up_in_the_pods() -> None:
    pod = build_endpoint_pod("a")
    pod["spec"]["containers"] = [{"name": "main", "ports": [{"name": "http", "containerPort": 8080}]}]
    ports = [
        {"port": 80, "targetPort": "http"},
        {"name": "x", "port": 9, "targetPort": 99},
        {"port": 1, "targetPort": "?"},
    ]
    [one] = endpoints.build(build_service(ports=ports), [pod])
    assert [(port["name"], port["port"]) for port in one["ports"]] == [("", 8080), ("x", 99)]


def test_only_differences_are_written() -> None:
    service, pod = build_service(), build_endpoint_pod("a")
    built = [merge(one, {"metadata": {"uid": "u", "resourceVersion": "3"}}) for one in endpoints.build(service, [pod])]
    assert endpoints.corrections(service, [pod], built) == ()
    [create] = endpoints.corrections(service, [pod], [])
    assert isinstance(create, Create)
    [patch] = endpoints.corrections(service, [], built)
    assert isinstance(patch, Patch)
    surplus = merge(built[0], {"metadata": {"name": "web-9"}})
    [delete] = endpoints.corrections(service, [pod], [*built, surplus])
    assert isinstance(delete, Delete)


def test_a_service_without_selector_selects_nothing() -> None:
    assert not endpoints.selects(build_service(selector=None), build_endpoint_pod("a"))
