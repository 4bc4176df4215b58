"""Handles signals for diagnostics. SIGUSR1 logs stacks and memory, and SIGUSR2 toggles debug logs.

The interpreter writes the stacks of threads immediately, even while the event loop is blocked. The event loop logs the
stacks of tasks and the largest memory usages.
"""

import asyncio
import faulthandler
import gc
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import structlog

STATUS: Final = Path("/proc/self/status")
MEMORY: Final = ("VmHWM", "VmRSS", "VmSwap", "Threads")
TYPES: Final = 20
"""The maximum number of listed object types, most frequent first."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@contextmanager
def handle_signals(toggle_debug: Callable[[], None]) -> Iterator[None]:
    """Handle SIGUSR1 and SIGUSR2 while the context is active. An event loop must be running."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, report)
    loop.add_signal_handler(signal.SIGUSR2, toggle_debug)
    # The event loop's handler is called after the interpreter's handler, which does not need an event loop.
    faulthandler.register(signal.SIGUSR1, file=sys.__stderr__ or sys.stderr, all_threads=True, chain=True)
    try:
        yield
    finally:
        faulthandler.unregister(signal.SIGUSR1)
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            loop.remove_signal_handler(number)


def report() -> None:
    """Log one line for each task, and one line about memory."""
    for task in sorted(asyncio.all_tasks(), key=asyncio.Task.get_name):
        frames = [f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}" for frame in task.get_stack()]
        log.info("task", logger="diagnostics", task=task.get_name(), coroutine=str(task.get_coro()), stack=frames)
    types = Counter(type(obj).__qualname__ for obj in gc.get_objects())
    log.info(
        "memory", logger="diagnostics", process=_process(), objects=types.total(), types=dict(types.most_common(TYPES))
    )


def _process() -> dict[str, str]:
    fields = (line.partition(":") for line in STATUS.read_text().splitlines()) if STATUS.exists() else ()
    return {name: text.strip() for name, _, text in fields if name in MEMORY}
