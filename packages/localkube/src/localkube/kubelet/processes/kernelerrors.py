"""Defines errors of requests that the kernel or the machine rejects, and their messages."""

import errno
import os


class RequestError(Exception):
    """A request cannot be fulfilled. The message contains the request and the reason."""


class LimitReachedError(RequestError):
    """A limited resource of the machine is exhausted. The request can be retried later."""


_LIMITS = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ENOSPC, errno.EXFULL})


def is_exhausted(error: Exception) -> bool:
    """Return whether the request can succeed after other pods have terminated."""
    return isinstance(error, LimitReachedError) or (isinstance(error, OSError) and error.errno in _LIMITS)


def explain(error: Exception) -> str:
    """Return the subject and the reason of an error, without the prefix from Python.

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
