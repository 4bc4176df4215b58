"""Signals that stop a command: SIGINT, SIGTERM and SIGHUP set an event; a second SIGINT ends the process at once."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@asynccontextmanager
async def until_stopped(at_once: Callable[[], None] | None = None) -> AsyncIterator[asyncio.Event]:
    """Yield an event that a signal to stop sets; `at_once` is called before a second signal ends the process."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if stopped.is_set():
            with suppress(Exception):  # no error may keep the process from ending
                if at_once is not None:
                    at_once()
            os._exit(130)  # the second signal: end at once
        stopped.set()

    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        loop.add_signal_handler(number, stop)
    try:
        yield stopped
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number])  # the loop leaves the default
