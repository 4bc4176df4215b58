"""Claims GPUs for a local cluster, so that two clusters never use the same GPU.

A claim is a socket with an abstract name, which all users of the machine can see, and which the kernel releases when
the process exits for any reason.
"""

import errno
import socket
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from localkube.kubelet.accelerators.nvml import AcceleratorError


@contextmanager
def claim_devices(uuids: Iterable[str]) -> Iterator[None]:
    """Claim devices until the context exits. Raise an `AcceleratorError` if another cluster uses a device."""
    with ExitStack() as stack:
        for uuid in dict.fromkeys(uuids):
            sock = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            try:
                sock.bind(f"\0localkube-device-{uuid}")
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                raise AcceleratorError(
                    f"{uuid} is in use by a different local cluster. Stop that cluster, or select other GPUs with "
                    "CUDA_VISIBLE_DEVICES"
                ) from error
        yield
