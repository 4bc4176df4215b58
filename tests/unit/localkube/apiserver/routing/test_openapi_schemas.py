"""What the OpenAPI documents say of kinds and their types."""

from collections.abc import Iterator
from typing import Any

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.crd import leaderworkerset_crd
from leaderworkerset.api.descriptions import described
from localkube.apiserver import builtin
from localkube.apiserver.custom.customresource import kind_from_crd
from localkube.apiserver.model.catalog import Registry
from localkube.apiserver.routing import openapi
from localkube.apiserver.routing.openapi import ELSEWHERE

LWS = "apis/leaderworkerset.x-k8s.io/v1"


def schemas(document: JSONObject) -> JSONObject:
    found: JSONObject = document["components"]["schemas"]
    return found


def references(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    elif isinstance(value, dict):
        for name, child in value.items():
            if name == "$ref":
                yield child.removeprefix("#/components/schemas/")
            else:
                yield from references(child)


def registry(*crds: JSONObject) -> Registry:
    served = Registry(builtin.kinds())
    for crd in crds:
        served.add(kind_from_crd(crd))
    return served


def test_every_kind_and_type_says_what_it_is_and_where_its_fields_are_described() -> None:
    for name in openapi.index(registry())["paths"]:
        for component, schema in schemas(openapi.document(registry(), name)).items():
            if not component.endswith("IntOrString"):
                assert schema["description"].endswith(ELSEWHERE), component
                assert len(schema["description"]) > len(ELSEWHERE) + 10, component


def test_every_reference_leads_somewhere() -> None:
    crd = leaderworkerset_crd()
    for name in openapi.index(registry(crd))["paths"]:
        document = openapi.document(registry(crd), name)
        assert {*references(document)} <= {*schemas(document)}


def test_a_custom_kind_is_shown_as_its_definition_describes_it() -> None:
    crd = leaderworkerset_crd()
    full = described(crd, openapi.document(registry(), "api/v1"))
    shown = schemas(openapi.document(registry(full), LWS))["io.x-k8s.leaderworkerset.v1.LeaderWorkerSet"]
    own = full["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert shown["description"] == own["description"]
    assert shown["properties"]["spec"] == own["properties"]["spec"]
    assert shown["properties"]["metadata"]["allOf"] == [{"$ref": "#/components/schemas/io.k8s.ObjectMeta"}]
    group = {"group": "leaderworkerset.x-k8s.io", "version": "v1", "kind": "LeaderWorkerSet"}
    assert shown["x-kubernetes-group-version-kind"] == [group]


def test_pod_templates_of_leaderworkersets_say_where_pods_are_described() -> None:
    full = described(leaderworkerset_crd(), openapi.document(registry(), "api/v1"))
    spec = full["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    template = spec["properties"]["leaderWorkerTemplate"]["properties"]["workerTemplate"]
    containers = template["properties"]["spec"]["properties"]["containers"]
    assert containers["items"]["description"] == f"Container of the Kubernetes API. {ELSEWHERE}"


def test_a_definition_without_words_is_given_those_of_every_object() -> None:
    shown = schemas(openapi.document(registry(leaderworkerset_crd()), LWS))[
        "io.x-k8s.leaderworkerset.v1.LeaderWorkerSet"
    ]
    assert "description" not in shown
    assert shown["properties"]["kind"] == {"description": "What the object is.", "type": "string"}
    assert "description" not in shown["properties"]["spec"]
