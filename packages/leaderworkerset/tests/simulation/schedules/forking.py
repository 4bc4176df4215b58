"""Branches of a running simulation: a copy of the whole process continues alone, and sends back its result.

A simulated cluster lives in one process without threads, so `fork` copies all of it: objects, pending work and timers.
Hundreds of schedules share their beginning, instead of each starting a cluster.
"""

import asyncio
import gc
import os
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import BinaryIO, Final, TypeAlias

Send: TypeAlias = Callable[[bytes], None]
"""Sends one message to the process that the branch was made from."""

FAILED: Final = 70
"""The status with which a branch ends that the simulation itself broke."""

LONGEST: Final = 600.0
"""Seconds of the processor after which a branch counts as endless: most need one or two."""


class BranchError(Exception):
    """A branch ended without an answer: the simulation is broken, not the product."""


async def branch(work: Callable[[Send], Awaitable[None]], receive: Send) -> None:
    """Run `work` in a copy of this process, and pass on its messages at once; this process waits meanwhile."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    child = os.fork()
    if child == 0:
        os.close(reading)
        asyncio._set_running_loop(loop)  # a loop belongs to the process that started it
        if task is not None and asyncio.current_task() is not task:  # from Python 3.14 on, so does its task
            asyncio.tasks._enter_task(loop, task)
        await _live(work, writing)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as pipe:
            while head := pipe.read(4):
                receive(pipe.read(int.from_bytes(head, "big")))
    finally:
        _, status = os.waitpid(child, 0)  # noqa: ASYNC222 - nothing else runs meanwhile
    if status:
        raise BranchError(f"a branch of the simulation ended with {os.waitstatus_to_exitcode(status)}")


async def _live(work: Callable[[Send], Awaitable[None]], writing: int) -> None:
    """Do the work of the copy, and end the process in any case."""
    gc.disable()  # a branch is short
    signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    status = FAILED
    try:
        with os.fdopen(writing, "wb") as pipe:
            await work(lambda message: _send(pipe, message))
        status = 0
    except BrokenPipeError:  # the reader was ended, and this branch with it
        status = 0
    except BaseException:  # noqa: BLE001 - the end of a process
        traceback.print_exc()
    finally:
        os._exit(status)


def _give_up(_number: int, frame: FrameType | None) -> None:
    """End a branch that would never end, and show its position: virtual time does not pass in such a loop."""
    print(f"a branch used {LONGEST:g} s of the processor, and is ended here:", file=sys.stderr)  # noqa: T201
    traceback.print_stack(frame)
    sys.stderr.flush()
    os._exit(FAILED)


def _send(pipe: BinaryIO, message: bytes) -> None:
    pipe.write(len(message).to_bytes(4, "big") + message)
    pipe.flush()
