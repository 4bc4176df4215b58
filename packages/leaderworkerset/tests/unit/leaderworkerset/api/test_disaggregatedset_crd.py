"""Tests the CRDs of DisaggregatedSets and their role scalers (R-DS-1 to R-DS-6)."""

import json
from collections.abc import Iterator
from typing import Any

from testkit.repository import ROOT

from leaderworkerset.api import disaggregatedset_crd as crd
from leaderworkerset.api import schema

DOCUMENT = json.loads((ROOT / "deploy/openapi/core-v1.json").read_text())
SETS, SCALERS = crd.disaggregatedset_crd(), crd.role_scaler_crd()


def version(definition: dict[str, Any]) -> dict[str, Any]:
    (one,) = definition["spec"]["versions"]
    assert isinstance(one, dict)
    return one


def at(definition: dict[str, Any], path: str) -> dict[str, Any]:
    """Return the schema at a path. `*` represents the items of a list."""
    found: dict[str, Any] = version(definition)["schema"]["openAPIV3Schema"]
    for name in path.split("."):
        found = found["items"] if name == "*" else found["properties"][name]
    return found


def fields(shape: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for name, child in shape.get("properties", {}).items():
        yield f"{path}.{name}", child
        yield from fields(child, f"{path}.{name}")
    if "items" in shape:
        yield from fields(shape["items"], f"{path}[]")


def test_definitions_have_names_and_columns() -> None:
    """The CRDs have names and columns (R-DS-1)."""
    assert SETS["metadata"]["name"] == "disaggregatedsets.disaggregatedset.x-k8s.io"
    assert "shortNames" not in SETS["spec"]["names"]
    assert version(SETS)["subresources"] == {"status": {}}
    assert SCALERS["metadata"]["name"] == "disaggregatedsetrolescalers.disaggregatedset.x-k8s.io"
    assert SCALERS["spec"]["names"]["shortNames"] == ["dsrs"]
    columns = [(one["name"], one["type"], one["jsonPath"]) for one in version(SCALERS)["additionalPrinterColumns"]]
    assert columns == [
        ("Desired", "integer", ".spec.replicas"),
        ("Current", "integer", ".status.replicas"),
        ("Age", "date", ".metadata.creationTimestamp"),
    ]


def test_role_scaler_has_a_scale_subresource() -> None:
    """The number of replicas is always in the status (R-DS-2, R-DS-6)."""
    assert version(SCALERS)["subresources"]["scale"] == {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    assert at(SCALERS, "spec.replicas") == {"type": "integer", "format": "int32", "default": 0, "minimum": 0}
    assert at(SCALERS, "spec")["required"] == ["replicas"]


def test_roles_have_bounds_and_a_map_key() -> None:
    """A DisaggregatedSet has two to ten roles with different names and LeaderWorkerSet specs (R-DS-3)."""
    roles = at(SETS, "spec.roles")
    assert (roles["minItems"], roles["maxItems"]) == (2, 10)
    assert (roles["x-kubernetes-list-type"], roles["x-kubernetes-list-map-keys"]) == ("map", ["name"])
    assert at(SETS, "spec.roles.*")["required"] == ["name"]
    assert at(SETS, "spec.roles.*.name")["maxLength"] == 63
    assert at(SETS, "spec.roles.*.scaling.mode")["default"] == "Static"
    assert at(SETS, "spec.roles.*.spec") == schema.schema_of("LeaderWorkerSetSpec")
    assert "default" not in at(SETS, "spec.roles.*.scaling")


def test_slices_and_placement_have_bounds_and_values() -> None:
    """Slices and placement have limits and valid values (R-DS-3)."""
    slices = at(SETS, "spec.slices")
    assert (slices["default"], slices["minimum"], slices["maximum"]) == (1, 1, 100)
    assert at(SETS, "spec.placementPolicy.type")["enum"] == ["None", "ExclusiveSlice", "ExclusiveTopology"]


def test_replicas_rule_rejects_zeros_of_some_roles_only() -> None:
    """The replicas rule rejects zeros in only some roles (R-DS-4)."""
    (rule,) = at(SETS, "spec")["x-kubernetes-validations"]
    assert "zero for all" in rule["message"]


def test_full_definition_adds_descriptions_only() -> None:
    for slim, full in ((SETS, crd.describe_disaggregatedset(DOCUMENT)), (SCALERS, crd.describe_role_scaler(DOCUMENT))):
        roots = [version(one)["schema"]["openAPIV3Schema"] for one in (slim, full)]
        assert [path for path, _ in fields(roots[0])] == [path for path, _ in fields(roots[1])]
        assert roots[1]["description"]
        own = {".metadata"} | {
            path for path, _ in fields(roots[1]) if ".metadata." in path or path.endswith(".metadata")
        }
        own |= {path for path, _ in fields(roots[1]) if path.startswith(".spec.roles[].spec.")}  # of LeaderWorkerSets
        wordless = [path for path, field in fields(roots[1]) if not field.get("description") and path not in own]
        assert wordless == [], "describe them in TEXTS or SCALER_TEXTS of api/disaggregatedset_crd.py"
