"""Tests affinity terms for exclusive placement together with the user's terms (R-ADM-14)."""

from typing import Any

from leaderworkerset.core.policies.exclusive import with_exclusive_terms

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def place(affinity: dict[str, Any] | None) -> Any:
    pod = {"metadata": {"name": "p"}, "spec": {"affinity": affinity}}
    return with_exclusive_terms(pod, key="k", value="v", topology_key="rack")["spec"]["affinity"]


def term(topology: str) -> dict[str, Any]:
    return {"topologyKey": topology, "labelSelector": {}}


def topologies(affinity: dict[str, Any]) -> tuple[list[str], list[str]]:
    kinds = ("podAffinity", "podAntiAffinity")
    together, apart = ([item["topologyKey"] for item in affinity[kind][REQUIRED]] for kind in kinds)
    return together, apart


def test_terms_are_appended_to_those_of_the_user() -> None:
    affinity = place(
        {
            "nodeAffinity": {"x": 1},
            "podAffinity": {REQUIRED: [term("zone")], "preferredDuringSchedulingIgnoredDuringExecution": []},
            "podAntiAffinity": None,
        }
    )
    assert affinity["nodeAffinity"] == {"x": 1}
    assert "preferredDuringSchedulingIgnoredDuringExecution" in affinity["podAffinity"]
    assert topologies(affinity) == (["zone", "rack"], ["rack"])


def test_pod_with_both_kinds_of_terms_is_unchanged() -> None:
    given = {"podAffinity": {REQUIRED: [term("rack")]}, "podAntiAffinity": {REQUIRED: [term("rack")]}}
    assert place(given) == given


def test_both_terms_are_added_when_one_kind_exists() -> None:
    given = {"podAffinity": {REQUIRED: [term("rack")]}, "podAntiAffinity": {REQUIRED: [term("zone")]}}
    assert topologies(place(given)) == (["rack", "rack"], ["zone", "rack"])
