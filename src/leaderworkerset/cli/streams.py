"""The standard streams of the command: open at its start, fit for any text, and quiet at its end where nobody reads them.

A program that writes into a pipe without a reader is ended by SIGPIPE, and shells give it 141. Here sockets, too, are
written to, and clusters have to be stopped: so the error ends the command as any other, and only the exit code is the same.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from leaderworkerset.cli import errors


class UnreadError(Exception):
    """Nobody reads what the command prints."""


@contextmanager
def read_by_somebody() -> Iterator[None]:
    """Run what prints; raise `UnreadError` where nobody reads it."""
    try:
        yield
    except BrokenPipeError as error:
        raise UnreadError from error


def prepare() -> None:
    """Open the standard streams that are closed, so that no file is opened in their place and written to by mistake.

    What is printed to a closed standard output is an error, as it is for kubectl; messages to a closed standard error
    are dropped. Characters that the encoding of the terminal lacks are printed as escapes.
    """
    for number, (name, mode, flags) in enumerate(
        (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY))
    ):
        stream = getattr(sys, name)
        if stream is None:
            os.open(os.devnull, flags)  # becomes the lowest number that is free: this one
            setattr(sys, name, os.fdopen(number, mode, closefd=False))
        elif name != "stdin":
            stream.reconfigure(errors="backslashreplace")


def drop_output() -> OSError | None:
    """Drop what standard output does not take, and return why; None where it takes everything."""
    error = _flush(sys.stdout)
    if error is None or isinstance(error, BrokenPipeError):
        return error
    return OSError(error.errno, error.strerror, "standard output")


def close(code: int) -> int:
    """Write what is left, and return the exit code: another one where nobody reads it any more."""
    broken = [error for error in (_flush(sys.stdout), _flush(sys.stderr)) if isinstance(error, BrokenPipeError)]
    return errors.PIPE_CLOSED if broken else code


def _flush(stream: TextIO) -> OSError | None:
    """Flush a stream; if that fails, replace it by /dev/null, so that later writes do not fail again."""
    try:
        stream.flush()
    except OSError as error:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        return error
    return None
