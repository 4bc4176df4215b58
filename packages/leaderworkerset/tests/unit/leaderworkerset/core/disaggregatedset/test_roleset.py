"""Tests the copied fields, own fields, and pod placement of a role's LeaderWorkerSet.

See R-DS-16 to R-DS-18, R-DS-90.
"""

import copy
from typing import Any

import pytest
from tests.disaggregated import disaggregatedset_object, role

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.disaggregatedset import INITIAL_REPLICAS, SET_NAME, SLICE, PlacementPolicy, PlacementType
from leaderworkerset.core.disaggregatedset.roleset import RolePlace, build

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
SET = disaggregatedset_object()


def built(entry: JSONObject, *, index: int = 0, placement: PlacementPolicy | None = None) -> JSONObject:
    place = RolePlace("split", index, "28d81a04", "prefill")
    return build(SET, entry, place, replicas=3, placement=placement or PlacementPolicy())


def affinity(placement_type: PlacementType | None, index: int = 0, **template: Any) -> JSONObject:
    entry = role("prefill", 4)
    entry["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"] |= template
    found = built(entry, index=index, placement=PlacementPolicy(type=placement_type, topology="rack"))
    spec: JSONObject = found["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]
    result: JSONObject = spec.get("affinity") or {}
    return result


def expressions(terms: JSONObject) -> list[list[tuple[str, str, str]]]:
    assert all(term["topologyKey"] == "rack" for term in terms[REQUIRED])
    return [
        [
            (one["key"], one["operator"], ",".join(one.get("values", [])))
            for one in term["labelSelector"]["matchExpressions"]
        ]
        for term in terms[REQUIRED]
    ]


def test_role_set_copies_metadata_and_sets_own_labels() -> None:
    """A role's LeaderWorkerSet has copied metadata and its own labels (R-DS-16, R-DS-17, Q-1, Q-11, Q-21)."""
    own = {"labels": {"app": "mine", "team": "a"}, "annotations": {"note": "n", INITIAL_REPLICAS: "9"}, "name": "x"}
    entry = role("prefill", 4, rollout={"maxSurge": 1}, metadata=own)
    entry["spec"]["leaderWorkerTemplate"]["leaderTemplate"] = {"metadata": {"labels": {"a": "b"}}, "spec": {}}
    before = copy.deepcopy(entry)
    found = built(entry)
    assert entry == before
    assert found["metadata"]["name"] == "split-0-28d81a04-prefill"
    assert found["metadata"]["labels"] | {"app": "split-0-prefill", "team": "a"} == found["metadata"]["labels"]
    assert found["metadata"]["annotations"] == {"note": "n"}
    assert (found["spec"]["replicas"], "rolloutStrategy" in found["spec"]) == (3, False)
    template = found["spec"]["leaderWorkerTemplate"]
    assert template["leaderTemplate"]["metadata"]["labels"]["a"] == "b"
    assert template["leaderTemplate"]["metadata"]["labels"][SLICE] == "0"
    assert template["workerTemplate"]["metadata"]["labels"][SET_NAME] == "split"


def test_role_without_a_leader_template_gets_none() -> None:
    """If the role has no leader template, the LeaderWorkerSet does not have one either (R-DS-16)."""
    found = built(role("prefill"))
    assert "leaderTemplate" not in found["spec"]["leaderWorkerTemplate"]
    assert "annotations" not in found["metadata"]


@pytest.mark.parametrize("kind", [PlacementType.NONE, None])
def test_placement_policy_none_adds_no_affinity(kind: PlacementType | None) -> None:
    """The `None` placement policy does not add an affinity (R-DS-90)."""
    assert affinity(kind) == {}


def test_first_slice_avoids_labeled_slices() -> None:
    """Pods from before the introduction of slices belong to slice 0 (R-DS-90)."""
    found = affinity(PlacementType.EXCLUSIVE_SLICE)
    assert expressions(found["podAffinity"]) == [[(SET_NAME, "In", "split"), (SLICE, "In", "0")]]
    assert expressions(found["podAntiAffinity"]) == [
        [(SET_NAME, "In", "split"), (SLICE, "Exists", ""), (SLICE, "NotIn", "0")]
    ]


def test_other_slices_avoid_all_others() -> None:
    """Slices after the first one avoid all others (R-DS-90)."""
    found = affinity(PlacementType.EXCLUSIVE_SLICE, index=2)
    assert expressions(found["podAntiAffinity"]) == [[(SET_NAME, "In", "split"), (SLICE, "NotIn", "2")]]


def test_exclusive_topology_avoids_other_sets() -> None:
    """Pods with exclusive topology avoid other DisaggregatedSets (R-DS-90)."""
    found = affinity(PlacementType.EXCLUSIVE_TOPOLOGY, index=1)
    assert expressions(found["podAntiAffinity"])[1] == [
        (SET_NAME, "Exists", ""),
        (SET_NAME, "NotIn", "split"),
        (SLICE, "Exists", ""),
    ]


def test_affinity_of_the_user_is_kept() -> None:
    """The user's affinity is preserved (R-DS-90)."""
    own: JSONObject = {
        "nodeAffinity": {"x": 1},
        "podAffinity": {REQUIRED: [{"topologyKey": "rack", "labelSelector": {"matchExpressions": []}}]},
    }
    found = affinity(PlacementType.EXCLUSIVE_SLICE, affinity=own)
    assert found["nodeAffinity"] == {"x": 1}
    assert len(found["podAffinity"][REQUIRED]) == 2
    assert len(own["podAffinity"][REQUIRED]) == 1
