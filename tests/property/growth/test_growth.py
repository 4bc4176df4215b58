"""No decision is quadratic: twice the input is at most about twice the work, for every function and in every shape.

Whoever may create one LeaderWorkerSet chooses how large it is, and one decision must not stop all others. The largest
objects there can be, and how long they take, are measured in `bench.decisions`.
"""

from functools import partial

import pytest
from tests.property.growth import work
from tests.property.growth.recipes import RECIPES, functions
from tests.property.growth.shapes import SHAPES, World

MOST = 2.2
"""What twice the input may cost."""

SLACK = 100
"""Lines of Python, or times 10 microseconds, that do not matter."""

WHOLE_DECISIONS = (
    "core.leaderworkerset.reconcile.reconcile",
    "core.leaderworkerset.revisions.resolve",
    "core.pod.reconcile.reconcile",
    "webhooks.review.answer",
)

TIMES = 8
MOST_TIME = 32.0
"""What eight times the input may cost in processor time; the square would be 64.

What lives on a heap that has room for it costs less than what needs new memory each time: up to 17 is linear.
"""

ATTEMPTS = 3


def test_every_public_function_has_a_recipe() -> None:
    """Give a new function of the core an entry in `recipes.py`, so that it is measured."""
    assert set(RECIPES) == functions()


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_input_executes_at_most_twice_the_lines(shape: str) -> None:
    worlds = [World(shape, size) for size in (100, 200)]
    grown = {}
    for name, recipe in RECIPES.items():
        for world in worlds:
            recipe(world)  # builds what the world holds
        once, twice = (work.lines(partial(recipe, world)) for world in worlds)
        if twice > MOST * once + SLACK:
            grown[name] = (once, twice)
    assert not grown


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_the_time_grows_by_much_less_than_the_square(shape: str) -> None:
    """Lines do not count what is searched and copied in C."""
    size = 3_000 if shape.startswith("long") else 1_000
    worlds = [World(shape, size), World(shape, TIMES * size)]
    grown = {name: ratio for name in WHOLE_DECISIONS if (ratio := time_ratio(name, worlds)) > MOST_TIME}
    assert not grown


def time_ratio(name: str, worlds: list[World]) -> float:
    """Return by how much the time grows; measured again where that is too much, since others use the processor, too."""
    calls = [partial(RECIPES[name], world) for world in worlds]
    for call in calls:
        call()
    ratio = MOST_TIME + 1
    for _ in range(ATTEMPTS):
        little, much = (work.seconds(call) for call in calls)
        ratio = min(ratio, much / (little + SLACK * 1e-5))
        if ratio <= MOST_TIME:
            break
    return ratio
