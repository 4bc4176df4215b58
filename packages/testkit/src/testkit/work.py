"""The work of a call: executed lines, independent of the machine, and processor time, which includes C code."""

import gc
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines(call: Callable[[], object]) -> int:
    """Return how many lines of Python the call executes, without those of garbage collections."""
    executed = 0

    def count(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal executed
        executed += event == "line"
        return count

    before = sys.gettrace()
    gc.disable()
    sys.settrace(count)
    try:
        call()
    finally:
        sys.settrace(before)
        gc.enable()
    return executed


def seconds(call: Callable[[], object], runs: int = 3) -> float:
    """Return the processor time of the fastest of some runs."""
    return min(_run(call) for _ in range(runs))


def _run(call: Callable[[], object]) -> float:
    gc.disable()  # no collection before it: with all that other tests left, that took longer than most calls
    began = time.process_time()
    try:
        call()
        return time.process_time() - began
    finally:
        gc.enable()
