"""Tests that no decision is quadratic. Twice the input needs at most about twice the work in each case.

A user who may create one LeaderWorkerSet decides how large it is, and one decision must not stop all others. The work
is counted in executed lines, which do not depend on the machine. `bench.core decisions` measures how long the largest
objects take, including searches and copies in C.
"""

from functools import partial

import pytest
from testkit import work
from tests.property.growth.recipes import RECIPES, SETS, Recipe, decisions
from tests.property.growth.shapes import SHAPES, LargeSet

MOST = 2.2
"""The maximum growth factor for twice the input."""

SLACK = 100
"""The number of executed lines that is added to the limit, so that small inputs do not fail."""


def test_every_decision_has_a_recipe() -> None:
    """Every `reconcile` of the core has an entry in `recipes.py`, so that its work is measured."""
    assert {*RECIPES, SETS} >= decisions() > set()


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_input_executes_at_most_twice_the_lines(shape: str) -> None:
    grown = {}
    for name, recipe in RECIPES.items():
        once, twice = (lines(recipe, LargeSet(shape, size)) for size in (100, 200))
        if twice > MOST * once + SLACK:
            grown[name] = (once, twice)
    assert not grown


def lines(recipe: Recipe, world: LargeSet) -> int:
    recipe(world)  # the first call creates the objects
    return work.lines(partial(recipe, world))
