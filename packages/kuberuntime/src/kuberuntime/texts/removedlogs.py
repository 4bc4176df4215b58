"""Recognizes the error message that a kubelet sends instead of a removed log, as if it were a log line.

A kubelet removes the containers of a pod that is being deleted, and their logs, even if a finalizer keeps the pod. The
response has status 200, and contains the error message without a line break.
"""

import re
from typing import Final

LOST: Final = re.compile(
    rb"unable to retrieve container logs for \S+|failed to try resolving symlinks in path [^\n]{1,4096}"
)


def is_removed(text: bytes) -> bool:
    r"""Return whether a log consists only of the kubelet's message about a removed log.

    >>> is_removed(b"unable to retrieve container logs for containerd://0a1b"), is_removed(b"unable to retrieve it\n")
    (True, False)
    """
    return LOST.fullmatch(text) is not None
