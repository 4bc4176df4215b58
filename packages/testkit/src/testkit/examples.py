"""How much is tried: little in `make test`, as much as the environment says in a long run.

`EXAMPLES=20` multiplies what hypothesis tries of every property by 20. `THOROUGH=1` is what `make nightly` sets: it also
tries what seldom breaks.
"""

import os
from typing import Final

import hypothesis

IS_THOROUGH: Final = bool(os.environ.get("THOROUGH"))

USUAL: Final = 50
"""Examples of a property without its own number."""


def examples(usual: int) -> int:
    """Return how many examples to try: `usual` many, or as many times more as EXAMPLES says.

    >>> os.environ.get("EXAMPLES") or examples(30)
    30
    """
    return usual * int(os.environ.get("EXAMPLES") or 1)


def load_profile() -> None:
    """Use `USUAL` examples for properties without a number, and no deadline, because the machine may be busy."""
    hypothesis.settings.register_profile("tests", deadline=None, max_examples=examples(USUAL))
    hypothesis.settings.load_profile("tests")
