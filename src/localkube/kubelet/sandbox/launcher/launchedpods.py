"""Pods and containers in the launcher, as the cluster process requests them."""

from typing import Any, NamedTuple

from .program import ProgramSpec


class Pod(NamedTuple):
    """A requested pod."""

    id: str
    hostname: str
    address: str
    directory: str
    hosts_directory: str
    host_network: bool
    share_processes: bool


class MountRequest(NamedTuple):
    """A host file or directory to be mounted in a container, or a path inside it."""

    source: str
    target: str
    read_only: bool
    sub_path: str


class Container(NamedTuple):
    """A requested container."""

    id: str
    program: ProgramSpec
    mounts: list[MountRequest]
    root: str | None
    read_only_root: bool
    stub_ports: list[int]


def parse_pod(request: dict[str, Any]) -> Pod:
    """Return the pod of a `create` request."""
    return Pod(**request["pod"])


def parse_container(request: dict[str, Any], *, confined: bool) -> Container:
    """Return the container of a `start` request."""
    asked = dict(request["container"])
    asked["program"] = ProgramSpec(**asked["program"], confined=confined)
    asked["mounts"] = [MountRequest(*mount) for mount in asked["mounts"]]
    return Container(**asked)
