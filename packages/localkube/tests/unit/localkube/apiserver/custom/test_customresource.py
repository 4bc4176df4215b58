"""Tests the conversion of a CRD to a kind, with the LeaderWorkerSet CRD as the example."""

from datetime import UTC, datetime
from typing import Any

import pytest
from testkit import customkind

from localkube.apiserver.builtin.extensions import DEFINITION
from localkube.apiserver.custom.customresource import kind_from_crd
from localkube.apiserver.model.kind import Kind, ScalePaths, UndecodableError

Object = dict[str, Any]
DEFINITIONS = DEFINITION.kind()


@pytest.fixture(name="kind", scope="module")
def _kind() -> Kind:
    return kind_from_crd(DEFINITIONS.prepare("create", customkind.definition(), None))


def leaderworkerset(**spec: Any) -> Object:
    template = {
        "workerTemplate": {"spec": {"containers": [{"name": "c", "image": "x", "ports": [{"containerPort": 1}]}]}}
    }
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"leaderWorkerTemplate": template} | spec,
    }


def test_kind_has_the_names_and_subresources_of_its_definition(kind: Kind) -> None:
    """The names, the scope and the subresources come from the CRD (R-API-1, R-API-2, R-API-3)."""
    assert (kind.resource.group_resource, kind.singular, kind.short_names) == (
        "leaderworkersets.leaderworkerset.x-k8s.io", "leaderworkerset", ("lws",),
    )  # fmt: skip
    assert kind.has_status
    assert kind.scale == ScalePaths(".spec.replicas", ".status.replicas", ".status.hpaPodSelector")
    assert [column.name for column in kind.columns] == ["Name", "Ready", "Desired", "Up-to-date", "Age"]


def test_metadata_is_validated_as_for_built_in_kinds(kind: Kind) -> None:
    with pytest.raises(UndecodableError, match=r"ObjectMeta\.metadata\.labels"):
        kind.prepare("create", leaderworkerset() | {"metadata": {"labels": {"a": 1}}}, None)
    found = kind.prepare("create", leaderworkerset() | {"metadata": {"name": "A", "namespace": "default"}}, None)
    assert [error.path for error in kind.validate("create", found, None)] == ["metadata.name"]


def test_generation_counts_all_content_without_status(kind: Kind) -> None:
    definition = DEFINITIONS.prepare("create", customkind.definition(), None)
    (version,) = definition["spec"]["versions"]
    definition["spec"]["versions"] = [{name: value for name, value in version.items() if name != "subresources"}]
    plain = kind_from_crd(definition)
    stored = plain.prepare("create", leaderworkerset() | {"status": {"replicas": 1}}, None)
    assert stored["status"] == {"replicas": 1}
    assert plain.prepare("update", stored | {"status": {"replicas": 2}}, stored)["metadata"]["generation"] == 2


def test_columns_are_blank_for_missing_values(kind: Kind) -> None:
    """kubectl displays an empty READY cell instead of 0 (R-API-10)."""
    obj = leaderworkerset(replicas=2) | {"metadata": {"name": "web", "creationTimestamp": "2026-01-01T00:00:00Z"}}
    now = datetime(2026, 1, 1, 0, 3, 10, tzinfo=UTC)
    assert kind.cells(obj, now) == ["web", None, 2, None, "3m10s"]
    assert kind.cells(obj | {"status": {"readyReplicas": 1}}, now)[1] == 1


def test_columns_of_other_types_are_text() -> None:
    declared = [
        {"name": "List", "type": "string", "jsonPath": ".spec.list[*]"},
        {"name": "Flag", "type": "boolean", "jsonPath": ".spec.flag"},
        {"name": "Text", "type": "string", "jsonPath": ".spec.flag"},
        {"name": "Object", "type": "string", "jsonPath": ".spec.object"},
        {"name": "Ninth", "type": "string", "jsonPath": ".spec.list[9]"},
    ]
    kind = kind_from_crd(
        DEFINITIONS.prepare("create", definition(versions=[VERSION | {"additionalPrinterColumns": declared}]), None)
    )
    obj = {"metadata": {"name": "a"}, "spec": {"list": [1, "b"], "flag": True, "object": {"x": 1}}}
    assert kind.cells(obj, datetime(2026, 1, 1, tzinfo=UTC)) == ["a", "1,b", True, "true", '{"x":1}', None]
    assert [column.name for column in kind_from_crd(definition()).columns] == ["Name", "Age"]


def definition(schema: Object | None = None, **spec: Any) -> Object:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema or {"type": "object"}},
    }
    named = {"plural": "things", "kind": "Thing"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": named, "versions": [version]} | spec,
    }


def test_unsupported_validation_rules_are_reported() -> None:
    rules = {"x-kubernetes-validations": [{"rule": "self.a > 0"}]}
    schema = {"type": "object", "properties": {"spec": {"type": "object"} | rules}}
    found = DEFINITIONS.prepare("create", definition(schema), None)
    assert found["status"]["conditions"][-1]["message"] == (
        "this API server does not evaluate x-kubernetes-validations: v1.spec"
    )


