"""Opens the standard streams at startup, supports any text, and handles streams that are closed early.

SIGPIPE terminates a process that writes to a pipe without a reader, and its exit code in shells is 141. This process
also writes to sockets, and must stop clusters. A closed output is therefore a normal error with the same exit code.
"""

import atexit
import os
import select
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn, TextIO

PIPE_CLOSED: Final = 141
"""The shell exit code of a process that is terminated by SIGPIPE, such as kubectl and coreutils."""


class ClosedOutputError(Exception):
    """The reader closed the output of the command."""


@contextmanager
def require_reader() -> Iterator[None]:
    """Run code that prints. Raise `ClosedOutputError` if the reader has closed the output."""
    try:
        yield
    except BrokenPipeError as error:
        raise ClosedOutputError from error


def open_missing_streams() -> None:
    """Open closed standard streams, so that a different file cannot use their descriptors and receive the output.

    Output to a closed standard output is an error, as in kubectl. Messages to a closed standard error are dropped.
    Characters that the terminal encoding does not support are escaped.
    """
    for number, (name, mode, flags) in enumerate(
        (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY))
    ):
        stream = getattr(sys, name)
        if stream is None:
            os.open(os.devnull, flags)  # open() returns the lowest free descriptor, which is this one
            setattr(sys, name, os.fdopen(number, mode, closefd=False))
        elif name != "stdin":
            stream.reconfigure(errors="backslashreplace")


def drop_output() -> OSError | None:
    """Discard output that cannot be written to standard output. Return the error, or None if there is no error."""
    error = _flush(sys.stdout)
    if error is None or isinstance(error, BrokenPipeError):
        return error
    return OSError(error.errno, error.strerror, "standard output")


def has_no_reader() -> bool:
    """Return whether standard output is a pipe or socket without a reader, according to the operating system.

    Text that could not be written stays in the buffer of the stream and fails again in `drop_output`. With PYTHONUNBUFFERED
    there is no buffer.
    """
    if not hasattr(select, "poll"):  # on Windows, a later write fails
        return False
    state = select.poll()
    state.register(sys.stdout.fileno(), 0)
    return any(events & select.POLLERR for _, events in state.poll(0))


def close(code: int) -> int:
    """Flush the output, and return the exit code, which changes if the output has no reader."""
    broken = [error for error in (_flush(sys.stdout), _flush(sys.stderr)) if isinstance(error, BrokenPipeError)]
    return PIPE_CLOSED if broken else code


def _flush(stream: TextIO) -> OSError | None:
    """Flush a stream. If this fails, replace the stream with /dev/null, so that later writes do not fail."""
    try:
        stream.flush()
    except OSError as error:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        return error
    return None


def exit_now(code: int) -> NoReturn:
    """Call the exit handlers, flush the streams, and exit with the code.

    Freeing all modules would take a tenth of the CPU time of a short command, and the kernel frees the memory anyway.
    If a thread is running that Python would wait for, `SystemExit` is raised, so that Python waits.
    """
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        sys.exit(close(code))
    atexit._run_exitfuncs()  # noqa: SLF001 - as multiprocessing ends its processes
    os._exit(close(code))
