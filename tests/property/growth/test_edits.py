"""An edit of a large LeaderWorkerSet costs what it changes; what stays is compared, hashed and written in C."""

from dataclasses import replace
from functools import partial
from typing import Final

import pytest
from tests import builders
from tests.property.growth import work
from tests.property.growth.shapes import World
from tests.property.growth.test_settled import SHAPES, settle

from kuberuntime.objects import fnv
from leaderworkerset.core.leaderworkerset.reconcile import ObservedLeaderWorkerSet, decide
from leaderworkerset.core.leaderworkerset.revisions import content_hash

SIZES = (1_500, 3_000)
"""How many there are of what a shape is about. Both are hashed in lanes."""

LINES: Final = {"labels": 5.0}
"""Lines of Python that one more costs; of other shapes none."""


def edited(world: World) -> ObservedLeaderWorkerSet:
    return replace(settle(world), leaderworkerset=world.edited)


def lines(world: World) -> int:
    """Return how many lines a decision about an edit executes, without those of the hash, which grow with the bytes."""
    return work.lines(partial(decide, edited(world), builders.NOW)) - work.lines(partial(content_hash, world.data))


@pytest.mark.parametrize("shape", SHAPES)
def test_an_edit_runs_little_python_for_what_it_leaves_alone(shape: str) -> None:
    worlds = [World(shape, size) for size in SIZES]
    assert min(len(world.data) for world in worlds) > fnv.LONG

    less, more = map(lines, worlds)

    assert more - less <= LINES.get(shape, 0) * (SIZES[1] - SIZES[0])
