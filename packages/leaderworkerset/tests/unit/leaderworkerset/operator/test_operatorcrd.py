"""Tests the names in the LeaderWorkerSetOperator CRD, and the objects that an API server stores with it."""

from collections.abc import Mapping
from typing import Any, Final

import pytest
from tests.unit.localkube.apiserver.harness import CRDS, Api, run

from leaderworkerset.operator.operatorcrd import operator_crd

SPEC = operator_crd()["spec"]
VERSION = SPEC["versions"][0]
ROOT = VERSION["schema"]["openAPIV3Schema"]
KIND: Final = "/apis/operator.openshift.io/v1/leaderworkersetoperators"


def cluster(spec: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the `cluster` object as a client sends it."""
    head = {"apiVersion": "operator.openshift.io/v1", "kind": "LeaderWorkerSetOperator"}
    return {**head, "metadata": {"name": "cluster"}} | ({} if spec is None else {"spec": dict(spec)})


def test_definition_has_names_of_the_go_operator() -> None:
    """The CRD has the names of the Go operator (R-OP-1)."""
    assert operator_crd()["metadata"]["name"] == "leaderworkersetoperators.operator.openshift.io"
    names = {name: SPEC["names"][name] for name in ("kind", "listKind", "plural", "singular")}
    assert names == {
        "kind": "LeaderWorkerSetOperator",
        "listKind": "LeaderWorkerSetOperatorList",
        "plural": "leaderworkersetoperators",
        "singular": "leaderworkersetoperator",
    }
    assert (SPEC["group"], SPEC["scope"]) == ("operator.openshift.io", "Cluster")
    assert "conversion" not in SPEC
    assert [one["name"] for one in SPEC["versions"]] == ["v1"]
    assert (VERSION["served"], VERSION["storage"], VERSION["subresources"]) == (True, True, {"status": {}})


def test_definition_has_columns_and_a_short_name() -> None:
    """The CRD has columns and a short name (R-OP-8)."""
    columns = [(one["name"], one["jsonPath"]) for one in VERSION["additionalPrinterColumns"]]
    assert columns == [
        ("State", ".spec.managementState"),
        ("Available", '.status.conditions[?(@.type=="Available")].status'),
        ("Degraded", '.status.conditions[?(@.type=="Degraded")].status'),
        ("Version", ".status.version"),
        ("Age", ".metadata.creationTimestamp"),
    ]
    assert (SPEC["names"]["shortNames"], SPEC["names"]["categories"]) == (["lwsop"], ["operators"])


def test_definition_permits_one_object() -> None:
    """The CRD permits a single object (R-OP-2)."""
    (rule,) = ROOT["x-kubernetes-validations"]
    assert rule["rule"] == "self.metadata.name == 'cluster'"
    assert "singleton" in rule["message"]
    assert "cluster" in rule["message"]


def test_spec_is_required_and_has_the_agreed_fields() -> None:
    """The spec is required and has the agreed fields (R-OP-3, R-OP-4)."""
    assert ROOT["required"] == ["spec"]
    fields = ROOT["properties"]["spec"]["properties"]
    assert set(fields) == {
        "managementState",
        "logLevel",
        "operatorLogLevel",
        "observedConfig",
        "unsupportedConfigOverrides",
        "nodePlacement",
    }
    placement = fields["nodePlacement"]["properties"]
    assert set(placement) == {"nodeSelector", "tolerations"}
    assert {name: one["type"] for name, one in placement["tolerations"]["items"]["properties"].items()} == {
        "key": "string",
        "operator": "string",
        "value": "string",
        "effect": "string",
        "tolerationSeconds": "integer",
    }


def test_empty_spec_gets_default_levels() -> None:
    """Unknown fields are pruned by an API server.

    Free-form fields are stored unchanged, or as null (R-OP-3, R-OP-4).
    """

    async def scenario(api: Api) -> None:
        assert (await api.create(CRDS, operator_crd())).code == 201
        missing = await api.create(KIND, cluster())
        assert missing.refusal[:2] == (422, "Invalid")
        assert "spec: Required value" in missing.refusal[2]
        free = {"observedConfig": {"a": {"b": [1]}}, "unsupportedConfigOverrides": None}
        created = await api.create(KIND, cluster({"replicas": 3, "nodePlacement": {"affinity": {}}} | free))
        assert created.code == 201
        assert created["spec"] == {"logLevel": "Normal", "operatorLogLevel": "Normal", "nodePlacement": {}} | free

    run(scenario)


@pytest.mark.parametrize(
    ("field", "valid", "invalid"),
    [
        ("managementState", ("Managed", "Unmanaged", "Force", "Removed"), ("", "managed", "Paused", "XManaged", 1)),
        ("logLevel", ("", "Normal", "Debug", "Trace", "TraceAll"), ("debug", "Verbose", 4)),
        ("operatorLogLevel", ("", "Normal", "Debug", "Trace", "TraceAll"), ("debug", "Verbose", 4)),
        ("observedConfig", ({}, None), ("text", [], 1)),
        ("unsupportedConfigOverrides", ({"a": 1}, None), ("text", [], 1)),
        (
            "nodePlacement",
            ({}, {"nodeSelector": {"a": "b"}}, {"tolerations": []}, {"tolerations": [{"tolerationSeconds": 2**40}]}),
            ({"nodeSelector": {"a": 1}}, {"tolerations": {}}, {"tolerations": [{"tolerationSeconds": "1"}]}),
        ),
    ],
)
def test_spec_fields_accept_valid_values_only(field: str, valid: tuple[Any, ...], invalid: tuple[Any, ...]) -> None:
    """Spec fields accept only valid values (R-OP-4)."""

    async def scenario(api: Api) -> None:
        await api.create(CRDS, operator_crd())
        for value in valid:
            assert (await api.create(KIND, cluster({field: value}), dryRun="All")).code == 201, value
        for value in invalid:
            refused = await api.create(KIND, cluster({field: value}), dryRun="All")
            assert refused.refusal[:2] == (422, "Invalid"), value
            assert f"spec.{field}" in refused.refusal[2]

    run(scenario)


TIME: Final = "2026-01-02T03:04:05Z"
CONDITION: Final = {"type": "Available", "status": "True", "lastTransitionTime": TIME}
GENERATION: Final = {"group": "apps", "resource": "deployments", "namespace": "n", "name": "x"}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"conditions": [CONDITION | {"type": "a.b/Theirs", "reason": "R", "message": "m"}]}, ""),
        ({"generations": [GENERATION | {"lastGeneration": 5, "hash": "h"}]}, ""),
        ({"observedGeneration": 2**40, "readyReplicas": 2, "version": "1.0.0", "latestAvailableRevision": 1}, ""),
        ({"conditions": [CONDITION, CONDITION]}, "Duplicate value"),
        ({"conditions": [CONDITION | {"status": "Maybe"}]}, "Unsupported value"),
        ({"conditions": [CONDITION | {"type": "A" * 317}]}, "316"),
        ({"conditions": [CONDITION | {"type": "not a type"}]}, "conditions[0].type"),
        ({"conditions": [{"type": "Available", "status": "True"}]}, "lastTransitionTime"),
        ({"generations": [GENERATION, GENERATION]}, "Duplicate value"),
        ({"generations": [{"group": "apps", "resource": "deployments", "namespace": "n"}]}, "generations[0].name"),
    ],
)
def test_status_fields_accept_valid_values_only(status: dict[str, Any], words: str) -> None:
    """Status fields accept only valid values (R-OP-5)."""

    async def scenario(api: Api) -> None:
        await api.create(CRDS, operator_crd())
        created = await api.create(KIND, cluster({}))
        written = await api.update(f"{KIND}/cluster/status", {**created.body, "status": status})
        if words:
            assert written.refusal[:2] == (422, "Invalid")
            assert words in written.refusal[2]
        else:
            assert written["status"] == status

    run(scenario)


def test_conditions_and_revisions_have_schema_rules() -> None:
    """The schema contains rules that the embedded API server does not evaluate (R-OP-5)."""
    fields = ROOT["properties"]["status"]["properties"]
    assert set(fields["conditions"]["items"]["properties"]) == {
        "type",
        "status",
        "lastTransitionTime",
        "reason",
        "message",
    }
    (rule,) = fields["latestAvailableRevision"]["x-kubernetes-validations"]
    assert rule["rule"] == "self >= oldSelf"
    assert (fields["readyReplicas"]["format"], fields["observedGeneration"]["format"]) == ("int32", "int64")
