"""The seam between the API server and the kubelet, for `/log`, `/attach`, `/exec`, `/portforward` and metrics."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from kuberuntime.objects.meta import UID, JSONObject

Stream: TypeAlias = Literal["stdout", "stderr"]


class LogOptions(Struct, frozen=True, kw_only=True):
    """The query of `/log`, as kubectl sends it."""

    container: str
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since_seconds: float | None = None
    since_time: str | None = None
    limit_bytes: int | None = None


class ContainerUsage(NamedTuple):
    """The usage of a container: processors, and bytes of memory."""

    cores: float
    memory: int


class DeviceUsage(NamedTuple):
    """The load of a container's devices: how many are busy (None if not measured), and bytes of their memory."""

    busy: float | None
    memory: int


class UsageReport(Struct, frozen=True):
    """The loads of containers by their pod and name: the mean over `seconds`, which ended at `at`.

    Containers that have not run for all of that time are missing. `devices` has the containers with real devices.
    """

    at: datetime
    seconds: float
    loads: Mapping[UID, Mapping[str, ContainerUsage]]
    devices: Mapping[UID, Mapping[str, DeviceUsage]] = {}


class ExecSession(Protocol):
    """One running command in a container. Without a terminal, `stderr` is separate from `stdout`."""

    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader | None

    async def write(self, data: bytes) -> None:
        """Write to the command's standard input."""
        ...

    async def close_stdin(self) -> None:
        """End the command's standard input."""
        ...

    def resize(self, columns: int, rows: int) -> None:
        """Set the size of the terminal; without a terminal do nothing."""
        ...

    async def wait(self) -> int:
        """Return the exit code, 128 + n for a command ended by signal n."""
        ...

    async def kill(self) -> None:
        """Kill the command and all processes that it started."""
        ...


class NodeError(Exception):
    """The node refuses a request; the text gives the reason (container not running, unknown container, ...)."""


class Node(Protocol):
    """The interface of the kubelet for the API server. A refusal raises `NodeError`."""

    def logs(self, pod: JSONObject, options: LogOptions) -> AsyncIterator[bytes]:
        """Yield parts of the log up to its end or, when following, until the container ends."""
        ...

    def attach(self, pod: JSONObject, container: str) -> AsyncIterator[tuple[Stream, bytes]]:
        """Yield the output of a running container from now until its end."""
        ...

    async def exec(
        self, pod: JSONObject, container: str, command: tuple[str, ...], *, stdin: bool, tty: bool
    ) -> ExecSession:
        """Start a command in a running container."""
        ...

    async def dial(self, pod: JSONObject, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to `localhost:port` inside the pod."""
        ...

    async def measure(self) -> UsageReport:
        """Return the usage of the running containers."""
        ...
