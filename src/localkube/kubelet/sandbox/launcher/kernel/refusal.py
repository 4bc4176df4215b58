"""What the machine refuses, in words."""

import errno
import os


class RefusedError(Exception):
    """Something asked for cannot be done; the text says what and why."""


class LimitReachedError(RefusedError):
    """There is none left of something that the machine has so many of: it may be asked again later."""


_LIMITS = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ENOSPC, errno.EXFULL})


def is_exhausted(error: Exception) -> bool:
    """Return whether the machine would grant the same when other pods have ended."""
    return isinstance(error, LimitReachedError) or (isinstance(error, OSError) and error.errno in _LIMITS)


def explain(error: Exception) -> str:
    """Return what a refusal is about and why, without Python's decoration.

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
