"""Tests that the OpenAPI documents describe all kinds and their types."""

from collections.abc import Iterator
from typing import Any

from testkit.customkind import definition

from kuberuntime.objects.meta import JSONObject
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


def test_every_kind_and_type_has_a_description() -> None:
    for name in openapi.document_index(registry())["paths"]:
        for component, schema in schemas(openapi.document(registry(), name)).items():
            if not component.endswith("IntOrString"):
                assert schema["description"].endswith(ELSEWHERE), component
                assert len(schema["description"]) > len(ELSEWHERE) + 10, component


def test_every_reference_resolves() -> None:
    crd = definition()
    for name in openapi.document_index(registry(crd))["paths"]:
        document = openapi.document(registry(crd), name)
        assert {*references(document)} <= {*schemas(document)}


def test_definition_without_descriptions_has_standard_ones() -> None:
    shown = schemas(openapi.document(registry(definition()), LWS))["io.x-k8s.leaderworkerset.v1.LeaderWorkerSet"]
    assert "description" not in shown
    assert shown["properties"]["kind"] == {"description": "The kind of the object.", "type": "string"}
    assert "description" not in shown["properties"]["spec"]
