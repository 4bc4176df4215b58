"""Defines the fields of `SandboxSpec` and `ContainerSpec` that the cluster process sends to the launcher."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Pod(NamedTuple):
    """A requested pod."""

    id: str
    hostname: str
    address: str
    directory: str
    hosts_directory: str
    host_network: bool
    share_process_namespace: bool
    memory: list[tuple[str, int]]


class MountRequest(NamedTuple):
    """A host file or directory, or a path inside it, to mount in a container."""

    source: str
    target: str
    read_only: bool
    sub_path: str


class Container(NamedTuple):
    """A requested container, with its executable, its identity, and its file system."""

    id: str
    sandbox_id: str
    argv: list[str]
    env: Mapping[str, str]
    stdout: int
    stderr: int
    cwd: str | None
    mounts: list[MountRequest]
    root: str | None
    run_as_user: int | None
    run_as_group: int | None
    read_only_root: bool
    stub_ports: list[int]


def parse_container(request: dict[str, Any]) -> Container:
    """Return the container of a `start` request."""
    container = request["container"]
    return Container(**container | {"mounts": [MountRequest(**mount) for mount in container["mounts"]]})
