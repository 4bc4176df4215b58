"""Waits for effects of a process."""

import time
from collections.abc import Callable

LIMIT = 120.0


def until(condition: Callable[[], bool], what: str) -> None:
    """Poll until a condition is true."""
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {LIMIT:g} s"
        time.sleep(0.3)
