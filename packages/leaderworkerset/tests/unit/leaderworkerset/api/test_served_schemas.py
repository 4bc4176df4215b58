"""Tests the LeaderWorkerSet schema that a local API server publishes."""

from tests.unit.localkube.apiserver.routing.test_openapi_schemas import LWS, registry, schemas

from leaderworkerset.api.crd import leaderworkerset_crd
from leaderworkerset.api.descriptions import with_descriptions
from localkube.apiserver.routing import openapi
from localkube.apiserver.routing.openapi import ELSEWHERE


def test_custom_kind_is_published_with_its_schema() -> None:
    crd = leaderworkerset_crd()
    full = with_descriptions(crd, openapi.document(registry(), "api/v1"))
    shown = schemas(openapi.document(registry(full), LWS))["io.x-k8s.leaderworkerset.v1.LeaderWorkerSet"]
    own = full["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert shown["description"] == own["description"]
    assert shown["properties"]["spec"] == own["properties"]["spec"]
    assert shown["properties"]["metadata"]["allOf"] == [{"$ref": "#/components/schemas/io.k8s.ObjectMeta"}]
    group = {"group": "leaderworkerset.x-k8s.io", "version": "v1", "kind": "LeaderWorkerSet"}
    assert shown["x-kubernetes-group-version-kind"] == [group]


def test_pod_templates_reference_the_pod_documentation() -> None:
    full = with_descriptions(leaderworkerset_crd(), openapi.document(registry(), "api/v1"))
    spec = full["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    template = spec["properties"]["leaderWorkerTemplate"]["properties"]["workerTemplate"]
    containers = template["properties"]["spec"]["properties"]["containers"]
    assert containers["items"]["description"] == f"Container of the Kubernetes API. {ELSEWHERE}"
