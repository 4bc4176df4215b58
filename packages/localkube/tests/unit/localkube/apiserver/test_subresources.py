"""Scale, binding, eviction, and refused subresources."""

import pytest
from tests.unit.localkube.apiserver.harness import CRDS, PODS, WIDGETS, Api, definition, pod, widget


async def with_widget(api: Api) -> None:
    await api.create(CRDS, definition())
    await api.create(WIDGETS, widget(replicas=3))
    await api.patch(f"{WIDGETS}/a/status", {"status": {"replicas": 2, "selector": "app=a"}})


async def test_scale_has_replicas_and_selector(api: Api) -> None:
    await with_widget(api)
    answer = await api.get(f"{WIDGETS}/a/scale")
    assert (answer["kind"], answer["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert (answer["spec"], answer["status"]) == ({"replicas": 3}, {"replicas": 2, "selector": "app=a"})
    assert answer["metadata"]["name"] == "a"


async def test_scale_changes_only_the_replicas(api: Api) -> None:
    await with_widget(api)
    scale = (await api.get(f"{WIDGETS}/a/scale")).body
    updated = await api.update(f"{WIDGETS}/a/scale", scale | {"spec": {"replicas": 5}})
    assert updated["spec"] == {"replicas": 5}
    assert (await api.update(f"{WIDGETS}/a/scale", scale)).refusal[:2] == (409, "Conflict")
    await api.patch(f"{WIDGETS}/a/scale", {"spec": {"replicas": 0}})
    stored = await api.get(f"{WIDGETS}/a")
    assert stored["spec"] == {"replicas": 0}
    assert stored["metadata"]["generation"] == 3


async def test_negative_scale_is_invalid(api: Api) -> None:
    await with_widget(api)
    answer = await api.patch(f"{WIDGETS}/a/scale", {"spec": {"replicas": -1}})
    text = 'Widget.example.org "a" is invalid: .spec.replicas: Invalid value: -1: should be a non-negative integer'
    assert answer.refusal == (422, "Invalid", text)


async def test_pod_is_bound_once(api: Api) -> None:
    await api.create(PODS, pod())
    target = {"target": {"kind": "Node", "name": "node-0"}}
    bound = await api.create(f"{PODS}/web/binding", target)
    assert (bound.code, bound["status"]) == (201, "Success")
    stored = await api.get(f"{PODS}/web")
    assert stored["spec"]["nodeName"] == "node-0"
    assert {one["type"]: one["status"] for one in stored["status"]["conditions"]} == {"PodScheduled": "True"}
    again = await api.create(f"{PODS}/web/binding", target)
    text = 'Operation cannot be fulfilled on pods/binding "web": pod web is already assigned to node "node-0"'
    assert again.refusal == (409, "Conflict", text)
    assert (await api.create(f"{PODS}/web/binding", {})).code == 400


@pytest.mark.parametrize(
    ("spec", "field", "why"),
    [
        (
            {"resources": {"requests": {"cpu": "4"}}},
            "spec.resources",
            "the embedded cluster resizes no pods with resources of the whole pod",
        ),
        (
            {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]},
            "spec.containers[0].resizePolicy",
            "the embedded cluster does not restart containers for a resize",
        ),
    ],
    ids=["of the whole pod", "with a restart"],
)
async def test_unsupported_resize_is_refused_with_its_field(
    api: Api, spec: dict[str, object], field: str, why: str
) -> None:
    """Other refusals are compared with kube-apiserver: packages/localkube/tests/conformance/test_resizes.py."""
    obj = pod()
    (main,) = obj["spec"]["containers"]
    main["resources"] = {"requests": {"cpu": "1"}}
    (main if "resizePolicy" in spec else obj["spec"]).update(spec)
    assert (await api.create(PODS, obj)).code == 201
    change = [{"op": "replace", "path": "/spec/containers/0/resources/requests/cpu", "value": "2"}]
    answer = await api.patch(f"{PODS}/web/resize", change, "json-patch+json")
    assert answer.refusal == (422, "Invalid", f'Pod "web" is invalid: {field}: Forbidden: {why}')


async def test_eviction_deletes_the_pod(api: Api) -> None:
    await api.create(PODS, pod())
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web"}}
    evicted = await api.create(f"{PODS}/web/eviction", body)
    assert (evicted.code, evicted["status"]) == (201, "Success")
    assert (await api.get(f"{PODS}/web")).code == 404


@pytest.mark.parametrize(
    ("method", "path", "refusal"),
    [
        (
            "GET",
            "/api/v1/namespaces/default/things",
            (404, "NotFound", "the server could not find the requested resource"),
        ),
        ("GET", "/apis/batch/v1/jobs", (404, "NotFound", "the server could not find the requested resource")),
        ("GET", f"{PODS}/web/nonsense", (404, "NotFound", "the server could not find the requested resource")),
        ("GET", "/api/v1/pods/web", (404, "NotFound", "the server could not find the requested resource")),
        (
            "GET",
            "/api/v1/namespaces/default/nodes",
            (404, "NotFound", "the server could not find the requested resource"),
        ),
        (
            "POST",
            f"{PODS}/web",
            (405, "MethodNotAllowed", "the server does not allow this method on the requested resource"),
        ),
        ("POST", f"{PODS}/web/proxy", (501, "NotImplemented", "the embedded cluster does not serve pods/proxy")),
        ("GET", "/metrics", (404, "NotFound", "the embedded API server does not serve /metrics")),
        ("GET", "/api/v2/pods", (404, "NotFound", "the embedded API server does not serve /api/v2/pods")),
    ],
    ids=["resource", "group", "subresource", "no namespace", "cluster-scoped", "method", "proxy", "path", "version"],
)
async def test_unserved_path_is_refused(api: Api, method: str, path: str, refusal: tuple[int, str, str]) -> None:
    assert (await api.send(method, path)).refusal == refusal
