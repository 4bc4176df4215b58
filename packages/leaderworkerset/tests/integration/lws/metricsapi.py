"""Serves pod usage and external metrics through a small metrics API behind the aggregation layer.

It answers what `metrics-server` and the adapter of an event-driven autoscaler answer, with the load that a test sets.
"""

import asyncio
import base64
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

from aiohttp import web
from tests.controlplane.process import free_ports

from kuberuntime.client.client import Client
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NAMESPACES, PODS, SERVICES, Resource
from leaderworkerset.webhooks import certificates

API_SERVICES: Final = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False)
PLACE: Final = ObjectKey("metrics", "adapter")
USE: Final = "metrics.k8s.io"
EXTERNAL: Final = "external.metrics.k8s.io"
VERSION: Final = "v1beta1"
AVAILABLE_SECONDS: Final = 60.0

Load: TypeAlias = Callable[[JSONObject], int]


@dataclass
class MetricsAPI:
    """The served metrics: millicores of each pod, and values by metric name and label value."""

    client: Client
    load: Load = lambda _pod: 0
    numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    selectors: set[str] = field(default_factory=set)
    """The label selectors of requests for pod metrics."""

    def application(self) -> web.Application:
        """Return the HTTP application of the metrics API."""
        application = web.Application()
        application.add_routes(
            [
                web.get(f"/apis/{USE}/{VERSION}", _discovery(USE, "pods")),
                web.get(f"/apis/{EXTERNAL}/{VERSION}", _discovery(EXTERNAL)),
                web.get(f"/apis/{USE}/{VERSION}/namespaces/{{namespace}}/pods", self._use),
                web.get(f"/apis/{EXTERNAL}/{VERSION}/namespaces/{{namespace}}/{{metric}}", self._number),
            ]
        )
        return application

    async def _use(self, request: web.Request) -> web.Response:
        selector, namespace = request.query.get("labelSelector", ""), request.match_info["namespace"]
        self.selectors.add(selector)
        pods = (await self.client.list(PODS, namespace=namespace, label_selector=selector)).items
        running = [pod for pod in pods if meta.status(pod).get("phase") == "Running"]
        items = [{"metadata": _named(pod), **_measured(), "containers": self._containers(pod)} for pod in running]
        return web.json_response(_listing(USE, "PodMetricsList", items))

    def _containers(self, pod: JSONObject) -> list[JSONObject]:
        return [
            {"name": one["name"], "usage": {"cpu": f"{self.load(pod)}m", "memory": "1Mi"}}
            for one in meta.spec(pod)["containers"]
        ]

    async def _number(self, request: web.Request) -> web.Response:
        metric, selector = request.match_info["metric"], request.query.get("labelSelector", "")
        value = self.numbers[metric, selector]
        item = {"metricName": metric, "metricLabels": {}, "timestamp": _now(), "value": str(value)}
        return web.json_response(_listing(EXTERNAL, "ExternalMetricValueList", [item]))


@asynccontextmanager
async def serving(client: Client) -> AsyncIterator[MetricsAPI]:
    """Serve the metrics, and register the API so that the API server forwards requests to it."""
    api = MetricsAPI(client)
    (port,) = free_ports(1)
    now = datetime.now(UTC)
    authority = certificates.create_authority(now)
    pair = certificates.issue(authority, [f"{PLACE.name}.{PLACE.namespace}.svc"], now)
    runner = web.AppRunner(api.application())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=_context(pair)).start()
    try:
        await _register(client, port, authority.certificate)
        yield api
    finally:
        for group in (USE, EXTERNAL):  # an unavailable metrics API prevents the deletion of namespaces
            await client.delete(API_SERVICES, ObjectKey("", f"{VERSION}.{group}"))
        await runner.cleanup()


async def _register(client: Client, port: int, authority: bytes) -> None:
    await client.apply(NAMESPACES, _object(NAMESPACES, PLACE.namespace), manager="tests")
    service = _object(SERVICES, PLACE.name, PLACE.namespace)
    service["spec"] = {"type": "ExternalName", "externalName": "localhost"}
    await client.apply(SERVICES, service, manager="tests")
    for group in (USE, EXTERNAL):
        spec = {
            "group": group,
            "version": VERSION,
            "service": {"name": PLACE.name, "namespace": PLACE.namespace, "port": port},
            "caBundle": base64.b64encode(authority).decode(),
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
        }
        await client.apply(API_SERVICES, _object(API_SERVICES, f"{VERSION}.{group}") | {"spec": spec}, manager="tests")
    async with asyncio.timeout(AVAILABLE_SECONDS):
        for group in (USE, EXTERNAL):
            key = ObjectKey("", f"{VERSION}.{group}")
            while not meta.is_condition_true(await client.get(API_SERVICES, key), "Available"):  # noqa: ASYNC110 - nothing tells when
                await asyncio.sleep(0.1)


def _discovery(group: str, *plurals: str) -> Callable[[web.Request], Any]:
    names = [{"name": one, "singularName": "", "namespaced": True, "kind": "PodMetrics"} for one in plurals]
    resources = [one | {"verbs": ["get", "list"]} for one in names]
    answer = {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{VERSION}",
        "resources": resources,
    }

    async def answered(_request: web.Request) -> web.Response:
        return web.json_response(answer)

    return answered


def _listing(group: str, kind: str, items: list[JSONObject]) -> JSONObject:
    return {"kind": kind, "apiVersion": f"{group}/{VERSION}", "metadata": {}, "items": items}


def _named(pod: JSONObject) -> JSONObject:
    return {"name": meta.name(pod), "namespace": meta.namespace(pod), "labels": dict(meta.labels(pod))}


def _measured() -> Mapping[str, str]:
    return {"timestamp": _now(), "window": "1s"}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _object(kind: Resource, name: str, namespace: str = "") -> dict[str, Any]:
    own = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": own}


def _context(pair: certificates.Certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pair.pem"
        file.write_bytes(pair.chain)
        context.load_cert_chain(file)
    return context
