"""Waits for conditions that do not emit events."""

import select
import time
from collections.abc import Callable
from typing import Any


def until(check: Callable[[], Any], what: str, seconds: float = 30, *, poll: float = 0.1) -> None:
    """Wait for a condition without events by checking it every tenth of a second."""
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, f"{what} did not occur within {seconds} s"
        select.select([], [], [], poll)
