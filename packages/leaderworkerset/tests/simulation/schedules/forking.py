"""Runs branches of a simulation, each in a forked process that sends its result back.

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
"""Sends one message to the parent process."""

FAILED: Final = 70
"""The exit code of a branch in which the simulation itself failed."""

LONGEST: Final = 600.0
"""The CPU time in seconds after which a branch counts as endless. Most branches need one or two seconds."""


class BranchError(Exception):
    """A branch exited without a result. In this case, the simulation has an error, not the product."""


async def branch(work: Callable[[Send], Awaitable[None]], receive: Send) -> None:
    """Run `work` in a forked process, and forward its messages immediately. This process waits until it exits."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    child = os.fork()
    if child == 0:
        os.close(reading)
        asyncio._set_running_loop(loop)  # a loop is bound to the process that started it
        # from Python 3.14, the current task is also bound to this process
        if task is not None and asyncio.current_task() is not task:
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
    """Run the work of the forked process, and exit in any case."""
    gc.disable()  # a branch is too short for collections
    signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    status = FAILED
    try:
        with os.fdopen(writing, "wb") as pipe:
            await work(lambda message: _send(pipe, message))
        status = 0
    except BrokenPipeError:  # the parent process has exited, so stop this branch
        status = 0
    except BaseException:  # noqa: BLE001 - the end of a process
        traceback.print_exc()
    finally:
        os._exit(status)


def _give_up(_number: int, frame: FrameType | None) -> None:
    """Terminate an endless branch, and print its stack, because virtual time does not advance in such a loop."""
    print(f"a branch used {LONGEST:g} s of the processor, and is ended here:", file=sys.stderr)  # noqa: T201
    traceback.print_stack(frame)
    sys.stderr.flush()
    os._exit(FAILED)


def _send(pipe: BinaryIO, message: bytes) -> None:
    pipe.write(len(message).to_bytes(4, "big") + message)
    pipe.flush()
