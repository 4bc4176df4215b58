"""The seam between the kubelet and processes: the functions of the machine that pods need.

Implementations: `sandbox/` (Linux namespaces, or plain processes if those are refused) and, for simulation, a model
of processes that start, become ready and fail.
"""

import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeAlias

Network: TypeAlias = Literal["isolated", "shared"]
"""`isolated`: a network namespace per pod on one bridge. `shared`: the host's network, one 127.x.y.z per pod."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The granted capabilities. Each of `lost` is a line for the user: what is missing, and the effect."""

    namespaces: bool
    network: Network
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """The sandbox of one pod, which its containers share. `id` is the pod's UID; `directory` is its scratch space on the host.

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
    """A host file or directory that is mounted at `target` in the container; missing mount points are created.

    With `sub_path`, that path inside `source` is mounted, resolved when the container starts; it must not lead out of
    it.
    """

    source: Path
    target: str
    read_only: bool = False
    sub_path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSpec:
    """The process of one container. An empty `argv` means the built-in stub server, which answers 200 on `stub_ports`.

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
    """The end of a process: its exit code, or 128 + signal with `signal` set."""

    code: int
    signal: int = 0


class PacketLoss(NamedTuple):
    """Packets from one address to another (empty: any) that are lost: a share of them, or those beyond bytes per second."""

    source: str
    destination: str
    share: float = 1.0
    rate: int = 0


class ResourceUsage(NamedTuple):
    """The usage of the processes of a container: processor seconds since their start, and bytes of memory now."""

    seconds: float
    memory: int


class StartError(Exception):
    """The process could not be started: program not found, not executable, mount refused. The text gives the reason."""


class ExhaustedError(StartError):
    """A resource of the machine is exhausted (descriptors, processes, memory, addresses); it may be retried later."""


class ProcessRunner(Protocol):
    """Starts and ends the processes of pods. When the runner's process dies, all of them die with it."""

    async def start(self) -> Capabilities:
        """Prepare the machine (namespaces, bridge); return the granted capabilities."""
        ...

    async def create_sandbox(self, spec: SandboxSpec, on_lost: Callable[[], None]) -> str:
        """Create the pod's namespaces and network; return its IP address.

        `on_lost` is called once, on the event loop, if the sandbox is lost with all its processes before it is removed;
        the ends of its containers are reported afterwards. If the pod is still needed, a new sandbox has to be created.
        """
        ...

    async def start_container(self, spec: ContainerSpec, on_exit: Callable[[Exit], None]) -> int:
        """Start a process in its sandbox; return its PID on the host. `on_exit` is called once, on the event loop."""
        ...

    async def exec(
        self, container_id: str, argv: tuple[str, ...], fds: tuple[int, int, int], on_exit: Callable[[Exit], None]
    ) -> int:
        """Start a further process in a running container with these standard streams; return its PID on the host."""
        ...

    async def kill_exec(self, pid: int) -> None:
        """Kill a process that `exec` started, and its descendants. A process that has ended is not an error."""
        ...

    async def signal(self, container_id: str, signal: int, *, everything: bool = False) -> None:
        """Signal the container's first process, or with `everything` all its processes. A container that has ended is not an error."""
        ...

    async def open_socket(self, sandbox_id: str | None) -> socket.socket:
        """Return an unconnected, non-blocking TCP socket of the pod's network (None: of the network of all pods)."""
        ...

    async def lose_packets(self, losses: Sequence[PacketLoss]) -> None:
        """Drop these packets between sandboxes, and no others; raise `StartError` if sandboxes have no networks."""
        ...

    async def delay_packets(self, sandbox_id: str, seconds: float) -> None:
        """Delay every packet to a sandbox by this time, 0: no longer; raise `StartError` if the machine cannot."""
        ...

    async def bound_memory(self, container_id: str, path: str, size: int) -> int:
        """Resize the memory file system at `path` in a container, 0: to its content; return the former size."""
        ...

    async def used(self, pids: Collection[int]) -> Mapping[int, ResourceUsage]:
        """Return the usage of containers by the PID that was returned at their start; exited containers are missing."""
        ...

    async def memory(self, pid: int) -> int:
        """Return the memory of a container in bytes; pages that processes share count once. It is slower than `used`."""
        ...

    async def limit_cpu(self, pid: int, cores: float) -> None:
        """Limit the processor time of a container, 0: no longer; nothing happens where the machine grants no limits."""
        ...

    async def remove_sandbox(self, sandbox_id: str) -> None:
        """Kill its remaining processes, and release its network and mounts. A missing sandbox is not an error."""
        ...

    async def stop(self) -> None:
        """Remove all sandboxes and end the runner."""
        ...
