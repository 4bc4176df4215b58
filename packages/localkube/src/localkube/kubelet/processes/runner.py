"""Defines the interface between the kubelet and processes, with the functions that pods require.

Implementations: `sandbox/` (Linux namespaces, or plain processes if those are refused) and, for simulation, a model
of processes that start, become ready and fail.
"""

import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeAlias

Network: TypeAlias = Literal["isolated", "shared"]
"""`isolated`: a network namespace per pod on one bridge. `shared`: the host network with one 127.x.y.z per pod."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The granted capabilities. Each line of `missing` describes a missing capability and its effect for the user."""

    has_namespaces: bool
    network: Network
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """The sandbox of one pod, which its containers share. `id` is the UID of the pod, and `directory` is on the host.

    `hosts_directory` holds a file `hosts` that the kubelet replaces by rename whenever pods change; containers
    must see the newest one as /etc/hosts. `memory` has directories that are in memory, with their largest size in bytes
    (0: half of the machine's memory); without namespaces they stay on the disk.
    """

    id: str
    hostname: str
    directory: Path
    hosts_directory: Path
    host_network: bool = False
    share_process_namespace: bool = False
    memory: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Mount:
    """A host file or directory that is mounted at `target` in the container. Missing mount points are created.

    With `sub_path`, that path inside `source` is mounted, resolved when the container starts; it must not lead out of
    it.
    """

    source: Path
    target: str
    read_only: bool = False
    sub_path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSpec:
    """The process of one container. If `argv` is empty, the built-in stub server responds with 200 on `stub_ports`.

    `root` replaces the host's file system as / (an image given by the user). `stdout` and `stderr` are file
    descriptors of the kubelet that the process inherits; the runner does not close them.
    """

    id: str
    sandbox_id: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    stdout: int
    stderr: int
    cwd: str | None = None
    mounts: tuple[Mount, ...] = ()
    root: Path | None = None
    run_as_user: int | None = None
    run_as_group: int | None = None
    read_only_root: bool = False
    stub_ports: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Exit:
    """The result of a process: its exit code, or 128 + signal with `signal` set."""

    code: int
    signal: int = 0


class PacketLoss(NamedTuple):
    """A rule that drops packets between two addresses (any if empty), either a fraction or above a rate."""

    source: str
    destination: str
    share: float = 1.0
    rate: int = 0


class ResourceUsage(NamedTuple):
    """The usage of a container's processes: CPU seconds since their start, and current bytes of memory."""

    seconds: float
    memory: int


class StartError(Exception):
    """The process could not be started, because its executable is missing or invalid, or a mount failed."""


class ExhaustedError(StartError):
    """A resource of the machine is exhausted (such as descriptors or memory). The request can be retried."""


class ProcessRunner(Protocol):
    """Starts and stops the processes of pods. If the runner process exits, all these processes are killed."""

    async def start(self) -> Capabilities:
        """Prepare the machine (namespaces, bridge), and return the granted capabilities."""

    async def create_sandbox(self, spec: SandboxSpec, on_lost: Callable[[], None]) -> str:
        """Create the namespaces and network of the pod, and return its IP address.

        `on_lost` is called once, on the event loop, if the sandbox is lost with all its processes before it is removed;
        the ends of its containers are reported afterwards. If the pod is still needed, a new sandbox has to be created.
        """

    async def start_container(self, spec: ContainerSpec, on_exit: Callable[[Exit], None]) -> int:
        """Start a process in its sandbox, and return its host PID. `on_exit` is called once, on the event loop."""

    async def exec(
        self, container_id: str, argv: tuple[str, ...], fds: tuple[int, int, int], on_exit: Callable[[Exit], None]
    ) -> int:
        """Start an additional process with these streams in a running container. Return its PID on the host."""

    async def kill_exec(self, pid: int) -> None:
        """Kill a process that `exec` started, and its descendants. Ignore an exited process."""

    async def signal(self, container_id: str, signal: int, *, everything: bool = False) -> None:
        """Signal the main process of the container, or all processes. Ignore a terminated container."""

    async def open_socket(self, sandbox_id: str | None) -> socket.socket:
        """Return an unconnected, non-blocking TCP socket in the network of the pod, or of all pods if it is None."""

    async def drop_packets(self, losses: Sequence[PacketLoss]) -> None:
        """Drop only these packets between sandboxes. Raise `StartError` if sandboxes do not have networks."""

    async def delay_packets(self, sandbox_id: str, seconds: float) -> None:
        """Delay each packet to a sandbox, or stop the delay if it is 0. Raise `StartError` if not supported."""

    async def resize_memory(self, container_id: str, path: str, size: int) -> int:
        """Resize the in-memory file system at `path` in a container, or shrink it to its content if 0.

        Return the old size.
        """

    async def read_usage(self, pids: Collection[int]) -> Mapping[int, ResourceUsage]:
        """Return the usage of containers by the PID that was returned at their start, without exited containers."""

    async def read_memory(self, pid: int) -> int:
        """Return the memory of a container in bytes. Shared pages are counted once. This is slower than `read_usage`."""

    async def limit_cpu(self, pid: int, cores: float) -> None:
        """Limit the CPU time of a container, or remove the limit if 0. Do nothing if limits are not supported."""

    async def remove_sandbox(self, sandbox_id: str) -> None:
        """Kill the remaining processes, and release network and mounts of the sandbox. Ignore a missing sandbox."""

    async def stop(self) -> None:
        """Remove all sandboxes and stop the runner."""
