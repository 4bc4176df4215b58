"""Runs campaigns in several processes. Each process plays some families and sends its verdicts immediately."""

import gc
import os
import selectors
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from io import FileIO
from typing import BinaryIO, cast

import msgspec
from tests.simulation.schedules.campaign import Part, campaign
from tests.simulation.schedules.forking import BranchError
from tests.simulation.schedules.playing import Verdict


def play_in_parallel(part: Part, processes: int) -> Iterator[Verdict]:
    """Play a campaign in several processes. They exit when their verdicts are no longer read.

    Raise BranchError if one of them ends before its part was played.
    """
    children: dict[int, FileIO] = {}
    broken = False
    try:
        with _deferred_interrupt():
            for number in range(min(processes, len(part.families))):
                child, pipe = _start(replace(part, families=part.families[number::processes]))
                children[child] = pipe
        yield from _verdicts(list(children.values()))
    finally:
        for child, pipe in children.items():
            pipe.close()
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)
            broken |= os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) > 0
    if broken:
        raise BranchError("a process of the campaign ended before its part was played")


@contextmanager
def _deferred_interrupt() -> Iterator[None]:
    """Handle Ctrl-C after the `with` block: Python ignores the exceptions of functions that run after a fork."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(part: Part) -> tuple[int, FileIO]:
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        os.close(writing)
        return child, os.fdopen(reading, "rb", buffering=0)
    os.close(reading)
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # the parent handles Ctrl-C: it reads complete verdicts and stops this process
    gc.freeze()
    status = 1
    try:
        with os.fdopen(writing, "wb") as pipe:
            campaign([part], lambda _, verdict: _send(pipe, verdict))
        status = 0
    except BrokenPipeError:
        status = 0
    except BaseException:  # noqa: BLE001 - the end of a process
        traceback.print_exc()
    finally:
        os._exit(status)


def _send(pipe: BinaryIO, verdict: Verdict) -> bool:
    if not verdict.violations:
        verdict = msgspec.structs.replace(verdict, trace="", final=b"")
    message = msgspec.json.encode(verdict)
    pipe.write(len(message).to_bytes(4, "big") + message)
    pipe.flush()
    return True


def _verdicts(pipes: Sequence[FileIO]) -> Iterator[Verdict]:
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                verdict = _receive(cast("FileIO", key.fileobj))
                if verdict is None:
                    selector.unregister(key.fileobj)
                else:
                    yield verdict


def _receive(pipe: FileIO) -> Verdict | None:
    """Read one verdict, or return None after the last one."""
    head = _read(pipe, 4)
    return msgspec.json.decode(_read(pipe, int.from_bytes(head, "big")), type=Verdict) if head else None


def _read(pipe: FileIO, size: int) -> bytes:
    """Read a number of bytes, or none at the end. The read is unbuffered, so that a selector reports all data."""
    read = b""
    while len(read) < size:
        piece = pipe.read(size - len(read))
        if not piece:
            return b""
        read += piece
    return read
