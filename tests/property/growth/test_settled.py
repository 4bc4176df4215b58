"""A LeaderWorkerSet that nobody changed costs the same however large it is."""

from dataclasses import replace
from functools import partial

import pytest
from tests import builders
from tests.property.growth import work
from tests.property.growth.shapes import LargeSet, as_live

from kuberuntime.plan import Apply
from leaderworkerset.core.leaderworkerset.reconcile import ObservedLeaderWorkerSet, decide

SHAPES = ("labels", "ports", "quantities", "variables", "volumes")


def settle(world: LargeSet) -> ObservedLeaderWorkerSet:
    """Return what is observed after the StatefulSet was applied, with what the next decision found in order."""
    plan = decide(world.observed, builders.NOW).plan
    applied = next(action.object for action in plan.actions if isinstance(action, Apply))
    observed = replace(world.observed, leader_statefulset=as_live(applied), has_shared_service=True)
    found = decide(observed, builders.NOW).settled
    assert found is not None
    return replace(observed, settled=found)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_settled_is_not_read_again(shape: str) -> None:
    small, large = (settle(LargeSet(shape, number)) for number in (3, 300))

    assert work.lines(partial(decide, large, builders.NOW)) == work.lines(partial(decide, small, builders.NOW))
