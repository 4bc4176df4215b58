"""Tests that each malformed request is either rejected as a client error, or stored as in kube-apiserver."""

import json
from typing import Any

import pytest
from tests.fuzz.specimens import CRD, WEBHOOKS
from tests.unit.localkube.apiserver.harness import CONFIG_MAPS, CRDS, PODS, STATEFULSETS, Api, config_map, pod

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


def owned(fields: Any) -> dict[str, Any]:
    """Return a ConfigMap with managedFields that a client invented."""
    entry = {"manager": "a", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
    found: dict[str, Any] = config_map()
    return found | {"metadata": found["metadata"] | {"managedFields": [entry]}}


def crd(schema: Any) -> dict[str, Any]:
    """Return a CRD with this schema."""
    found: dict[str, Any] = json.loads(json.dumps(CRD))
    found["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    return found


def properties(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


FAR_TOKEN = (
    "eyJyZXZpc2lvbiI6OTk5OTk5OTk5OTk5OTk5OTk5OTksIm5hbWVzcGFjZSI6IiIsIm5hbWUiOiJhIn0"  # revision 99999999999999999999
)


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("resourceVersion", "9" * 5000), ("resourceVersion", "٣"), ("limit", "9" * 30), ("limit", "9" * 5000), ("timeoutSeconds", "9" * 5000), ("continue", FAR_TOKEN),
    ],
)  # fmt: skip
async def test_list_with_a_malformed_number_is_refused(api: Api, query: str, value: str) -> None:
    assert (await api.get(CONFIG_MAPS, **{query: value})).refusal[:2] == (400, "BadRequest")


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
async def test_schemas_with_wrong_types_are_refused(api: Api, schema: Any) -> None:
    answer = await api.create(CRDS, crd(schema))
    assert answer.refusal[:2] == (400, "BadRequest")
    assert "cannot be handled as a CustomResourceDefinition" in answer["message"]


@pytest.mark.parametrize(
    "fields", [{"f:data": "a"}, {"f:data": [0]}, {"f:data": 5}, "a", [], {"odd": {}}, {"k:{": {}}, {"v:[": {}}], ids=str
)
async def test_malformed_managed_fields_are_ignored(api: Api, fields: Any) -> None:
    created = await api.create(CONFIG_MAPS, owned(fields), fieldManager="tests")
    assert created.code == 201
    assert "a" not in [entry["manager"] for entry in created["metadata"].get("managedFields", ())]
    updated = await api.update(f"{CONFIG_MAPS}/settings", owned(fields) | {"data": {"b": "2"}}, fieldManager="tests")
    assert updated.code == 200


@pytest.mark.parametrize(
    "selector", [{"matchLabels": {"a": "::"}}, {"matchExpressions": [{"key": "", "operator": "x"}]}], ids=str
)
@pytest.mark.parametrize("field", ["objectSelector", "namespaceSelector"])
async def test_webhook_with_an_invalid_selector_is_refused(api: Api, field: str, selector: Any) -> None:
    answer = await api.create(HOOKS, {"metadata": {"name": "one"}, "webhooks": [WEBHOOKS[0] | {field: selector}]})
    assert answer.refusal[:2] == (422, "Invalid")
    assert f"webhooks[0].{field}" in answer["message"]


async def test_claim_template_without_a_name_is_refused(api: Api) -> None:
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "m", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template, "volumeClaimTemplates": [claim]}
    assert (await api.create(STATEFULSETS, {"metadata": {"name": "web"}, "spec": spec})).refusal[:2] == (
        422,
        "Invalid",
    )


async def test_patch_that_removes_all_containers_is_refused(api: Api) -> None:
    await api.create(PODS, pod())
    answer = await api.patch(f"{PODS}/web", [{"op": "replace", "path": "/spec", "value": {}}], "json-patch+json")
    assert answer.refusal[:2] == (422, "Invalid")


@pytest.mark.parametrize("seconds", [2**62, 10**12, 2**63 - 1])
async def test_pod_with_any_grace_period_can_be_deleted(api: Api, seconds: int) -> None:
    await api.create(PODS, pod(terminationGracePeriodSeconds=seconds, nodeName="n"))
    marked = await api.delete(f"{PODS}/web")
    assert (marked.code, marked["metadata"]["deletionGracePeriodSeconds"]) == (200, seconds)
    assert (await api.delete(f"{PODS}/web", gracePeriodSeconds=0)).code == 200
    assert (await api.get(f"{PODS}/web")).code == 404


async def test_integers_beyond_64_bits_are_refused(api: Api) -> None:
    assert (await api.create(PODS, pod(terminationGracePeriodSeconds=2**63))).refusal[:2] == (400, "BadRequest")
    answer = await api.delete(f"{PODS}/web", {"gracePeriodSeconds": 2**63})
    assert answer.refusal[:2] == (400, "BadRequest")


async def test_time_before_year_one_is_refused(api: Api) -> None:
    found = owned({"f:data": {}})
    found["metadata"]["managedFields"][0]["time"] = "0001-01-01T00:00:00+14:00"
    assert (await api.create(CONFIG_MAPS, found)).refusal[:2] == (400, "BadRequest")
