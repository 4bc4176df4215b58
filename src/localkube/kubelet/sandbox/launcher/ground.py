"""The two kinds of isolation ("grounds") of pods: Linux namespaces, or none on the plain host.

A ground creates and removes pods, forks a child into a pod's PID namespace, and moves that child into the pod's other
namespaces, mounts included. It refuses requests that it cannot fulfil, with the reason.
"""

# ruff: noqa: ARG002 - the plain host needs fewer arguments than it gets

import os
import socket
from contextlib import suppress
from typing import Protocol

from localkube.kubelet.processes.kernelerrors import RefusedError

from . import supervise
from .kernel import syscalls
from .kernel.packetrules import PacketRule
from .launchedpods import Container, Pod

NO_OWN_NETWORKS = (
    "packets between pods: pods share the network of this machine, as --network shared or this machine says"
)
_STAND_INS = ("/dev/shm", "/tmp", "/var/tmp")  # noqa: S108 - names of mount points, nothing is put there


class Ground(Protocol):
    """The isolation of pods in the launcher. `host_proc` is a descriptor of the host's /proc; None if that is /proc."""

    host_proc: int | None

    def own_pid(self) -> int:
        """Return the launcher's PID on the host."""
        ...

    def create(self, pod: Pod) -> None:
        """Create the pod's namespaces."""
        ...

    def remove(self, pod: Pod) -> None:
        """Release the pod's namespaces. Its processes have ended."""
        ...

    def fork(self, pod: Pod) -> int:
        """Fork; the child (0) is the first process of a container of the pod."""
        ...

    def enter(self, pod: Pod, container: Container) -> None:
        """Move the forked child into the pod and its own file system."""
        ...

    def join(self, pod: Pod, first: int) -> None:
        """Move a forked child into the container whose first process (a child of the launcher) has this PID."""
        ...

    def open_socket(self, pod: Pod | None) -> socket.socket:
        """Return a TCP socket of the pod's network, or of the network that all pods share."""
        ...

    def stub_address(self, pod: Pod) -> str:
        """Return the address on which the stub server listens."""
        ...

    def attach(self, interface: str, gateway: str | None, nameserver: str) -> None:
        """Use this interface of the launcher's network as the way out of all pods created from now on."""
        ...

    def lose(self, rules: list[PacketRule]) -> None:
        """Lose the packets between pods that these rules name, and no others."""
        ...

    def delay(self, pod: Pod, seconds: float) -> None:
        """Hold every packet to the pod for a time; 0 ends that."""
        ...

    def bound(self, first: int, path: str, size: int) -> int:
        """Give a memory file system of a running container another size in bytes (0: what it holds); return the former one."""
        ...


class PlainGround:
    """Plain processes on the host, which are grouped only by sessions and subreapers."""

    host_proc: int | None = None

    def __init__(self) -> None:
        with suppress(AttributeError):  # not Linux
            syscalls.adopt_orphans()

    def own_pid(self) -> int:
        """Return the launcher's PID."""
        return os.getpid()

    def create(self, pod: Pod) -> None:
        """Do nothing: there are no namespaces."""

    def remove(self, pod: Pod) -> None:
        """Do nothing: there are no namespaces to release."""

    def fork(self, pod: Pod) -> int:
        """Fork."""
        return os.fork()

    def enter(self, pod: Pod, container: Container) -> None:
        """Refuse containers that need namespaces; a scratch directory of the host may replace an empty volume."""
        supervise.adopt_orphans()
        if container.root is not None:
            raise RefusedError(
                f"image root {container.root}: cannot replace / without namespaces, which are refused here"
            )
        for mount in container.mounts:
            source = os.path.realpath(mount.source)
            if source == os.path.realpath(mount.target):
                continue
            if mount.target.rstrip("/") in _STAND_INS and os.path.isdir(source) and not os.listdir(source):
                continue
            raise RefusedError(
                f"mount {mount.source} at {mount.target}: cannot mount without namespaces, which are refused here; "
                f"use a hostPath volume whose path is its mountPath"
            )

    def join(self, pod: Pod, first: int) -> None:
        """Do nothing: there are no namespaces to join."""
        supervise.adopt_orphans()

    def open_socket(self, pod: Pod | None) -> socket.socket:
        """Return a socket of the host's network."""
        return socket.socket(socket.AF_INET, socket.SOCK_STREAM)

    def stub_address(self, pod: Pod) -> str:
        """Return the pod's own loopback address: all pods share the host's other addresses."""
        return pod.address

    def attach(self, interface: str, gateway: str | None, nameserver: str) -> None:
        """Refuse: the host's network needs no way out."""
        raise RefusedError(f"attach {interface}: pods are on the host's network")

    def lose(self, rules: list[PacketRule]) -> None:
        """Refuse rules: pods have no networks."""
        if rules:
            raise RefusedError(NO_OWN_NETWORKS)

    def delay(self, pod: Pod, seconds: float) -> None:
        """Refuse: pods have no networks."""
        raise RefusedError(NO_OWN_NETWORKS)

    def bound(self, first: int, path: str, size: int) -> int:
        """Refuse: containers have no file systems."""
        raise RefusedError(f"{path}: containers have no file systems of their own, as this machine refuses namespaces")
