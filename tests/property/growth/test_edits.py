"""A decision about a large LeaderWorkerSet runs little Python for each part of it: parts are compared, hashed and written in C.

An edit costs what it changes. Where nothing is known of what was before, all is read and compared.
"""

from dataclasses import replace
from functools import partial
from typing import Final

import pytest
from tests import builders
from tests.property.growth import work
from tests.property.growth.shapes import LargeSet
from tests.property.growth.test_settled import SHAPES, settle

from kuberuntime.objects import fnv
from leaderworkerset.core.leaderworkerset.reconcile import ObservedLeaderWorkerSet, decide
from leaderworkerset.core.leaderworkerset.revisions import content_hash

SIZES = (1_500, 3_000)
"""How many there are of what a shape is about. Both are hashed in lanes."""

LINES: Final = {"labels": 5.0}
"""Lines of Python that one more costs; of other shapes none."""


def edited(world: LargeSet) -> ObservedLeaderWorkerSet:
    return replace(settle(world), leaderworkerset=world.edited)


def lines(world: LargeSet) -> int:
    """Return how many lines a decision about an edit executes, without those of the hash, which grow with the bytes."""
    return work.lines(partial(decide, edited(world), builders.NOW)) - work.lines(partial(content_hash, world.data))


@pytest.mark.parametrize("shape", SHAPES)
def test_an_edit_runs_little_python_for_what_it_leaves_alone(shape: str) -> None:
    worlds = [LargeSet(shape, size) for size in SIZES]
    assert min(len(world.data) for world in worlds) > fnv.LONG

    less, more = map(lines, worlds)

    assert more - less <= LINES.get(shape, 0) * (SIZES[1] - SIZES[0])


FIRST: Final = {"labels": 10.0, "ports": 4.0, "quantities": 3.0, "variables": 2.0, "volumes": 18.0, "claims": 18.0}
"""Lines of Python that one more costs where nothing is known: of a port, what finds it among the fields the manager owns."""


def without_hash(world: LargeSet, observed: ObservedLeaderWorkerSet) -> int:
    hashed = 0 if observed.leader_statefulset else work.lines(partial(content_hash, world.data))
    return work.lines(partial(decide, observed, builders.NOW)) - hashed


@pytest.mark.parametrize("is_created", [False, True], ids=["first comparison", "creation"])
@pytest.mark.parametrize("shape", FIRST)
def test_what_nothing_is_known_of_runs_little_python_for_each_part(shape: str, *, is_created: bool) -> None:
    """Of ports and variables it was 60 lines each, of volumes 140."""
    counted = []
    for world in (LargeSet(shape, size) for size in SIZES):
        unknown = replace(settle(world), settled=None)
        observed = replace(unknown, leader_statefulset=None, revisions=()) if is_created else unknown
        counted.append(without_hash(world, observed))

    assert counted[1] - counted[0] <= FIRST[shape] * (SIZES[1] - SIZES[0])
