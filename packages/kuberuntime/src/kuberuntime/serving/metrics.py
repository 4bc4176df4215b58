"""Exports metrics with the names of controller-runtime and client-go, so that existing dashboards and alerts work.

One `Metrics` per process owns a registry. Its parts observe controllers' queues and workers, a transport, webhooks,
leader election and certificate files. They only count, and never block. `render` returns the text that Prometheus
scrapes.
"""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Final

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.registry import Collector

from kuberuntime.client.transport import Request, Response, StreamResponse, Transport
from kuberuntime.controller.workqueue import Result
from kuberuntime.errors import KubeError
from kuberuntime.serving.tallies import DurationHistogram, Tally

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

RECONCILE_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
QUEUE_SECONDS: Final = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000)
WEBHOOK_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

API_REQUESTS: Final = "kuberuntime_api_requests_total"

UNREACHABLE: Final = "<error>"
"""The status code that client-go uses to count a request without a response."""


class Metrics:
    """The metrics registry of a process, and its metrics.

    `api_requests` names the metric of requests by verb and resource, which no Go library has.
    """

    def __init__(self, *, api_requests: str = API_REQUESTS) -> None:
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry(auto_describe=False)
        self._controllers = _ControllerMetrics(self._registry)
        self._requests = Tally(
            "rest_client_requests_total",
            "Total number of requests to the API server, by status code, method and host.",
            ("code", "method", "host"),
            self._registry,
        )
        self._calls = Tally(
            api_requests,
            "Total number of requests to the API server, by verb and resource.",
            ("verb", "resource"),
            self._registry,
        )
        self._throttled = DurationHistogram(
            "rest_client_rate_limiter_duration_seconds",
            "Delay of requests caused by the client-side rate limit.",
            (),
            self._registry,
            bounds=RECONCILE_SECONDS,
        ).series()
        self._webhook_requests = Counter(
            "controller_runtime_webhook_requests_total",
            "Total number of admission requests, by HTTP status code.",
            ("webhook", "code"),
            registry=self._registry,
        )
        self._webhook_seconds = Histogram(
            "controller_runtime_webhook_latency_seconds",
            "Duration of admission requests.",
            ("webhook",),
            buckets=WEBHOOK_SECONDS,
            registry=self._registry,
        )
        self._master = Gauge(
            "leader_election_master_status",
            "Whether this process is the leader (1) or not (0).",
            ("name",),
            registry=self._registry,
        )
        self._certificates = Counter(
            "certwatcher_read_certificate_total", "Total number of certificate file reads.", registry=self._registry
        )
        self._certificate_errors = Counter(
            "certwatcher_read_certificate_errors_total",
            "Total number of failed certificate file reads.",
            registry=self._registry,
        )

    def controller(self, name: str) -> "ControllerObserver":
        """Return the observer of one controller."""
        return ControllerObserver(self._controllers, name)

    def register(self, collector: Collector) -> None:
        """Register metrics that are computed during a scrape."""
        self._registry.register(collector)

    def unregister(self, collector: Collector) -> None:
        """Remove metrics that were added by `register`."""
        self._registry.unregister(collector)

    def prepare_webhook(self, path: str) -> None:
        """Export the metrics of a webhook before its first request."""
        self._webhook_requests.labels(path, "200")
        self._webhook_seconds.labels(path)

    def count_webhook_request(self, path: str, code: int, seconds: float) -> None:
        """Count one admission request. This method is thread-safe."""
        self._webhook_requests.labels(path, str(code)).inc()
        self._webhook_seconds.labels(path).observe(seconds)

    def count_request(self, host: str, request: Request, code: str) -> None:
        """Count one request to the API server."""
        self._requests.counts[code, request.method, host] += 1
        self._calls.counts[verb_and_resource(request)] += 1

    def record_throttling(self, seconds: float) -> None:
        """Record the delay of a request by the client-side rate limit."""
        self._throttled.observe(seconds)

    def leadership(self, name: str) -> "LeadershipObserver":
        """Return the observer of one lease."""
        return LeadershipObserver(self._master.labels(name))

    def read_certificate(self, *, failed: bool) -> None:
        """Count one read of certificate files."""
        self._certificates.inc()
        if failed:
            self._certificate_errors.inc()

    def render(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return prometheus_client.generate_latest(self._registry)


class LeadershipObserver:
    """Exports whether this process is the leader."""

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge

    def leading(self, *, is_leader: bool) -> None:
        """Record the change."""
        self._gauge.set(1 if is_leader else 0)


class _ControllerMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        by_controller, by_name = ("controller",), ("controller", "name")
        self.reconciles = Tally(
            "controller_runtime_reconcile_total",
            "Total number of reconciliations, by result.",
            (*by_controller, "result"),
            registry,
        )
        self.errors = Tally(
            "controller_runtime_reconcile_errors_total",
            "Total number of failed reconciliations.",
            by_controller,
            registry,
        )
        self.seconds = DurationHistogram(
            "controller_runtime_reconcile_time_seconds",
            "Duration of reconciliations.",
            by_controller,
            registry,
            bounds=RECONCILE_SECONDS,
        )
        self.active = Gauge(
            "controller_runtime_active_workers", "Number of active workers.", by_controller, registry=registry
        )
        self.depth = Gauge("workqueue_depth", "Number of keys in the queue.", by_name, registry=registry)
        self.adds = Tally("workqueue_adds_total", "Total number of keys added to the queue.", by_name, registry)
        self.retries = Tally("workqueue_retries_total", "Total number of retries after failures.", by_name, registry)
        self.waited = DurationHistogram(
            "workqueue_queue_duration_seconds",
            "Time that keys wait in the queue.",
            by_name,
            registry,
            bounds=QUEUE_SECONDS,
        )
        self.worked = DurationHistogram(
            "workqueue_work_duration_seconds", "Time to process a key.", by_name, registry, bounds=QUEUE_SECONDS
        )


class ControllerObserver:
    """Exports metrics of the work queue and the workers of one controller."""

    def __init__(self, metrics: _ControllerMetrics, name: str) -> None:
        self._waiting: dict[Hashable, float] = {}
        self._working: dict[Hashable, float] = {}
        self._name, self._twice = (name,), (name, name)
        self._results = {result: (name, result.value) for result in Result}
        self._reconciles, self._errors = metrics.reconciles.counts, metrics.errors.counts
        self._adds, self._retries = metrics.adds.counts, metrics.retries.counts
        self._reconciles.update(dict.fromkeys(self._results.values(), 0))
        self._errors[self._name] = self._adds[self._twice] = self._retries[self._twice] = 0
        self._seconds = metrics.seconds.series(name)
        self._waited, self._worked = metrics.waited.series(name, name), metrics.worked.series(name, name)
        metrics.active.labels(name).set_function(lambda: len(self._working))
        metrics.depth.labels(name, name).set_function(lambda: len(self._waiting))

    def queued(self, key: Hashable) -> None:
        """Count an added key, and start measuring its time in the queue."""
        self._waiting[key] = asyncio.get_running_loop().time()
        self._adds[self._twice] += 1

    def retried(self, key: Hashable) -> None:  # noqa: ARG002 - the seam passes it
        """Count a retry."""
        self._retries[self._twice] += 1

    def taken(self, key: Hashable) -> None:
        """Record the time in the queue, and start measuring the processing time."""
        now = asyncio.get_running_loop().time()
        self._waited.observe(now - self._waiting.pop(key, now))
        self._working[key] = now

    def finished(self, key: Hashable, result: Result) -> None:
        """Count a result and record its duration."""
        now = asyncio.get_running_loop().time()
        seconds = now - self._working.pop(key, now)
        self._worked.observe(seconds)
        self._seconds.observe(seconds)
        self._reconciles[self._results[result]] += 1
        if result is Result.ERROR:
            self._errors[self._name] += 1


class ObservedTransport:
    """A transport that counts requests."""

    def __init__(self, inner: Transport, host: str, metrics: Metrics) -> None:
        self._inner = inner
        self._host = host
        self._metrics = metrics

    async def request(self, request: Request) -> Response:
        """Send and count a request."""
        try:
            response = await self._inner.request(request)
        except KubeError:
            self._metrics.count_request(self._host, request, UNREACHABLE)
            raise
        self._metrics.count_request(self._host, request, str(response.status))
        return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        """Open and count a stream."""
        opened = False
        try:
            async with self._inner.stream(request) as response:
                opened = True
                self._metrics.count_request(self._host, request, str(response.status))
                yield response
        except KubeError:
            if not opened:
                self._metrics.count_request(self._host, request, UNREACHABLE)
            raise

    async def close(self) -> None:
        """Close the connections of the inner transport."""
        await self._inner.close()


def verb_and_resource(request: Request) -> tuple[str, str]:
    """Return the verb and the resource (with subresource) of a request, as in the API server's audit log.

    >>> verb_and_resource(Request("PATCH", "/apis/apps/v1/namespaces/default/statefulsets/web"))
    ('patch', 'statefulsets')
    >>> verb_and_resource(Request("GET", "/api/v1/pods", (("watch", "true"),)))
    ('watch', 'pods')
    """
    parts = request.path.strip("/").split("/")
    rest = parts[3:] if parts[0] == "apis" else parts[2:]
    if len(rest) > 2 and rest[0] == "namespaces":
        rest = rest[2:]
    if parts[0] not in {"api", "apis"} or not rest:
        return request.method.lower(), request.path
    resource = "/".join((rest[0], *rest[2:3]))
    return _verb(request, is_named=len(rest) > 1), resource


def _verb(request: Request, *, is_named: bool) -> str:
    match request.method:
        case "GET" if ("watch", "true") in request.query or ("watch", "1") in request.query:
            return "watch"
        case "GET":
            return "get" if is_named else "list"
        case "POST":
            return "create"
        case "PUT":
            return "update"
        case "DELETE":
            return "delete" if is_named else "deletecollection"
        case other:
            return other.lower()
