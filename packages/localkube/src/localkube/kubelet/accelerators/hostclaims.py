"""Claims GPUs for one cluster of this machine, so that two clusters never give the same one.

A claim is a socket with an abstract name. All users of the machine see it, and the kernel releases it when the
process ends, however it ends.
"""

import errno
import socket
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from localkube.kubelet.accelerators.nvml import AcceleratorError


@contextmanager
def claimed(uuids: Iterable[str]) -> Iterator[None]:
    """Claim these devices for the body of the context; raise an `AcceleratorError` if another cluster has one."""
    with ExitStack() as stack:
        for uuid in dict.fromkeys(uuids):
            sock = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            try:
                sock.bind(f"\0localkube-device-{uuid}")
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                raise AcceleratorError(
                    f"{uuid} is given by another cluster of this machine: stop that one, or divide the GPUs: "
                    "CUDA_VISIBLE_DEVICES=0,1 before this command leaves the others out"
                ) from error
        yield
