"""Handles stop signals. SIGINT, SIGTERM and SIGHUP set an event. A second SIGINT exits immediately."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


@asynccontextmanager
async def stop_event(at_once: Callable[[], None] | None = None) -> AsyncIterator[asyncio.Event]:
    """Yield an event that a signal sets. `at_once` is called before a second signal terminates the process."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if stopped.is_set():
            with suppress(Exception):  # an error must not prevent the process from exiting
                if at_once is not None:
                    at_once()
            os._exit(130)  # the second signal exits immediately
        stopped.set()

    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        try:
            loop.add_signal_handler(number, stop)
        except NotImplementedError:  # on Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop))
    try:
        yield stopped
    finally:
        for number in SIGNALS:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(number)
            signal.signal(number, before[number])  # the event loop restores the default handler
