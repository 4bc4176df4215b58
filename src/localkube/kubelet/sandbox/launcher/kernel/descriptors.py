"""The limit of open files: raised for those who run pods, kept as it was for programs, and reported in words.

Programs that use select() break above 1024, so the limit that a user has is the one that programs get.
"""

import errno
import os
import resource

from .refusal import LimitReachedError

_MOST = 1 << 16


def raise_limit() -> int:
    """Allow this process as many open files as it may have; return how many it was allowed before."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return soft


def restore_limit(soft: int) -> None:
    """Allow this process what it was allowed before."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def require_spare(count: int) -> None:
    """Raise `LimitReachedError` unless this process may open so many more files, which keeps it answering when they get few.

    They are taken and given back: to count those that are open would cost more with every pod.
    """
    taken: list[int] = []
    try:
        taken.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        while len(taken) < count:
            taken.append(os.dup(taken[0]))
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        raise LimitReachedError(_describe(error, count)) from error
    finally:
        for fd in taken:
            os.close(fd)


def _describe(error: OSError, count: int) -> str:
    if error.errno == errno.ENFILE:
        return f"too many open files on this machine: fewer than {count} are left; see sysctl fs.file-max"
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        f"too many open files: fewer than {count} of {allowed} are left; start the cluster again with a higher hard "
        f"limit (see `ulimit -Hn`), or run fewer pods"
    )
