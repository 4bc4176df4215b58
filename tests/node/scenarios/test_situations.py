"""Tests situation diagnoses on real nodes from the first second. Outage tests cover the crashing programs."""

from collections.abc import Mapping

import pytest
from tests.node.cluster import NodeCluster
from tests.node.situations import sampling
from tests.node.situations.ending import ENDING
from tests.node.situations.placed import PLACED
from tests.node.situations.refused import REFUSED
from tests.node.situations.situation import Situation


@pytest.mark.parametrize("table", [ENDING, PLACED, REFUSED], ids=["ending", "placed", "refused"])
def test_causes_are_true_at_every_moment(nodes: NodeCluster, table: Mapping[str, Situation]) -> None:
    sampling.check(nodes, table)
