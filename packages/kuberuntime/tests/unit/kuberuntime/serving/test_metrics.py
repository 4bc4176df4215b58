"""Tests metrics and their names."""

import asyncio

import pytest
from testkit.fakes import ScriptedTransport, respond

from kuberuntime.client.transport import Request
from kuberuntime.controller.workqueue import Result, WorkQueue, run_workers
from kuberuntime.errors import ConnectionFailedError
from kuberuntime.serving.metrics import Metrics, ObservedTransport, verb_and_resource

pytestmark = pytest.mark.virtual_time


def samples(metrics: Metrics) -> dict[str, float]:
    lines = metrics.render().decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


async def test_every_step_of_a_key_is_counted() -> None:
    metrics = Metrics()

    async def work(key: str) -> float | None:
        match key:
            case "broken":
                raise RuntimeError("broken")
            case "later":
                return 1000.0
            case _:
                return None

    observer = metrics.controller("pod")
    queue = WorkQueue[str](observer=observer)
    for key in ("good", "broken", "later", "held", "waiting"):
        queue.add(key)
    before = samples(metrics)
    assert before['workqueue_depth{controller="pod",name="pod"}'] == 5
    workers = run_workers(queue, work, name="pod", workers=1, is_held=lambda key: key == "held")
    task = asyncio.create_task(workers)
    await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.wait([task])
    found = samples(metrics)
    label = '{controller="pod",name="pod"}'
    assert found[f"workqueue_adds_total{label}"] == 5
    assert found[f"workqueue_depth{label}"] == 0
    assert found[f"workqueue_retries_total{label}"] == 1
    assert found[f"workqueue_queue_duration_seconds_count{label}"] == 5
    assert found[f"workqueue_work_duration_seconds_count{label}"] == 5
    results = {
        result: found[f'controller_runtime_reconcile_total{{controller="pod",result="{result}"}}'] for result in Result
    }
    assert results == {Result.SUCCESS: 2, Result.ERROR: 1, Result.REQUEUE_AFTER: 1, Result.REQUEUE: 1}
    assert found['controller_runtime_reconcile_errors_total{controller="pod"}'] == 1
    assert found['controller_runtime_active_workers{controller="pod"}'] == 0


async def test_requests_are_counted_with_their_status() -> None:
    metrics = Metrics(api_requests="my_requests_total")
    inner = ScriptedTransport(respond(200, {}), respond(409, {}), ConnectionFailedError("gone"), respond(200, {}))
    transport = ObservedTransport(inner, "api:6443", metrics)
    path = "/apis/apps/v1/namespaces/default/statefulsets/web"
    await transport.request(Request("GET", path))
    await transport.request(Request("PUT", f"{path}/status"))
    with pytest.raises(ConnectionFailedError):
        await transport.request(Request("GET", path))
    async with transport.stream(Request("GET", "/api/v1/pods", (("watch", "true"),))):
        pass
    await transport.close()
    found = samples(metrics)
    assert found['rest_client_requests_total{code="200",host="api:6443",method="GET"}'] == 2
    assert found['rest_client_requests_total{code="409",host="api:6443",method="PUT"}'] == 1
    assert found['rest_client_requests_total{code="<error>",host="api:6443",method="GET"}'] == 1
    assert found['my_requests_total{resource="statefulsets",verb="get"}'] == 2
    assert found['my_requests_total{resource="statefulsets/status",verb="update"}'] == 1
    assert found['my_requests_total{resource="pods",verb="watch"}'] == 1


async def test_broken_stream_is_counted_once() -> None:
    metrics = Metrics()
    transport = ObservedTransport(ScriptedTransport(respond(200, {}), ConnectionFailedError("refused")), "h", metrics)
    request = Request("GET", "/api/v1/pods", (("watch", "true"),))
    with pytest.raises(ConnectionFailedError, match="midway"):
        async with transport.stream(request):
            raise ConnectionFailedError("midway")
    with pytest.raises(ConnectionFailedError, match="refused"):
        async with transport.stream(request):
            pass
    found = samples(metrics)
    assert found['rest_client_requests_total{code="200",host="h",method="GET"}'] == 1
    assert found['rest_client_requests_total{code="<error>",host="h",method="GET"}'] == 1


@pytest.mark.parametrize(
    ("method", "path", "verb", "resource"),
    [
        ("POST", "/api/v1/namespaces/default/pods", "create", "pods"),
        ("GET", "/api/v1/namespaces/default", "get", "namespaces"),
        ("GET", "/api/v1/namespaces", "list", "namespaces"),
        ("DELETE", "/api/v1/namespaces/default/pods/a", "delete", "pods"),
        ("DELETE", "/api/v1/namespaces/default/pods", "deletecollection", "pods"),
        ("PATCH", "/apis/x.io/v1/namespaces/d/things/a/status", "patch", "things/status"),
        ("GET", "/apis/x.io/v1/things/a", "get", "things"),
        ("GET", "/version", "get", "/version"),
    ],
)
def test_verbs_and_resources_equal_those_of_the_audit_log(method: str, path: str, verb: str, resource: str) -> None:
    assert verb_and_resource(Request(method, path)) == (verb, resource)


def test_webhooks_leadership_and_certificates_have_metrics() -> None:
    metrics = Metrics()
    metrics.prepare_webhook("/mutate")
    assert samples(metrics)['controller_runtime_webhook_requests_total{code="200",webhook="/mutate"}'] == 0
    metrics.count_webhook_request("/mutate", 200, 0.01)
    leadership = metrics.leadership("lock")
    leadership.leading(is_leader=True)
    metrics.read_certificate(failed=False)
    metrics.read_certificate(failed=True)
    found = samples(metrics)
    assert found['controller_runtime_webhook_requests_total{code="200",webhook="/mutate"}'] == 1
    assert found['controller_runtime_webhook_latency_seconds_count{webhook="/mutate"}'] == 1
    assert found['leader_election_master_status{name="lock"}'] == 1
    assert found["certwatcher_read_certificate_total"] == 2
    assert found["certwatcher_read_certificate_errors_total"] == 1
    leadership.leading(is_leader=False)
    assert samples(metrics)['leader_election_master_status{name="lock"}'] == 0
