"""The fields of a pod's spec that decide about one node."""

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
def test_a_toleration_matches_what_it_names(toleration: JSONObject, expected: bool) -> None:
    (one,) = placement.read_tolerations({"tolerations": [toleration]})

    assert one.tolerates(TAINT) is expected


def test_a_node_has_to_fulfil_one_of_the_terms_and_all_of_its_parts() -> None:
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


def test_a_term_that_cannot_be_read_is_fulfilled_by_no_node_and_says_why() -> None:
    """API servers store `Gt` with a text; kube-scheduler ignores such a term, and reads the others."""
    term = {"matchExpressions": [{"key": "zone", "operator": "Gt", "values": ["abc"]}]}

    found = placement.read_node_term(term)

    assert not found.matches("n1", {"zone": "7"})
    assert "operator Gt needs one integer" in found.error


def test_a_pod_that_asks_for_nothing_may_run_anywhere() -> None:
    assert placement.read_node_terms({}) is None
    assert placement.read_node_selector({}) == ()
    assert placement.read_tolerations({}) == ()


def test_a_node_selector_is_a_requirement_on_each_label() -> None:
    (requirement,) = placement.read_node_selector({"nodeSelector": {"pool": "gpu"}})

    assert requirement.matches({"pool": "gpu"})
    assert not requirement.matches({})
