"""Runs pods without isolation, directly on the host.

The ground of Linux namespaces is in `isolation.py`, with the same methods. A ground creates and removes pods, forks a
child into a pod's PID namespace, and moves that child into the pod's other namespaces, mounts included. It refuses
requests that it cannot fulfil, with the reason. `host_proc` is a descriptor of the host's /proc; None if that is /proc.
"""

# ruff: noqa: ARG002 - the plain host needs fewer arguments than it gets

import os
import socket
from contextlib import suppress

from localkube.kubelet.processes.kernelerrors import RequestError

from . import containerinit
from .kernel import syscalls
from .kernel.packetrules import PacketRule
from .launchspecs import Container, Pod

NO_OWN_NETWORKS = "not supported, because pods share the network of this machine"
_STAND_INS = ("/dev/shm", "/tmp", "/var/tmp")  # noqa: S108 - names of mount points, nothing is put there


class PlainHost:
    """Plain processes on the host, which are grouped only by sessions and subreapers."""

    host_proc: int | None = None

    def __init__(self) -> None:
        with suppress(AttributeError):  # not Linux
            syscalls.adopt_orphans()

    def own_pid(self) -> int:
        """Return the launcher's PID."""
        return os.getpid()

    def create(self, pod: Pod) -> None:
        """Do nothing, because there are no namespaces."""

    def remove(self, pod: Pod) -> None:
        """Do nothing, because there are no namespaces to release."""

    def fork(self, pod: Pod) -> int:
        """Fork a child."""
        return os.fork()

    def enter(self, pod: Pod, container: Container) -> None:
        """Reject containers that need namespaces. A scratch directory on the host can replace an empty volume."""
        containerinit.adopt_orphans()
        if container.root is not None:
            raise RequestError(
                f"image root {container.root}: cannot replace /, because this machine does not permit namespaces"
            )
        for mount in container.mounts:
            source = os.path.realpath(mount.source)
            if source == os.path.realpath(mount.target):
                continue
            if mount.target.rstrip("/") in _STAND_INS and os.path.isdir(source) and not os.listdir(source):
                continue
            raise RequestError(
                f"mount {mount.source} at {mount.target}: this machine does not permit namespaces. Use a hostPath "
                "volume whose path is its mountPath"
            )

    def join(self, pod: Pod, first: int) -> None:
        """Do nothing, because there are no namespaces to join."""
        containerinit.adopt_orphans()

    def open_socket(self, pod: Pod | None) -> socket.socket:
        """Return a socket in the host network."""
        return socket.socket(socket.AF_INET, socket.SOCK_STREAM)

    def stub_address(self, pod: Pod) -> str:
        """Return the loopback address of the pod, because all pods share the other addresses of the host."""
        return pod.address

    def attach(self, interface: str, gateway: str | None, nameserver: str) -> None:
        """Raise an error, because the host network does not need a connection to other networks."""
        raise RequestError(f"attach {interface}: pods use the host network")

    def lose(self, rules: list[PacketRule]) -> None:
        """Reject rules for lost packets, because pods do not have networks."""
        if rules:
            raise RequestError(NO_OWN_NETWORKS)

    def delay(self, pod: Pod, seconds: float) -> None:
        """Reject packet delays, because pods do not have networks."""
        raise RequestError(NO_OWN_NETWORKS)

    def bound(self, first: int, path: str, size: int) -> int:
        """Reject resizing a file system, because containers do not have separate file systems."""
        raise RequestError(
            f"{path}: containers do not have their own file systems, because this machine does not permit namespaces"
        )
