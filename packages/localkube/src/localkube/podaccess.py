"""Defines the interface between the API server and the kubelet for pod subresources and metrics.

The subresources are `/log`, `/attach`, `/exec` and `/portforward`.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from kuberuntime.objects.meta import UID, JSONObject

Stream: TypeAlias = Literal["stdout", "stderr"]


class LogOptions(Struct, frozen=True, kw_only=True):
    """The query parameters of `/log` in the form that kubectl sends."""

    container: str
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since_seconds: float | None = None
    since_time: str | None = None
    limit_bytes: int | None = None


class ContainerUsage(NamedTuple):
    """The usage of a container in CPUs and bytes of memory."""

    cores: float
    memory: int


class DeviceUsage(NamedTuple):
    """The load of a container's devices: the number of busy devices (None if unknown), and bytes of their memory."""

    busy: float | None
    memory: int


class UsageReport(Struct, frozen=True):
    """The loads of containers by pod and name, as the mean over `seconds` until `at`.

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
        """Write to the standard input of the command."""

    async def close_stdin(self) -> None:
        """Close the standard input of the command."""

    def resize(self, columns: int, rows: int) -> None:
        """Set the size of the terminal. Do nothing without a terminal."""

    async def wait(self) -> int:
        """Return the exit code, or 128 + n for a command that was terminated by signal n."""

    async def kill(self) -> None:
        """Kill the command and all processes that it started."""


class NodeError(Exception):
    """The node rejects a request. The message contains the reason, such as a container that is not running."""


class Node(Protocol):
    """The interface of the kubelet for the API server. Rejected requests raise `NodeError`."""

    def logs(self, pod: JSONObject, options: LogOptions) -> AsyncIterator[bytes]:
        """Yield chunks of the log. When following, continue until the container terminates."""

    def attach(self, pod: JSONObject, container: str) -> AsyncIterator[tuple[Stream, bytes]]:
        """Yield the output of a running container after this call, until it terminates."""

    async def exec(
        self, pod: JSONObject, container: str, command: tuple[str, ...], *, stdin: bool, tty: bool
    ) -> ExecSession:
        """Start a command in a running container."""

    async def dial(self, pod: JSONObject, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to `localhost:port` inside the pod."""

    async def measure(self) -> UsageReport:
        """Return the usage of the running containers."""
