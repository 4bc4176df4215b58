"""Tests the scale, binding and eviction subresources, and requests for unsupported subresources."""

import pytest
from tests.unit.localkube.apiserver.harness import PODS, Api, pod


@pytest.mark.parametrize(
    ("spec", "field", "why"),
    [
        (
            {"resources": {"requests": {"cpu": "4"}}},
            "spec.resources",
            "the embedded cluster cannot resize pods with pod-level resources",
        ),
        (
            {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]},
            "spec.containers[0].resizePolicy",
            "the embedded cluster does not restart containers for a resize",
        ),
    ],
    ids=["of the whole pod", "with a restart"],
)
async def test_unsupported_resize_is_rejected_with_its_field(
    api: Api, spec: dict[str, object], field: str, why: str
) -> None:
    """packages/localkube/tests/conformance/test_resizes.py compares other errors with kube-apiserver."""
    obj = pod()
    (main,) = obj["spec"]["containers"]
    main["resources"] = {"requests": {"cpu": "1"}}
    (main if "resizePolicy" in spec else obj["spec"]).update(spec)
    assert (await api.create(PODS, obj)).code == 201
    change = [{"op": "replace", "path": "/spec/containers/0/resources/requests/cpu", "value": "2"}]
    answer = await api.patch(f"{PODS}/web/resize", change, "json-patch+json")
    assert answer.refusal == (422, "Invalid", f'Pod "web" is invalid: {field}: Forbidden: {why}')


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
async def test_unserved_path_is_rejected(api: Api, method: str, path: str, refusal: tuple[int, str, str]) -> None:
    assert (await api.send(method, path)).refusal == refusal
