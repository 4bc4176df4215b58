"""Measures executed lines, which do not depend on the machine, and CPU time, which includes C code."""

import gc
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any


def lines(call: Callable[[], object]) -> int:
    """Return the number of Python lines that the call executes. Lines of the garbage collector are not counted."""
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
    """Return the CPU time of the fastest of several runs."""
    return min(_run(call) for _ in range(runs))


def _run(call: Callable[[], object]) -> float:
    gc.disable()  # no collection before it: with all that other tests left, that took longer than most calls
    began = time.process_time()
    try:
        call()
        return time.process_time() - began
    finally:
        gc.enable()


def ends_within(seconds: float, parse: Callable[[], object]) -> bool:
    """Return whether a string is parsed, or rejected with a ValueError, within a CPU time limit.

    A longer run is interrupted.
    """
    before = signal.signal(signal.SIGPROF, _end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        with suppress(ValueError):
            parse()
    except TimeoutError:
        return False
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return True


def _end(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError
