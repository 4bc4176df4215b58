"""Tests the Go types of LeaderWorkerSets with golden revisions of the Go controller and recorded types (R-REV-6)."""

import json
from pathlib import Path
from typing import Any

import pytest

from kuberuntime.objects.gotypes.canonicaljson import canonical_json
from kuberuntime.objects.gotypes.declarations import KUBERNETES
from kuberuntime.objects.gotypes.mismatch import GoTypeError
from leaderworkerset.api.fieldtypes import TYPES, round_trip

VECTORS = Path(__file__).parents[3] / "vectors"
REVISIONS = json.loads((VECTORS / "lws-revision-vectors.json").read_text())
RECORDED_TYPES = json.loads((VECTORS / "go-json-types.json").read_text())


@pytest.mark.parametrize("vector", REVISIONS, ids=lambda vector: vector["input"]["metadata"]["name"])
def test_revision_data_has_the_bytes_of_the_go_controller(vector: dict[str, Any]) -> None:
    """Revision data equals the bytes of the Go controller (R-REV-4, R-REV-6, R-REV-9)."""
    spec = vector["input"]["spec"]
    network = spec.get("networkConfig") or {"subdomainPolicy": "Shared"}
    data = {
        "spec": {
            "leaderWorkerTemplate": round_trip("LeaderWorkerTemplate", spec["leaderWorkerTemplate"])
            | {"$patch": "replace"},
            "networkConfig": round_trip("NetworkConfig", network) | {"$patch": "replace"},
        }
    }
    assert canonical_json(data).decode() == vector["dataRaw"]


ADDED: frozenset[str] = frozenset(
    {
        "LeaderWorkerSetSpec.groupIdentity",
        "LeaderWorkerSetSpec.groupReplacementPolicy",
        "LeaderWorkerSetSpec.podTerminationPolicy",
        "LeaderWorkerSetSpec.scheduling",
        "LeaderWorkerTemplate.maxGroupRestarts",
    }
)
"""Fields that the recorded types do not contain, such as `SubGroupPolicy.note`."""


def test_packaged_types_equal_the_recorded_types() -> None:
    def notation(field: dict[str, Any]) -> str:
        go_type = field["type"].replace("struct:", "").replace("list<", "[]").replace("map<", "map[string]")
        options = [name for name in ("omitempty", "omitzero") if field.get(name)]
        return ",".join([("*" if field.get("ptr") else "") + go_type.rstrip(">"), *options])

    expected = {name: {field["name"]: notation(field) for field in fields} for name, fields in RECORDED_TYPES.items()}
    found = KUBERNETES.own_types | TYPES.own_types
    added = {
        f"{name}.{field}" for name in found.keys() & expected for field in found[name].keys() ^ expected[name].keys()
    }
    new = {name for name in found.keys() - expected if "Scheduling" in name or name.startswith("Workload")}
    assert added == ADDED
    assert found == expected | {name: found[name] for name in {one.partition(".")[0] for one in ADDED} | new}
    assert not KUBERNETES.own_types.keys() & TYPES.own_types.keys()


def test_zero_value_of_every_type_round_trips_twice() -> None:
    zeros = {name: round_trip(name, None) for name in RECORDED_TYPES}
    assert {name: round_trip(name, zero) for name, zero in zeros.items()} == zeros


def test_wrong_type_in_a_pod_template_is_named_by_its_full_path() -> None:
    template = {"workerTemplate": {"spec": {"containers": [{"name": 7}]}}}
    with pytest.raises(
        GoTypeError, match=r"^spec\.leaderWorkerTemplate\.workerTemplate\.spec\.containers\[0\]\.name: "
    ):
        round_trip("LeaderWorkerSet", {"spec": {"leaderWorkerTemplate": template}})
