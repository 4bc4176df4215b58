"""Tests whether pods fit on nodes, which fields are relevant, and the number of steps."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testkit import objects
from tests.builders import node

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.quantity import NANOS
from leaderworkerset.core.gang import fit
from leaderworkerset.core.gang.fit import Need


def need(cpu: str = "1", **spec: Any) -> Need:
    return fit.read_need(objects.pod(requests={"cpu": cpu}, spec=spec))


def test_pods_fit_until_the_nodes_are_full() -> None:
    space = fit.free_space([node("a"), node("b")], {"b": {"cpu": 3 * NANOS}})

    assert space.place({need(): 5})
    assert not space.place({need(): 1})


def test_group_that_does_not_fit_reserves_no_space() -> None:
    space = fit.free_space([node("a", "3")], {})

    assert not space.place({need(): 2, need("2"): 1})
    assert not space.place({need(): 2, need("2"): 1})
    assert space.place({need(): 3})


def test_missing_resource_of_a_node_counts_as_zero() -> None:
    wanting = fit.read_need(objects.pod(requests={"nvidia.com/gpu": "1"}))

    assert not fit.free_space([node()], {}).place({wanting: 1})
    assert fit.free_space([node()], {}).place({need("0"): 10})


def test_node_accepts_no_more_pods_than_its_capacity() -> None:
    assert not fit.free_space([node(cpu="100")], {}).place({need("0"): 11})
    assert not fit.free_space([node(cpu="100")], {"n": {fit.PODS: 10 * NANOS}}).place({need(): 1})


def test_overused_node_has_no_space() -> None:
    """An example is a node whose capacity was reduced."""
    assert not fit.free_space([node()], {"n": {"cpu": 9 * NANOS}}).place({need(): 1})


@pytest.mark.parametrize(
    ("kept_off", "asking"),
    [
        ({"taints": [{"key": "gpu", "effect": "NoSchedule"}]}, {"tolerations": [{"operator": "Exists"}]}),
        ({"taints": [{"key": "gpu", "effect": "NoExecute"}]}, {"tolerations": [{"operator": "Exists"}]}),
        ({"unschedulable": True}, {"tolerations": [{"operator": "Exists"}]}),
    ],
    ids=["NoSchedule", "NoExecute", "cordoned"],
)
def test_tainted_node_accepts_tolerating_pods_only(kept_off: JSONObject, asking: JSONObject) -> None:
    space = fit.free_space([node(**kept_off)], {})

    assert not space.place({need(): 1})
    assert space.place({need(**asking): 1})


def test_preferred_taint_rejects_no_pod() -> None:
    assert fit.free_space([node(taints=[{"key": "a", "effect": "PreferNoSchedule"}])], {}).place({need(): 1})


def test_selectors_and_required_affinity_select_nodes() -> None:
    space = fit.free_space([node("a", "1", {"zone": "x"}), node("b", "1", {"zone": "y"})], {})
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["y"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}

    assert not space.place({need(nodeSelector={"zone": "z"}): 1})
    assert not space.place({need(nodeSelector={"zone": "x"}): 2})
    assert space.place({need(affinity={"nodeAffinity": required}): 1})
    assert not space.place({need(affinity={"nodeAffinity": required}): 1})
    assert space.place({need(nodeSelector={"zone": "x"}): 1})


def test_most_restricted_pods_are_placed_first() -> None:
    """Otherwise, an unrestricted pod would use the only node that fits another pod in its group."""
    space = fit.free_space([node("a", "1", {"gpu": "yes"}), node("b", "1")], {})

    assert space.place({need(): 1, need(nodeSelector={"gpu": "yes"}): 1})


@given(
    free=st.lists(st.integers(0, 5), min_size=1, max_size=6), sizes=st.lists(st.integers(1, 6), min_size=1, max_size=8)
)
def test_equal_pods_are_placed_exactly_while_there_is_space(free: list[int], sizes: list[int]) -> None:
    space = fit.free_space([node(str(number), str(cpu)) for number, cpu in enumerate(free)], {})
    left = sum(free)

    for size in sizes:
        fits = size <= left
        assert space.place({need(): size}) is fits
        left -= size if fits else 0


def test_pods_of_one_template_are_counted_together() -> None:
    assert fit.count_needs([objects.pod(requests={"cpu": cpu}) for cpu in "112"]) == {need(): 2, need("2"): 1}
