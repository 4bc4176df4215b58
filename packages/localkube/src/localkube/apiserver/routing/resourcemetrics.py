"""Serves `metrics.k8s.io` with the current usage of pods and nodes, in the same way as metrics-server.

`kubectl top` and autoscalers read it.

Metrics are not stored. A pod is reported once all its containers have been measured. The usage of a node is the sum of
its pods.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

import msgspec

from kuberuntime.client.transport import Request, Response
from kuberuntime.objects import meta, resources, timestamps
from kuberuntime.objects.meta import UID, JSONObject
from kuberuntime.objects.quantity import NANOS, Notation, Quantity
from kuberuntime.objects.resources import Resource
from localkube.apiserver.model import apierrors
from localkube.apiserver.requests import call as calls
from localkube.apiserver.requests import representation
from localkube.apiserver.verbs.backend import Backend
from localkube.apiserver.verbs.reading import get
from localkube.apiserver.verbs.reading import list as listing
from localkube.podaccess import ContainerUsage, DeviceUsage, UsageReport
from localkube.wellknown import GPU, GPU_MEMORY

RESOURCES: Final = (resources.NODE_METRICS, resources.POD_METRICS)
ROOT: Final = "/apis/metrics.k8s.io/v1beta1/"


async def respond(backend: Backend, request: Request, user: str) -> Response:
    """Return the metrics for a path below `ROOT`, for all, selected or single pods or nodes."""
    core = replace(request, path=f"/api/v1/{request.path.removeprefix(ROOT)}")
    call = calls.parse(backend.registry, core, user)
    resource = next((candidate for candidate in RESOURCES if candidate.plural == call.served.resource.plural), None)
    if resource is None or call.subresource:
        raise apierrors.unknown_resource()
    if request.method != "GET" or call.flag("watch"):
        raise apierrors.method_not_allowed()
    if call.name:
        objects = [get.get(backend, call)]
    else:
        objects = [msgspec.json.decode(item) for item in listing.list_page(backend, call).items]
    items = _metrics(backend, resource, objects, await backend.node.current.measure())
    if not call.name:
        head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": {}}
        return representation.respond(200, head | {"items": [*items]})
    item = next(items, None)
    if item is None:
        raise apierrors.not_found(resource, call.name)
    return representation.respond(200, item)


def _metrics(
    backend: Backend, resource: Resource, objects: Iterable[JSONObject], measured: UsageReport
) -> Iterator[JSONObject]:
    if resource is resources.POD_METRICS:
        for pod in objects:
            loads, devices = measured.loads.get(meta.uid(pod), {}), measured.devices.get(meta.uid(pod), {})
            if loads and loads.keys() >= _measured_containers(pod):
                containers = [
                    {"name": name, "usage": _usage([load]) | _device_usage(devices.get(name))}
                    for name, load in sorted(loads.items())
                ]
                yield _metrics_header(resource, pod, measured) | {"containers": containers}
        return
    of_nodes = _usage_by_node(backend, measured.loads)
    for node in objects:
        yield _metrics_header(resource, node, measured) | {"usage": _usage(of_nodes.get(meta.name(node), ()))}


def _measured_containers(pod: JSONObject) -> set[str]:
    """Return the names of the running containers. All of them must be measured."""
    statuses = meta.status(pod).get("containerStatuses") or ()
    return {status["name"] for status in statuses if (status.get("state") or {}).get("running")}


def _usage_by_node(
    backend: Backend, loads: Mapping[UID, Mapping[str, ContainerUsage]]
) -> dict[str, list[ContainerUsage]]:
    by_node: dict[str, list[ContainerUsage]] = {}
    call = calls.parse(backend.registry, Request("GET", resources.PODS.path()), "")
    for item in listing.list_page(backend, call).items:
        pod = msgspec.json.decode(item)
        by_node.setdefault(meta.spec(pod).get("nodeName", ""), []).extend(loads.get(meta.uid(pod), {}).values())
    return by_node


def _metrics_header(resource: Resource, obj: JSONObject, measured: UsageReport) -> JSONObject:
    metadata = meta.metadata(obj)
    kept = {name: metadata[name] for name in ("name", "namespace", "labels") if name in metadata}
    moment = timestamps.render(measured.at)
    return {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": kept | {"creationTimestamp": moment},
        "timestamp": moment,
        "window": f"{measured.seconds:.3f}s",
    }


def _usage(loads: Iterable[ContainerUsage]) -> JSONObject:
    loads = [*loads]
    cores = Quantity(round(sum(load.cores for load in loads) * NANOS))
    memory = sum(load.memory for load in loads)
    return {"cpu": str(cores), "memory": str(Quantity(memory * NANOS, Notation.BINARY))}


def _device_usage(load: DeviceUsage | None) -> JSONObject:
    """Return the number of busy GPUs and their memory usage, which metrics-server does not support."""
    if load is None:
        return {}
    usage: JSONObject = {GPU_MEMORY: str(Quantity(load.memory * NANOS, Notation.BINARY))}
    return usage if load.busy is None else usage | {GPU: str(Quantity(round(load.busy * NANOS)))}
