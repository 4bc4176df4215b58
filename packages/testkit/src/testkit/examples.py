"""Defines the number of examples and variants in tests. The environment can increase the number for long runs.

`EXAMPLES=20` multiplies the examples of every hypothesis property by 20. `THOROUGH=1`, which `make nightly` sets, adds
tests that seldom fail.
"""

import os
from typing import Final

import hypothesis

IS_THOROUGH: Final = bool(os.environ.get("THOROUGH"))

USUAL: Final = 50
"""The number of examples of a property that does not set a number."""


def examples(usual: int) -> int:
    """Return the number of examples, which is `usual` multiplied by EXAMPLES.

    >>> os.environ.get("EXAMPLES") or examples(30)
    30
    """
    return usual * int(os.environ.get("EXAMPLES") or 1)


def load_profile() -> None:
    """Run property tests with `USUAL` examples unless they specify a number, and without a deadline."""
    hypothesis.settings.register_profile("tests", deadline=None, max_examples=examples(USUAL))
    hypothesis.settings.load_profile("tests")
