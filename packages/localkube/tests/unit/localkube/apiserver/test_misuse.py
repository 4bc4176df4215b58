"""Tests that malformed requests are rejected as client errors, or stored as in kube-apiserver."""

import json
from typing import Any

import pytest
from tests.fuzz.specimens import CRD, WEBHOOKS
from tests.unit.localkube.apiserver.harness import CRDS, Api

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


def crd(schema: Any) -> dict[str, Any]:
    """Return a CRD with this schema."""
    found: dict[str, Any] = json.loads(json.dumps(CRD))
    found["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    return found


def properties(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


@pytest.mark.parametrize(
    "schema",
    [
        True, "x", 5, properties(a=5), {"type": "object", "properties": 5}, {"type": "object", "required": [5]},
        properties(a={"type": "string", "pattern": 5}), properties(a={"type": "string", "minLength": "x"}), properties(a={"type": "integer", "minimum": "x", "default": 1}),
        properties(a={"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": 5}),
        properties(a={"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {"type": 5}}),
    ],
    ids=str,
)  # fmt: skip
async def test_schemas_with_wrong_types_are_rejected(api: Api, schema: Any) -> None:
    answer = await api.create(CRDS, crd(schema))
    assert answer.refusal[:2] == (400, "BadRequest")
    assert "cannot be handled as a CustomResourceDefinition" in answer["message"]


@pytest.mark.parametrize(
    "selector", [{"matchLabels": {"a": "::"}}, {"matchExpressions": [{"key": "", "operator": "x"}]}], ids=str
)
@pytest.mark.parametrize("field", ["objectSelector", "namespaceSelector"])
async def test_webhook_with_an_invalid_selector_is_rejected(api: Api, field: str, selector: Any) -> None:
    answer = await api.create(HOOKS, {"metadata": {"name": "one"}, "webhooks": [WEBHOOKS[0] | {field: selector}]})
    assert answer.refusal[:2] == (422, "Invalid")
    assert f"webhooks[0].{field}" in answer["message"]
