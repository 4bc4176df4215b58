"""Tests that the cost of an unchanged LeaderWorkerSet does not depend on its size."""

from functools import partial

import pytest
from msgspec.structs import replace
from testkit import work
from tests import builders
from tests.decisions import decide
from tests.property.growth.shapes import LargeSet

from leaderworkerset.core.leaderworkerset.cachedapply import Identity, LastApply
from leaderworkerset.core.leaderworkerset.decision import ObservedLeaderWorkerSet, PreviousResults

SHAPES = ("claims", "labels", "ports", "quantities", "variables", "volumes")


def settle(world: LargeSet) -> ObservedLeaderWorkerSet:
    """Return the observation after the StatefulSet was applied, with the cached result of the apply."""
    decision = decide(world.observed, builders.NOW)
    assert decision.source is not None
    source = decision.source
    metadata = world.statefulset["metadata"] | {"generation": 1}
    rolling = {"partition": source.partition}
    spec = world.statefulset["spec"] | {"replicas": source.replicas, "updateStrategy": {"rollingUpdate": rolling}}
    live = world.statefulset | {"metadata": metadata, "spec": spec}
    return replace(
        world.observed,
        leader_workload=live,
        service=builders.SETTLED,
        known=PreviousResults(
            revision_generation=decision.revision_generation, applied=LastApply(source, Identity.from_object(live))
        ),
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_unchanged_set_costs_the_same_at_any_size(shape: str) -> None:
    small, large = (settle(LargeSet(shape, number)) for number in (3, 300))

    assert work.lines(partial(decide, large, builders.NOW)) == work.lines(partial(decide, small, builders.NOW))
