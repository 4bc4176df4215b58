"""Selects the seeds of fuzzers and simulated scenarios.

`make test` uses few, and long runs set the environment variable SEEDS.

`SEEDS=500` tries the seeds 0 to 499 of each, `SEEDS=1200-1300` those of a range, `SEEDS=7-8` only seed 7.
"""

import os
from collections.abc import Iterable
from typing import Any

import pytest


def seeds(usual: int) -> range:
    """Return the first `usual` seeds, or the seeds in SEEDS if it is set.

    >>> os.environ.get("SEEDS") or seeds(3)
    range(0, 3)
    """
    asked = os.environ.get("SEEDS", "")
    if not asked:
        return range(usual)
    first, _, end = asked.rpartition("-")
    return range(int(first or 0), int(end))


def first_tier(values: Iterable[Any], most: int = 1) -> list[Any]:
    """Return the parameters of a test, of which the first tier runs only the first `most`."""
    return [
        value if number < most else pytest.param(value, marks=pytest.mark.long) for number, value in enumerate(values)
    ]
