"""Tests exclusive topology."""

import pytest
from tests import builders

from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core.policies import exclusive
from leaderworkerset.core.policies.exclusive import PlacementError

LEADER = builders.leader_pod(builders.leaderworkerset_object(), node="n1")


def placed(topology: str) -> LeaderWorkerSet:
    annotations = {labels.EXCLUSIVE_TOPOLOGY: topology}
    return leaderworkerset.decode(builders.leaderworkerset_object(metadata={"annotations": annotations}))


def test_workers_are_placed_in_the_domain_of_their_leader() -> None:
    """Workers are placed in the topology domain of their leader (R-WSTS-6)."""
    node = {"metadata": {"name": "n1", "labels": {"rack": "r7"}}}

    assert exclusive.node_selector(placed("rack"), LEADER, node) == {"rack": "r7"}


def test_workers_have_no_node_selector_without_the_annotation() -> None:
    """The annotation takes effect even if its value is empty (R-WSTS-6)."""
    plain = leaderworkerset.decode(builders.leaderworkerset_object())

    assert exclusive.node_selector(plain, LEADER, None) == {}
    assert exclusive.is_exclusive(placed(""))
    assert not exclusive.is_exclusive(plain)


def test_missing_node_is_an_error() -> None:
    """A missing node results in an error (R-WSTS-6)."""
    with pytest.raises(PlacementError, match='getting node "n1": nodes "n1" not found'):
        exclusive.node_selector(placed("rack"), LEADER, None)


def test_differs_from_upstream_error_names_the_missing_label() -> None:
    """If a node does not have the topology label, the error contains the name of the label.

    The error message of the Go controller does not contain the name (Q-13).
    """
    with pytest.raises(PlacementError, match=r"node does not have topology label: rack \(node n1\)"):
        exclusive.node_selector(placed("rack"), LEADER, {"metadata": {"name": "n1"}})
