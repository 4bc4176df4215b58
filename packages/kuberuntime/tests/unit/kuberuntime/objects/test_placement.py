"""Tests the pod spec fields that restrict the nodes of a pod."""

import pytest

from kuberuntime.objects import placement
from kuberuntime.objects.meta import JSONObject

TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "value": "yes"}, True),
        ({"key": "gpu", "value": "no"}, False),
        ({"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_toleration_matches_its_taints(toleration: JSONObject, expected: bool) -> None:
    (one,) = placement.read_tolerations({"tolerations": [toleration]})

    assert one.tolerates(TAINT) is expected


def test_node_must_match_all_parts_of_one_term() -> None:
    terms = [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]},
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n7"]}]},
        {},
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}

    found = placement.read_node_terms({"affinity": {"nodeAffinity": required}})

    assert found is not None
    assert [one.matches("n1", {"zone": "a"}) for one in found] == [True, False, False]
    assert [one.matches("n7", {"zone": "c"}) for one in found] == [False, True, False]


def test_malformed_term_matches_no_node_and_has_an_error() -> None:
    """API servers store `Gt` with a string. kube-scheduler ignores such a term and evaluates the others."""
    term = {"matchExpressions": [{"key": "zone", "operator": "Gt", "values": ["abc"]}]}

    found = placement.read_node_term(term)

    assert not found.matches("n1", {"zone": "7"})
    assert "operator Gt requires one integer" in found.error


def test_pod_without_requirements_matches_every_node() -> None:
    assert placement.read_node_terms({}) is None
    assert placement.read_node_selector({}) == ()
    assert placement.read_tolerations({}) == ()


def test_node_selector_requires_each_label() -> None:
    (requirement,) = placement.read_node_selector({"nodeSelector": {"pool": "gpu"}})

    assert requirement.matches({"pool": "gpu"})
    assert not requirement.matches({})