VERSION: Object = definition()["spec"]["versions"][0]
ROOT = "spec.versions[0].schema.openAPIV3Schema"
ERRORS: list[tuple[Object, str]] = [
    (definition() | {"metadata": {"name": "x"}}, 'metadata.name: Invalid value: "x": must be spec.names.plural+"."+spec.group'),
    (definition(scope="World"), 'spec.scope: Unsupported value: "World": supported values: "Cluster", "Namespaced"'),
    (definition(group="nodot"), 'spec.group: Invalid value: "nodot": should be a domain with at least one dot'),
    (definition(names={"plural": "things"}), "spec.names.kind: Required value"),
    (definition(names={"plural": "things", "kind": "T", "listKind": "T"}), 'spec.names.listKind: Invalid value: "T": kind and listKind may not be the same'),
    (definition(versions=[]), "spec.versions: Required value: must have exactly one version marked as storage version"),
    (definition(versions=[{"name": "v1", "served": True, "storage": True}]), f"{ROOT}: Required value: schemas are required"),
    (definition(versions=[{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}, {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": {"type": "object"}}}]), "spec.versions[1].served: Forbidden: only the storage version can be served by this API server"),
    (definition({"type": "string"}), f'{ROOT}.type: Invalid value: "string": must be object at the root'),
    (definition({"type": "object", "properties": {"a": {}}}), f"{ROOT}.properties[a].type: Required value: must not be empty for specified object fields"),
    (definition({"type": "object", "properties": {"a": {"type": "array"}}}), f"{ROOT}.properties[a].items: Required value: must be specified"),
    (definition({"type": "object", "properties": {"a": {"type": "string", "$ref": "#/x"}}}), f"{ROOT}.properties[a].$ref: Forbidden: $ref is not supported"),
    (definition({"type": "object", "properties": {"a": {"type": "string", "default": 3}}}), f'{ROOT}.properties[a].default: Invalid value: "integer": {ROOT}.properties[a].default in body must be of type string: "integer"'),
    (definition({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"}}}), f"{ROOT}.properties[a].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"),
    (definition(group=""), "spec.group: Required value"),
    (definition(group="a.B"), 'spec.group: Invalid value: "a.B": a lowercase RFC 1123 subdomain must consist of'),
    (definition(names={"plural": "2things", "kind": "Thing"}), 'spec.names.plural: Invalid value: "2things": a DNS-1035 label must consist of'),
    (definition(versions=[{"name": "v1", "served": True, "storage": False}]), 'spec.versions: Invalid value: ["v1"]: must have exactly one version marked as storage version'),
    (definition(versions=[{"name": "V1", "served": True, "storage": True}]), 'spec.versions[0].name: Invalid value: "V1": a DNS-1035 label must consist of'),
    (definition(versions=[VERSION | {"additionalPrinterColumns": [{"type": "text", "jsonPath": "x"}]}]), 'spec.versions[0].additionalPrinterColumns[0].type: Unsupported value: "text"'),
    (definition(versions=[VERSION | {"additionalPrinterColumns": [{"type": "string", "jsonPath": "x"}]}]), "spec.versions[0].additionalPrinterColumns[0].jsonPath: Invalid value: \"x\": 'x' is invalid in 'x'"),
    (definition(versions=[VERSION | {"subresources": {"scale": {"specReplicasPath": ".x", "statusReplicasPath": ".status.r"}}}]), 'spec.versions[0].subresources.scale.specReplicasPath: Invalid value: ".x": should be a json path under .spec'),
    (definition({"type": "object", "properties": {"a": {"type": "text"}}}), f'{ROOT}.properties[a].type: Unsupported value: "text"'),
    (definition({"type": "object", "properties": {"a": {"type": "string", "x-kubernetes-embedded-resource": True}}}), f'{ROOT}.properties[a].type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true'),
    (definition({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}), f"{ROOT}.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"),
    (definition({"type": "object", "additionalProperties": {"type": "array", "items": {}, "uniqueItems": True}}), f"{ROOT}.additionalProperties.uniqueItems: Forbidden"),
    (definition({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}), f'{ROOT}.properties[a].pattern: Invalid value: "(": must be a valid regular expression'),
    (definition({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}}}), f'{ROOT}.properties[a].x-kubernetes-list-map-keys[0]: Not found: "k"'),
    (definition({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string", "default": 1}}}}), f"{ROOT}.properties[a].items.default: Invalid value"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "text"), ERRORS, ids=[text[:70] for _, text in ERRORS])
def test_invalid_definition_is_rejected(given: Object, text: str) -> None:
    errors = DEFINITIONS.validate("create", DEFINITIONS.prepare("create", given, None), None)
    assert any(str(error).startswith(text) for error in errors), list(map(str, errors))


def test_immutable_fields_of_a_definition_are_rejected() -> None:
    stored = DEFINITIONS.prepare("create", definition(), None)
    changed = DEFINITIONS.prepare("update", definition(scope="Cluster"), stored)
    assert 'spec.scope: Invalid value: "Cluster": field is immutable' in map(
        str, DEFINITIONS.validate("update", changed, stored)
    )


class Unread(dict[str, Any]):
    """A mapping that raises an error if it is iterated."""

    def items(self) -> Any:
        raise AssertionError("the schema was read")


def test_schema_of_a_kind_is_built_once_when_needed() -> None:
    """A large CRD of an unused kind must not delay the cluster start."""
    definition = DEFINITIONS.prepare("create", customkind.definition(), None)
    kind = kind_from_crd(definition)
    assert kind.schema is kind.schema
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"] = Unread(schema["properties"])
    unwritten = kind_from_crd(definition)
    with pytest.raises(AssertionError, match="the schema was read"):
        _ = unwritten.schema
