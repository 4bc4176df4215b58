"""Errors of requests that the kernel or the machine refuses, and their texts."""

import errno
import os


class RefusedError(Exception):
    """A request cannot be fulfilled; the text contains the request and the reason."""


class LimitReachedError(RefusedError):
    """A limited resource of the machine is exhausted; the request may be retried later."""


_LIMITS = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ENOSPC, errno.EXFULL})


def is_exhausted(error: Exception) -> bool:
    """Return whether the request may succeed once other pods have ended."""
    return isinstance(error, LimitReachedError) or (isinstance(error, OSError) and error.errno in _LIMITS)


def explain(error: Exception) -> str:
    """Return the subject and the reason of an error, without Python's prefix.

    >>> explain(FileNotFoundError(2, "No such file or directory", "/data"))
    '/data: no such file or directory'
    >>> explain(OSError(1, "mount proc at /proc: operation not permitted"))
    'mount proc at /proc: operation not permitted'
    """
    if not isinstance(error, OSError) or error.errno is None:
        return str(error)
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {os.strerror(error.errno).lower()}"
    return str(error.strerror)
