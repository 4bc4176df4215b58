"""Raises the limit of open files for the kubelet and the launcher, but not for processes of pods.

Programs that use select() fail above 1024, so they get the limit of the user.
"""

import errno
import os
import resource

from .kernelerrors import LimitReachedError

_MOST = 1 << 16


def raise_limit() -> int:
    """Raise the limit of this process to the hard limit, and return the previous limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and limit > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return soft


def restore_limit(soft: int) -> None:
    """Restore the previous limit of this process."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def require_spare(count: int) -> None:
    """Raise `LimitReachedError` if this process cannot open `count` more files in addition to a reserve.

    The check opens and closes descriptors: counting the open ones would take longer with every pod.
    """
    descriptors: list[int] = []
    try:
        descriptors.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        while len(descriptors) < count:
            descriptors.append(os.dup(descriptors[0]))
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        raise LimitReachedError(_describe(error, count)) from error
    finally:
        for fd in descriptors:
            os.close(fd)


def _describe(error: OSError, count: int) -> str:
    if error.errno == errno.ENFILE:
        return f"too many open files: fewer than {count} are left on this machine. Increase sysctl fs.file-max"
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        f"too many open files: fewer than {count} of {allowed} are left. Restart the cluster with a higher `ulimit "
        "-Hn`, or run fewer pods"
    )
